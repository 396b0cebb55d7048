/* Softmax of edge values over each row of the graph, and its gradient, for every head k:
 *
 *     P[e, k] = exp(E[e, k] - max over the row) / sum over the row
 *     dE = P * (dP - sum over the row of P dP)
 *
 * The edge values of a row are contiguous, [edges, heads]. If ld is 1, 2, 4 or 8, sixteen lanes
 * hold all heads of 16 / ld edges; otherwise they hold sixteen heads of one edge. Each lane has its
 * own statistic (maximum or sum), and the lanes of one head are combined at the end. For a split
 * row each part stores its statistics in its staging slot, and after they have been combined a
 * further pass over the part's edges uses them. */
#include <math.h>

#include "kernels/cpu/exp.h"
#include "kernels/cpu/items.h"

#define CHUNK 64 /* the number of vectors held at a time: 4 kB */

/* The heads from h0 on of one part. An edge takes `pitch` lanes. */
struct strip {
	const struct hg__part *part;
	int64_t h0;
	int pitch, heads; /* only the first `heads` <= pitch of them are heads */
};

HG__INLINE int64_t strip_edges(const struct strip *s)
{
	return (int64_t)CHUNK * HG__LANES / s->pitch;
}

/* Loads n edges from p on. Lanes past the end are set to `fill`. Returns the number of vectors. */
static int64_t load_edges(const struct hg__mat *m, const struct strip *s, int64_t p, int64_t n,
                          float fill, float *lanes)
{
	const int64_t count = n * s->pitch, vectors = hg__ceil_div(count, HG__LANES);
	for (int64_t i = count; i < vectors * HG__LANES; i++)
		lanes[i] = fill;
	if (s->pitch < HG__LANES)
		memcpy(lanes, hg__row(m, p, 0, count, lanes),
		       m->dtype == HG_F16 ? 0 : (size_t)count * sizeof(float));
	else
		for (int64_t e = 0; e < n; e++) {
			float scratch[HG__LANES] = {0};
			memcpy(scratch, hg__row(m, p + e, s->h0, s->heads, scratch),
			       m->dtype == HG_F16 ? 0 : (size_t)s->heads * sizeof(float));
			memcpy(lanes + e * HG__LANES, scratch, sizeof(scratch));
		}
	return vectors;
}

static void store_edges(const struct hg__mat *m, const struct strip *s, int64_t p, int64_t n,
                        const float *lanes)
{
	if (s->pitch < HG__LANES)
		hg__row_put(m, p, 0, n * s->pitch, lanes);
	else
		for (int64_t e = 0; e < n; e++)
			hg__row_put(m, p + e, s->h0, s->heads, lanes + e * HG__LANES);
}

/* Combines the lanes of each head as a tree, and stores the result of a head in all its lanes. */
HG__INLINE hg__v16 sum_head_lanes(const struct strip *s, hg__v16 v)
{
	float f[HG__LANES];
	hg__vstore(f, v);
	for (int half = HG__LANES / 2; half >= s->pitch; half /= 2)
		for (int i = 0; i < half; i++)
			f[i] += f[i + half];
	for (int i = s->pitch; i < HG__LANES; i++)
		f[i] = f[i - s->pitch];
	return hg__vload(f);
}

HG__INLINE hg__v16 max_head_lanes(const struct strip *s, hg__v16 v)
{
	float f[HG__LANES];
	hg__vstore(f, v);
	for (int half = HG__LANES / 2; half >= s->pitch; half /= 2)
		for (int i = 0; i < half; i++)
			f[i] = f[i] > f[i + half] || f[i] != f[i] ? f[i] : f[i + half];
	for (int i = s->pitch; i < HG__LANES; i++)
		f[i] = f[i - s->pitch];
	return hg__vload(f);
}

/* ---- passes over the edges of a part ---- */

HG__INLINE hg__v16 pass_max(const struct hg__mat *e, const struct strip *s)
{
	hg__v16 max = hg__vset(-INFINITY);
	float lanes[CHUNK * HG__LANES];
	for (int64_t p = s->part->begin; p < s->part->end; p += strip_edges(s)) {
		const int64_t vectors =
		    load_edges(e, s, p, hg__min(strip_edges(s), s->part->end - p), -INFINITY, lanes);
		for (int64_t v = 0; v < vectors; v++)
			max = hg__vmax(hg__vload(lanes + v * HG__LANES), max);
	}
	return max_head_lanes(s, max);
}

HG__INLINE hg__v16 pass_exp_sum(const struct hg__mat *e, const struct strip *s, hg__v16 max)
{
	hg__v16 sum = {0};
	float lanes[CHUNK * HG__LANES];
	for (int64_t p = s->part->begin; p < s->part->end; p += strip_edges(s)) {
		const int64_t n = hg__min(strip_edges(s), s->part->end - p),
		              vectors = load_edges(e, s, p, n, -INFINITY, lanes);
		for (int64_t v = 0; v < vectors; v++)
			sum += hg__vexp(hg__vload(lanes + v * HG__LANES) - max);
	}
	return sum_head_lanes(s, sum);
}

