/* Builds the graph of the communities: one edge for each two communities that share edges, with the
 * sum of their weights. */
#include "order/community.h"

hg_status hg__tally_make(const struct hg__order_work *work, int64_t most, struct hg__buffer *memory,
                         struct hg__buffer *tallies)
{
	int64_t slots = 4;
	while (slots < 2 * most) /* at most half of the slots are used */
		slots *= 2;
	*memory = (struct hg__buffer){0};
	HG__TRY(hg__order_alloc(work, work->threads, sizeof(struct hg__tally), tallies));
	const hg_status status =
	    hg__order_alloc(work, work->threads * slots, 2 * sizeof(int32_t) + sizeof(float), memory);
	if (status < 0) {
		hg__order_free(work, tallies);
		return status;
	}
	int32_t *key = memory->data;
	float *sum = (float *)(key + work->threads * slots);
	int32_t *used = (int32_t *)(sum + work->threads * slots);
	for (int t = 0; t < work->threads; t++)
		((struct hg__tally *)tallies->data)[t] =
		    (struct hg__tally){key + t * slots, sum + t * slots, used + t * slots, 0, slots - 1};
	for (int64_t k = 0; k < work->threads * slots; k++)
		key[k] = -1;
	return HG_OK;
}

struct merge {
	const struct hg__symmetric *symmetric;
	const int32_t *label, *member; /* member [n]: nodes sorted by community */
	int64_t *begin;                /* [count + 1] where the members of each community begin */
	int64_t count;
};

static void sum_edges_of(const struct merge *g, struct hg__tally *t, int64_t c)
{
	for (int64_t k = g->begin[c]; k < g->begin[c + 1]; k++)
		for (int s = 0; s < g->symmetric->sides; s++) {
			const struct hg__side *side = &g->symmetric->side[s];
			for (int64_t e = side->ptr[g->member[k]]; e < side->ptr[g->member[k] + 1]; e++)
				if (g->label[side->id[e]] != c)
					hg__tally_add(t, g->label[side->id[e]], side->weight ? side->weight[e] : 1.0f);
		}
}

/* Two passes: the first counts the neighbours of each community, the second writes them. */
static hg_status fill_merged(const struct hg__order_work *work, const struct merge *g,
                             struct hg__tally *tallies, struct hg__symmetric *out)
{
	int64_t *ptr = out->ptr_memory.data;
#pragma omp parallel for schedule(dynamic, 16) num_threads(work->threads)
	for (int64_t c = 0; c < g->count; c++) {
		struct hg__tally *t = &tallies[hg__order_thread()];
		sum_edges_of(g, t, c);
		ptr[c + 1] = t->count;
		hg__tally_clear(t);
	}
	for (int64_t c = 0; c < g->count; c++)
		ptr[c + 1] += ptr[c];
	HG__TRY(hg__order_alloc(work, ptr[g->count], sizeof(int32_t), &out->id_memory));
	HG__TRY(hg__order_alloc(work, ptr[g->count], sizeof(float), &out->weight_memory));
	int32_t *id = out->id_memory.data;
	float *weight = out->weight_memory.data;
#pragma omp parallel for schedule(dynamic, 16) num_threads(work->threads)
	for (int64_t c = 0; c < g->count; c++) {
		struct hg__tally *t = &tallies[hg__order_thread()];
		sum_edges_of(g, t, c);
		for (int64_t k = 0; k < t->count; k++) {
			id[ptr[c] + k] = t->key[t->used[k]];
			weight[ptr[c] + k] = t->sum[t->used[k]];
		}
		hg__tally_clear(t);
	}
	out->side[0] = (struct hg__side){ptr, id, weight};
	return HG_OK;
}

/* An upper bound on the neighbours of a community: the edges of its members, or all other
 * communities. */
static int64_t most_neighbours(const struct merge *g)
{
	int64_t most = 0;
	for (int64_t c = 0; c < g->count; c++) {
		int64_t edges = 0;
		for (int64_t k = g->begin[c]; k < g->begin[c + 1]; k++)
			edges += hg__symmetric_degree(g->symmetric, g->member[k]);
		most = edges > most ? edges : most;
	}
	return most < g->count ? most : g->count;
}

hg_status hg__community_merge(const struct hg__order_work *work,
                              const struct hg__symmetric *symmetric, const int32_t *label,
                              int64_t count, struct hg__symmetric *merged)
{
	struct hg__buffer member, begin = {0}, memory = {0}, tallies = {0};
	*merged = (struct hg__symmetric){.n = count, .sides = 1};
	HG__TRY(hg__order_alloc(work, symmetric->n, sizeof(int32_t), &member));
	hg_status status = hg__order_alloc(work, count + 1, sizeof(int64_t), &begin);
	if (status == HG_OK)
		status = hg__order_by_key(work, symmetric->n, count, label, member.data);
	struct merge g = {symmetric, label, member.data, begin.data, count};
	if (status == HG_OK) {
		for (int64_t i = 0; i < symmetric->n; i++)
			g.begin[label[i] + 1]++;
		for (int64_t c = 0; c < count; c++)
			g.begin[c + 1] += g.begin[c];
		status = hg__tally_make(work, most_neighbours(&g), &memory, &tallies);
	}
	if (status == HG_OK)
		status = hg__order_alloc(work, count + 1, sizeof(int64_t), &merged->ptr_memory);
	if (status == HG_OK)
		status = fill_merged(work, &g, tallies.data, merged);
	hg__order_free(work, &tallies);
	hg__order_free(work, &memory);
	hg__order_free(work, &begin);
	hg__order_free(work, &member);
	if (status < 0)
		hg__symmetric_free(work, merged);
	return status;
}
