/* What the kernels of the sampled products share.
 *
 *     dot   E[edge p, k] = scale * r_i * s_j * sum over c in head k of A[i, c] * B[j, c]
 *     add   E[edge p, k] = f(A[i, k] + B[j, k]) */
#ifndef HG_KERNELS_CUDA_SDDMM_CUH
#define HG_KERNELS_CUDA_SDDMM_CUH

#include "kernels/cuda/edges.cuh"

struct sddmm_problem {
	struct item_plan plan;
	const int32_t *col;
	const uint32_t *edge;
	const void *a, *b;
	void *e;
	int64_t lda, ldb, lde, cols, head_cols;
	uint32_t pitch_a, pitch_b; /* bytes from row to row, if they fit 32 bits */
	int heads, e_half;
	/* 1: no factors of rows or columns, and one value per edge, in the order of the entries */
	int plain;
	float scale;
	const float *row_scale, *col_scale;
};

/* The operands of either product. */
static inline struct sddmm_problem edge_problem_of(const struct hg__csr &csr,
                                                   const struct hg__mat &a, const struct hg__mat &b,
                                                   const struct hg__mat &e)
{
	struct sddmm_problem p = {};
	p.plan = plan_of(csr);
	p.col = csr.col;
	p.edge = csr.edge;
	p.a = a.data;
	p.lda = a.ld;
	p.pitch_a = static_cast<uint32_t>(a.ld * static_cast<int64_t>(hg_dtype_size(a.dtype)));
	p.b = b.data;
	p.ldb = b.ld;
	p.pitch_b = static_cast<uint32_t>(b.ld * static_cast<int64_t>(hg_dtype_size(b.dtype)));
	p.e = e.data;
	p.lde = e.ld;
	p.e_half = e.dtype == HG_F16;
	p.cols = a.cols;
	return p;
}
static inline struct sddmm_problem dot_problem_of(const struct hg__sddmm_dot_args *a)
{
	struct sddmm_problem p = edge_problem_of(a->csr, a->a, a->b, a->e);
	p.heads = a->heads;
	p.head_cols = p.cols / p.heads;
	p.scale = a->scale;
	p.row_scale = a->row_scale;
	p.col_scale = a->col_scale;
	p.plain = !p.row_scale && !p.col_scale && !p.edge && p.lde == 1;
	return p;
}

/* The index of the edge value of a CSR entry. */
static __device__ inline int64_t edge_of(const struct sddmm_problem &p, int64_t entry)
{
	return p.edge ? p.edge[entry] : entry;
}

static __device__ inline void put_dot(const struct sddmm_problem &p, int64_t entry, int32_t i,
                                      int32_t j, int head, float dot)
{
	float value = p.scale * dot;
	int64_t at = entry;
	if (!p.plain) {
		if (p.row_scale)
			value *= p.row_scale[i];
		if (p.col_scale)
			value *= p.col_scale[j];
		at = edge_of(p, entry) * p.lde + head;
	}
	if (p.e_half)
		__stcs(static_cast<__half *>(p.e) + at, __float2half_rn(value));
	else
		__stcs(static_cast<float *>(p.e) + at, value);
}

/* Sums over `lanes` neighbouring lanes (a power of two), with the same bits in each of them. The
 * whole warp must take part. */
template <int U> static __device__ inline void lanes_total(float (&x)[U], int lanes)
{
	for (int step = lanes / 2; step > 0; step /= 2)
#pragma unroll
		for (int u = 0; u < U; u++)
			x[u] += __shfl_xor_sync(0xffffffffu, x[u], step);
}

/* A batch of n edges. Lane l has the column id and the row of edge l. */
struct edge_batch {
	int64_t first;
	int n;
	int32_t id, row;
	bool one; /* all edges belong to one row */
};

/* Calls f(batch) for the batches of a warp's item. Column ids are loaded one batch ahead. */
template <typename F> static __device__ inline void each_batch(const struct sddmm_problem &p, F f)
{
	if (own_warp() >= p.plan.items)
		return;
	const struct warp_item it(p.plan, own_warp());
	const int32_t *col = p.col + it.base;
	struct row_window window;
	window.open(p.plan, it);
	int32_t next = own_lane() < it.stop ? __ldcs(col + own_lane()) : 0;
	for (int e = 0; e < it.stop; e += 32) {
		struct edge_batch batch = {it.base + e, it.stop - e < 32 ? it.stop - e : 32, next, 0,
		                           false};
		next = e + 32 + own_lane() < it.stop ? __ldcs(col + e + 32 + own_lane()) : 0;
		batch.row = window.rows_of(p.plan, it, e, batch.n, &batch.one);
		f(batch);
	}
}

/* The kernels for dot products, the fastest first. sddmm.cu takes the first whose `fit` function
 * accepts the call. */
HG_NODISCARD bool hg__sddmm_tiles_fit(const struct hg__sddmm_dot_args *a);
HG_NODISCARD hg_status hg__sddmm_tiles(hg_context *ctx, const struct sddmm_problem &p);
HG_NODISCARD bool hg__sddmm_packs_fit(const struct hg__sddmm_dot_args *a);
HG_NODISCARD hg_status hg__sddmm_packs(hg_context *ctx, const struct sddmm_problem &p,
                                       hg_dtype dtype);
HG_NODISCARD hg_status hg__sddmm_elements(hg_context *ctx, const struct sddmm_problem &p,
                                          hg_dtype dtype);

HG_NODISCARD hg_status hg__sddmm_add(hg_context *ctx, const struct sddmm_problem &p,
                                     const struct hg__sddmm_add_args *a);

#endif