HG__INLINE void pass_softmax(const struct hg__edge_softmax_args *a, const struct strip *s,
                             hg__v16 max, hg__v16 sum)
{
	float lanes[CHUNK * HG__LANES];
	for (int64_t p = s->part->begin; p < s->part->end; p += strip_edges(s)) {
		const int64_t n = hg__min(strip_edges(s), s->part->end - p),
		              vectors = load_edges(&a->e, s, p, n, 0.0f, lanes);
		for (int64_t v = 0; v < vectors; v++)
			hg__vstore(lanes + v * HG__LANES,
			           hg__vexp(hg__vload(lanes + v * HG__LANES) - max) / sum);
		store_edges(&a->p, s, p, n, lanes);
	}
}

HG__INLINE hg__v16 pass_dot(const struct hg__edge_softmax_back_args *a, const struct strip *s)
{
	hg__v16 sum = {0};
	float ps[CHUNK * HG__LANES], ds[CHUNK * HG__LANES];
	for (int64_t p = s->part->begin; p < s->part->end; p += strip_edges(s)) {
		const int64_t n = hg__min(strip_edges(s), s->part->end - p),
		              vectors = load_edges(&a->p, s, p, n, 0.0f, ps);
		(void)load_edges(&a->dp, s, p, n, 0.0f, ds);
		for (int64_t v = 0; v < vectors; v++)
			sum += hg__vload(ps + v * HG__LANES) * hg__vload(ds + v * HG__LANES);
	}
	return sum_head_lanes(s, sum);
}

HG__INLINE void pass_grad(const struct hg__edge_softmax_back_args *a, const struct strip *s,
                          hg__v16 dot)
{
	float ps[CHUNK * HG__LANES], ds[CHUNK * HG__LANES];
	for (int64_t p = s->part->begin; p < s->part->end; p += strip_edges(s)) {
		const int64_t n = hg__min(strip_edges(s), s->part->end - p),
		              vectors = load_edges(&a->p, s, p, n, 0.0f, ps);
		(void)load_edges(&a->dp, s, p, n, 0.0f, ds);
		for (int64_t v = 0; v < vectors; v++)
			hg__vstore(ds + v * HG__LANES,
			           hg__vload(ps + v * HG__LANES) * (hg__vload(ds + v * HG__LANES) - dot));
		store_edges(&a->de, s, p, n, ds);
	}
}

/* ---- phases over the items ---- */

struct job {
	const struct hg__csr *csr;
	const void *a;
	int64_t ld, heads, width; /* width: heads, rounded up to whole vectors */
	/* [2 * items, 2, width]: the maximum (or the sum of P dP) and the sum of each slot */
	float *stage;
};

static float *slot_at(const struct job *job, int64_t slot, int64_t which, int64_t h0)
{
	return job->stage + (slot * 2 + which) * job->width + h0;
}

typedef void (*phase_fn)(const struct job *job, const struct strip *s);

static void softmax_item(const struct job *job, phase_fn whole, phase_fn split, int64_t k)
{
	struct hg__item it = hg__item_begin(job->csr, k);
	struct hg__part part;
	while (hg__part_next(job->csr, &it, &part)) {
		const phase_fn phase = part.slot < 0 ? whole : split;
		for (int64_t h0 = 0; phase && h0 < job->heads; h0 += HG__LANES) {
			const int pitch = job->ld < HG__LANES ? (int)job->ld : HG__LANES;
			const struct strip s = {&part, h0, pitch, (int)hg__min(pitch, job->heads - h0)};
			phase(job, &s);
		}
	}
}

static void whole_forward(const struct job *job, const struct strip *s)
{
	const struct hg__edge_softmax_args *a = job->a;
	const hg__v16 max = pass_max(&a->e, s);
	pass_softmax(a, s, max, pass_exp_sum(&a->e, s, max));
}

static void part_max(const struct job *job, const struct strip *s)
{
	const struct hg__edge_softmax_args *a = job->a;
	hg__vstore(slot_at(job, s->part->slot, 0, s->h0), pass_max(&a->e, s));
}

static void part_sum(const struct job *job, const struct strip *s)
{
	const struct hg__edge_softmax_args *a = job->a;
	hg__vstore(slot_at(job, s->part->slot, 1, s->h0),
	           pass_exp_sum(&a->e, s, hg__vload(slot_at(job, s->part->slot, 0, s->h0))));
}

static void part_softmax(const struct job *job, const struct strip *s)
{
	pass_softmax(job->a, s, hg__vload(slot_at(job, s->part->slot, 0, s->h0)),
	             hg__vload(slot_at(job, s->part->slot, 1, s->h0)));
}

static void whole_backward(const struct job *job, const struct strip *s)
{
	pass_grad(job->a, s, pass_dot(job->a, s));
}

