/* Measures swamping, the loss of terms that are too small to change an f16 sum, on a sample of
 * rows:
 *
 *     swamped = max over rows i of the sample and columns c of |Y[i, c] - sum of t| / sum of |t|
 *     t = alpha r_i w s_j X[j, c], in f64 */
#include "kernels/observe.h"

#include "kernels/cpu/rows.h"

#define COLUMNS 64

struct probe_sums {
	double sum[COLUMNS], size[COLUMNS]; /* the sums of t and of |t|, without the factor alpha r_i */
};

static void add_probe_edge(const struct hg__probe *p, int64_t e, int64_t first, int64_t n,
                           struct probe_sums *s)
{
	const int64_t edge = p->edge ? p->edge[e] : e,
	              per_head = p->heads > 1 ? p->y.cols / p->heads : p->y.cols;
	const double scale = p->col_scale ? (double)p->col_scale[p->col[e]] : 1.0;
	for (int64_t c = 0; c < n; c++) {
		const double w = p->w.data ? (double)hg__get(&p->w, edge, (first + c) / per_head) : 1.0;
		const double t = w * scale * (double)hg__get(&p->x, p->col[e], first + c);
		s->sum[c] += t;
		s->size[c] += fabs(t);
	}
}

static float largest_deviation(const struct hg__probe *p, int64_t row, int64_t first, int64_t n,
                               const struct probe_sums *s)
{
	const double factor = (double)p->alpha * (p->row_scale ? (double)p->row_scale[row] : 1.0);
	float most = 0.0f;
	for (int64_t c = 0; c < n; c++) {
		const double size = fabs(factor) * s->size[c],
		             deviation =
		                 fabs((double)hg__get(&p->y, row, first + c) - factor * s->sum[c]) / size;
		if (size > 0.0 && size < INFINITY && deviation < INFINITY)
			most = (float)deviation > most ? (float)deviation : most;
	}
	return most;
}

static uint64_t probe_row(const struct hg__probe *p, int32_t row)
{
	float most = 0.0f;
	for (int64_t first = 0; first < p->y.cols; first += COLUMNS) {
		const int64_t n = hg__min(COLUMNS, p->y.cols - first);
		struct probe_sums s = {{0.0}, {0.0}};
		for (int64_t e = p->rowptr[row]; e < p->rowptr[row + 1]; e++)
			add_probe_edge(p, e, first, n, &s);
		const float mine = largest_deviation(p, row, first, n, &s);
		most = mine > most ? mine : most;
	}
	return hg__swamped(hg__float_bits(most), row);
}

HG__NO_WORKSPACE(spmm_probe, spmm_probe_args)

hg_status HG__CPU(spmm_probe)(hg_context *ctx, const struct hg__spmm_probe_args *a)
{
	if (!hg__is_due(&a->due))
		return HG_OK;
	for (int64_t i = 0; i < a->count; i++) {
		const struct hg__probe *p = &a->probes[i];
		uint64_t most = a->counts[p->record].swamped;
		HG__TRY(HG__FIT(ctx, hg__is_state(&p->x) && hg__is_state(&p->y) && p->x.cols == p->y.cols,
		                "spmm_probe", &p->x, &p->w, &p->y));
#pragma omp parallel for num_threads(hg__team(ctx, HG__SERIAL_WORK)) schedule(dynamic) \
    reduction(max                                                                      \
              : most)
		for (int64_t k = 0; k < p->samples; k++) {
			const uint64_t mine = probe_row(p, p->sample[k]);
			most = mine > most ? mine : most;
		}
		a->counts[p->record].swamped = most;
	}
	return HG_OK;
}
