/* Communities by local moves (the first phase of Blondel, Guillaume, Lambiotte, Lefebvre 2008).
 * Node i with edges of weight d_i moves to the community c with the largest
 *
 *     w(i, c) - d_i D_c / 2M
 *
 * where w(i, c) is the weight of i's edges into c, D_c the weight of the edges of c without i's
 * own, and 2M the weight of all edges.
 *
 * Nodes choose in batches: all nodes of a batch in parallel, from the state before the batch. Then
 * they move, in order. So the result does not depend on timing or on the number of threads. */
#include "order/community.h"

/* Batches of a sweep. Two neighbours in one batch may swap communities; with 32 batches this
 * concerns one edge in 32. In the smallest graph that is worth a second thread, a batch still has
 * some hundred nodes. */
enum { BATCHES = 32 };

/* Sweeps end when at most 1/STILL of the nodes move, 2 %, and after 6. On rings and planted
 * communities 3 sweeps lose 0.2 % of the modelled time, 2 lose 0.7 %, and 10 gain nothing. */
enum { SWEEPS = 6, STILL = 50 };

struct moves {
	const struct hg__symmetric *symmetric;
	const double *volume; /* [n] d_i */
	double total;         /* 2M */
	double *sum;          /* [n] D_c */
	int32_t *size;        /* [n] nodes of c */
	int32_t *label, *choice;
};

static int32_t choose_community(const struct moves *v, struct hg__tally *t, int64_t i)
{
	const int32_t own = v->label[i];
	hg__tally_add(t, own, 0);
	for (int s = 0; s < v->symmetric->sides; s++) {
		const struct hg__side *side = &v->symmetric->side[s];
		const int64_t end = side->ptr[i + 1];
		for (int64_t e = side->ptr[i]; e < end; e++) {
			if (e + HG__AHEAD < end)
				hg__order_prefetch(&v->label[side->id[e + HG__AHEAD]]);
			if (side->id[e] != i)
				hg__tally_add(t, v->label[side->id[e]], side->weight ? side->weight[e] : 1.0f);
		}
	}
	const double d = v->volume[i], share = d / v->total;
	int32_t best = own;
	double best_gain = (double)t->sum[t->used[0]] - share * (v->sum[own] - d);
	for (int64_t k = 1; k < t->count; k++) {
		const int32_t c = t->key[t->used[k]];
		const double gain = (double)t->sum[t->used[k]] - share * v->sum[c];
		if (gain < best_gain || (gain <= best_gain && (best == own || c > best)))
			continue;
		/* Two communities of one node each must not swap: only the larger number moves. */
		if (v->size[own] == 1 && v->size[c] == 1 && c > own)
			continue;
		best = c;
		best_gain = gain;
	}
	hg__tally_clear(t);
	return best;
}

static int64_t move_batch(struct moves *v, int64_t first)
{
	int64_t moved = 0;
	for (int64_t i = first; i < v->symmetric->n; i += BATCHES) {
		const int32_t from = v->label[i], to = v->choice[i];
		if (from == to)
			continue;
		v->sum[from] -= v->volume[i];
		v->sum[to] += v->volume[i];
		v->size[from]--;
		v->size[to]++;
		v->label[i] = to;
		moved++;
	}
	return moved;
}

static int64_t sweep_batches(const struct hg__order_work *work, struct moves *v,
                             struct hg__tally *tallies)
{
	int64_t moved = 0;
	for (int64_t first = 0; first < BATCHES; first++) {
		const int64_t count =
		    v->symmetric->n > first ? (v->symmetric->n - first + BATCHES - 1) / BATCHES : 0;
#pragma omp parallel for schedule(dynamic, 64) num_threads(work->threads)
		for (int64_t k = 0; k < count; k++)
			v->choice[first + k * BATCHES] =
			    choose_community(v, &tallies[hg__order_thread()], first + k * BATCHES);
		moved += move_batch(v, first);
	}
	return moved;
}

/* Numbers the communities that have nodes, in the order of their smallest nodes. */
static int64_t renumber(struct moves *v)
{
	int64_t count = 0;
	for (int64_t i = 0; i < v->symmetric->n; i++)
		v->choice[i] = -1;
	for (int64_t i = 0; i < v->symmetric->n; i++) {
		int32_t *number = &v->choice[v->label[i]];
		if (*number < 0)
			*number = (int32_t)count++;
		v->label[i] = *number;
	}
	return count;
}

static hg_status run_sweeps(const struct hg__order_work *work, struct moves *v,
                            struct hg__tally *tallies)
{
	v->total = 0;
	for (int64_t i = 0; i < v->symmetric->n; i++) {
		v->label[i] = (int32_t)i;
		v->sum[i] = v->volume[i];
		v->size[i] = 1;
		v->total += v->volume[i];
	}
	if (v->total <= 0)
		return HG_OK;
	for (int k = 0; k < SWEEPS; k++) {
		HG__TRY(hg__order_progress(work, "communities", k, SWEEPS));
		if (sweep_batches(work, v, tallies) <= v->symmetric->n / STILL)
			break;
	}
	return HG_OK;
}

hg_status hg__community_find(const struct hg__order_work *work,
                             const struct hg__symmetric *symmetric, const double *volume,
                             int32_t *label, int64_t *count)
{
	struct hg__buffer sum, size = {0}, choice = {0}, memory = {0}, tallies = {0};
	int64_t most = 0;
	for (int64_t i = 0; i < symmetric->n; i++)
		most =
		    hg__symmetric_degree(symmetric, i) > most ? hg__symmetric_degree(symmetric, i) : most;
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(double), &sum));
	hg_status status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &size);
	if (status == HG_OK)
		status = hg__order_alloc(work, symmetric->n, sizeof(int32_t), &choice);
	if (status == HG_OK)
		status = hg__tally_make(work, (most < symmetric->n ? most : symmetric->n) + 1, &memory,
		                        &tallies);
	if (status == HG_OK) {
		struct moves v = {symmetric, volume, 0, sum.data, size.data, label, choice.data};
		status = run_sweeps(work, &v, tallies.data);
		*count = renumber(&v);
	}
	hg__order_free(work, &tallies);
	hg__order_free(work, &memory);
	hg__order_free(work, &choice);
	hg__order_free(work, &size);
	hg__order_free(work, &sum);
	return status;
}
