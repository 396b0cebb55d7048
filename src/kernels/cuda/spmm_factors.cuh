/* The arguments of the aggregation kernels (spmm), and how a term f X[j, c] gets its factor f[p,
 * head of c], which is w[edge p, head] * s_j, or w, or s_j, or 1. */
#ifndef HG_KERNELS_CUDA_SPMM_FACTORS_CUH
#define HG_KERNELS_CUDA_SPMM_FACTORS_CUH

#include "kernels/cuda/by_length.cuh"
#include "kernels/cuda/sum_epilogue.cuh"

struct spmm_problem {
	struct part_list parts;
	struct item_plan plan; /* used by the fold of split rows */
	const int32_t *col;
	const uint32_t *edge;
	const void *x, *w;
	void *y;
	int64_t ldw, ldy, cols, head_cols;
	uint32_t pitch; /* bytes from one row of X to the next */
	int heads, w_half;
	bool y_full;                        /* Y is f32, whatever the type of X */
	const float *row_scale, *col_scale; /* col_scale is NULL if X was scaled before */
	float alpha;
	float *staging; /* [2 * items, lead] */
	int64_t lead;
	struct sum_epilogue epilogue;
	struct guard guard;
	/* NULL, or in device memory: if it is 0, the tiles have computed the whole result */
	const unsigned *spoiled;
};

/* How a term is weighted:
 *
 * - UNIT: not at all.
 * - WEIGHT_F16, WEIGHT_F32: by an edge weight. The weights of neighbouring entries are contiguous.
 * - SCALED: by the scale of the column.
 * - ROUNDED: the same, but the product with X is narrowed before it is added (scale_first).
 * - BY_LANE: by one factor for all columns of a lane, that of its head.
 * - BY_COLUMN: by one factor for each column of a lane, where heads do not begin at multiples of
 *   the pack. */
enum {
	UNIT = 0,
	WEIGHT_F16 = 1,
	WEIGHT_F32 = 2,
	SCALED = 3,
	ROUNDED = 4,
	BY_LANE = 5,
	BY_COLUMN = 6,
	FACTORS = 7
};

/* ---- arithmetic in the accumulator's type: one rounding for each operation; only `fused`
 * contracts, and only in f32 ---- */

template <int MODE> struct accumulator {
	using type = __half;
};
template <> struct accumulator<HG_ACC_F32> {
	using type = float;
};

static __device__ inline float add(float a, float b)
{
	return __fadd_rn(a, b);
}
static __device__ inline float mul(float a, float b)
{
	return __fmul_rn(a, b);
}
static __device__ inline __half add(__half a, __half b)
{
	return __hadd_rn(a, b);
}
static __device__ inline __half mul(__half a, __half b)
{
	return __hmul_rn(a, b);
}
/* a * b + c, with one rounding in f32 and two in f16 */
static __device__ inline float fused(float a, float b, float c)
{
	return __fmaf_rn(a, b, c);
}
static __device__ inline __half fused(__half a, __half b, __half c)
{
	return __hadd_rn(__hmul_rn(a, b), c);
}

static __device__ inline float row_factor(const struct spmm_problem &p, int32_t row)
{
	return p.row_scale ? p.row_scale[row] : 1.0f;
}

/* The weights of CSR entry e for heads head[0 .. K-1] of a lane. Where every column has its own
 * head, they are contiguous and take one load. */
template <int K>
static __device__ inline void weights(const struct spmm_problem &p, int64_t e, const int (&head)[K],
                                      float (&w)[K])
{
	const int64_t row = (p.edge ? p.edge[e] : e) * p.ldw;
	const __half *half = static_cast<const __half *>(p.w) + row;
	const float *full = static_cast<const float *>(p.w) + row;
	if (K > 1 && p.head_cols == 1) {
		if (p.w_half)
			load<K>(half + head[0], w);
		else
			load<K>(full + head[0], w);
		return;
	}
#pragma unroll
	for (int i = 0; i < K; i++)
		w[i] = p.w_half ? __half2float(half[head[i]]) : full[head[i]];
}

/* f[i] = w * s for CSR entry e = (i, j). */
template <typename N, int K>
static __device__ inline void factors(const struct spmm_problem &p, int64_t e, int32_t j,
                                      const int (&head)[K], N (&f)[K])
{
	float w[K];
	if (p.w)
		weights(p, e, head, w);
#pragma unroll
	for (int i = 0; i < K; i++) {
		f[i] = narrow<N>(p.w ? w[i] : 1.0f);
		if (p.col_scale)
			f[i] = mul(f[i], narrow<N>(p.col_scale[j]));
	}
}

/* ---- factors that the lanes of a sub-warp share ---- */

/* Values of which each entry has one besides its column id. The lane that holds the entry loads
 * them: a weight one step ahead, or the scale of the column. HELD: registers per lane. */
template <typename T, int HELD> struct shared_weights {
	T now[HELD], next[HELD];
	__device__ void ahead(const struct spmm_problem &p, int k, int64_t entry)
	{
		next[k] = static_cast<const T *>(p.w)[entry];
	}
	__device__ void nothing_ahead(int k)
	{
		next[k] = T(0.0f);
	}
	__device__ void turn()
	{
#pragma unroll
		for (int k = 0; k < HELD; k++)
			now[k] = next[k];
	}
	__device__ void look_up(const struct spmm_problem &, bool, int, int32_t)
	{
	}
};
template <int HELD> struct shared_scales {
	float now[HELD];
	__device__ void ahead(const struct spmm_problem &, int, int64_t)
	{
	}
	__device__ void nothing_ahead(int)
	{
	}
	__device__ void turn()
	{
	}
	__device__ void look_up(const struct spmm_problem &p, bool live, int k, int32_t id)
	{
		now[k] = live ? __ldg(p.col_scale + id) : 0.0f;
	}
};
template <int HELD> struct nothing_shared {
	float now[HELD];
	__device__ void ahead(const struct spmm_problem &, int, int64_t)
	{
	}
	__device__ void nothing_ahead(int)
	{
	}
	__device__ void turn()
	{
	}
	__device__ void look_up(const struct spmm_problem &, bool, int, int32_t)
	{
	}
};
template <int FACTOR, int HELD> struct shared_factors : nothing_shared<HELD> {
};
template <int HELD> struct shared_factors<WEIGHT_F16, HELD> : shared_weights<__half, HELD> {
};
template <int HELD> struct shared_factors<WEIGHT_F32, HELD> : shared_weights<float, HELD> {
};
template <int HELD> struct shared_factors<SCALED, HELD> : shared_scales<HELD> {
};
template <int HELD> struct shared_factors<ROUNDED, HELD> : shared_scales<HELD> {
};

#endif