static void part_dot(const struct job *job, const struct strip *s)
{
	hg__vstore(slot_at(job, s->part->slot, 0, s->h0), pass_dot(job->a, s));
}

static void part_grad(const struct job *job, const struct strip *s)
{
	pass_grad(job->a, s, hg__vload(slot_at(job, s->part->slot, 0, s->h0)));
}

/* Combines a statistic of split row s. The values of the parts are combined in the order of their
 * slots, and every slot of the row receives the result. */
static void share_statistic(const struct job *job, int64_t s, int64_t which, int is_max)
{
	const struct hg__plan *plan = job->csr->plan;
	for (int64_t h = 0; h < job->width; h += HG__LANES) {
		hg__v16 all = hg__vset(is_max ? -INFINITY : 0.0f);
		for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++) {
			const hg__v16 part = hg__vload(slot_at(job, hg__split_slot(plan, s, k), which, h));
			all = is_max ? hg__vmax(part, all) : all + part;
		}
		for (int64_t k = plan->split_first[s]; k <= plan->split_last[s]; k++)
			hg__vstore(slot_at(job, hg__split_slot(plan, s, k), which, h), all);
	}
}

static hg_status prepare_edge_softmax(hg_context *ctx, struct job *job, const struct hg__csr *csr,
                                      const void *a, const struct hg__mat *e)
{
	job->csr = csr;
	job->a = a;
	job->ld = e->ld;
	job->heads = e->cols;
	job->width = hg__whole(e->cols);
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__softmax_bytes(csr, e->cols), &memory));
	job->stage = memory;
	return HG_OK;
}

size_t HG__CPU(edge_softmax_workspace)(const hg_context *ctx, const struct hg__edge_softmax_args *a)
{
	(void)ctx;
	return hg__softmax_bytes(&a->csr, a->e.cols);
}

hg_status HG__CPU(edge_softmax)(hg_context *ctx, const struct hg__edge_softmax_args *a)
{
	struct job job;
	HG__TRY(HG__FIT(
	    ctx, hg__same(&a->e, &a->p) && a->e.ld == a->p.ld && a->e.rows == a->csr.m && !a->csr.edge,
	    "edge_softmax", &a->e, &a->p));
	if (a->e.rows == 0 || a->e.cols == 0)
		return HG_OK;
	HG__TRY(prepare_edge_softmax(ctx, &job, &a->csr, a, &a->e));
	const int64_t items = hg__items(&a->csr), splits = hg__splits(&a->csr);
#pragma omp parallel num_threads(hg__team(ctx, 8 * a->csr.m * a->e.cols))
	{
#pragma omp for schedule(dynamic, 4)
		for (int64_t k = 0; k < items; k++)
			softmax_item(&job, whole_forward, part_max, k);
		if (splits) {
#pragma omp for
			for (int64_t s = 0; s < splits; s++)
				share_statistic(&job, s, 0, 1);
#pragma omp for schedule(dynamic, 4)
			for (int64_t k = 0; k < items; k++)
				softmax_item(&job, NULL, part_sum, k);
#pragma omp for
			for (int64_t s = 0; s < splits; s++)
				share_statistic(&job, s, 1, 0);
#pragma omp for schedule(dynamic, 4)
			for (int64_t k = 0; k < items; k++)
				softmax_item(&job, NULL, part_softmax, k);
		}
	}
	return HG_OK;
}

size_t HG__CPU(edge_softmax_back_workspace)(const hg_context *ctx,
                                            const struct hg__edge_softmax_back_args *a)
{
	(void)ctx;
	return hg__softmax_bytes(&a->csr, a->p.cols);
}

hg_status HG__CPU(edge_softmax_back)(hg_context *ctx, const struct hg__edge_softmax_back_args *a)
{
	struct job job;
	HG__TRY(HG__FIT(ctx,
	                hg__same(&a->p, &a->dp) && hg__same(&a->p, &a->de) && a->p.ld == a->dp.ld &&
	                    a->p.ld == a->de.ld && a->p.rows == a->csr.m && !a->csr.edge,
	                "edge_softmax_back", &a->p, &a->dp, &a->de));
	if (a->p.rows == 0 || a->p.cols == 0)
		return HG_OK;
	HG__TRY(prepare_edge_softmax(ctx, &job, &a->csr, a, &a->p));
	const int64_t items = hg__items(&a->csr), splits = hg__splits(&a->csr);
#pragma omp parallel num_threads(hg__team(ctx, 4 * a->csr.m * a->p.cols))
	{
#pragma omp for schedule(dynamic, 4)
		for (int64_t k = 0; k < items; k++)
			softmax_item(&job, whole_backward, part_dot, k);
		if (splits) {
#pragma omp for
			for (int64_t s = 0; s < splits; s++)
				share_statistic(&job, s, 0, 0);
#pragma omp for schedule(dynamic, 4)
			for (int64_t k = 0; k < items; k++)
				softmax_item(&job, NULL, part_grad, k);
		}
	}
	return HG_OK;
}
