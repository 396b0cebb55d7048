/* S[i, k] = sum over c of X[i, k*d + c] * A[0, k*d + c], products and sums in f32: the two halves of additive attention.
 *
 *     dX[i, k*d + c] = dS[i, k] * A[0, k*d + c]        dA[0, k*d + c] = sum over i of dS[i, k] * X[i, k*d + c]  (f32)
 *
 * A pack of 8 columns never spans two heads: packs are used where 8 divides d, or where there is one head, whose last pack may have padding. */

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* a / b of numbers that are not negative: half as many bits where both have no more are divided in a fifth of the time. */
static __device__ inline int64_t quotient(int64_t a, int64_t b)
{
	return (a | b) <= UINT32_MAX ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b)) : a / b;
}

/* The head of a column; without a division where there is one head, whose padding belongs to it too. */
static __device__ inline int64_t head_of(int64_t col, int64_t d, int heads)
{
	return heads == 1 ? 0 : quotient(col, d);
}

static bool packs_fit(const struct hg__mat &x, int64_t d, int heads)
{
	return d % 8 == 0 || (heads == 1 && wide(x));
}

/* One sub-warp for each row and head: item = row * heads + k. */
template <typename T> struct head_dot {
	const T *x;
	int64_t ld, d;
	struct floats a, s;
	int heads;

	template <int W> __device__ void row(int64_t item, bool live) const
	{
		const int64_t i = heads == 1 ? item : quotient(item, heads), k = item - i * heads;
		float sum[1] = {0.0f}, v[W], w[W];
		for (int64_t c = static_cast<int64_t>(threadIdx.x) * W; live && c < d; c += static_cast<int64_t>(blockDim.x) * W) {
			load<W>(x + i * ld + k * d + c, v);
			a.get<W>(k * d + c, w);
#pragma unroll
			for (int j = 0; j < W; j++)
				sum[0] = c + j < d ? fmaf(v[j], w[j], sum[0]) : sum[0];
		}
		sum[0] = row_sum(sum[0]);
		if (live && threadIdx.x == 0)
			s.put<1>(i, k, sum);
	}
};

struct head_dot_dx {
	struct floats ds, a, dx;
	int64_t d;
	int heads;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float g[1], v[W];
		ds.get<1>(row, head_of(col, d, heads), g);
		a.get<W>(col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] *= g[0];
		dx.put<W>(row, col, v);
	}
};

template <typename T> struct head_dot_da {
	const T *x;
	int64_t ld, d;
	struct floats ds;
	float *da;
	int heads;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float g[1], v[W];
		ds.get<1>(row, head_of(col, d, heads), g);
		load<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] = fmaf(g[0], v[i], acc[0][i]);
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		da[col] = sum[0];
	}
};

} // namespace

extern "C" hg_status hg__cuda_head_dot(hg_context *ctx, const struct hg__head_dot_args *a)
{
	if (a->heads <= 0 || a->x.cols % a->heads != 0 || a->a.cols != a->x.cols || !is_float(a->a))
		return misfit(ctx, "head_dot", a->x, a->a);
	if (a->s.rows != a->x.rows || a->s.cols != a->heads || !is_float(a->s))
		return misfit(ctx, "head_dot", a->x, a->s);
	const int64_t d = a->x.cols / a->heads;
	return with_float(ctx, "head_dot", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		/* d = 0: the empty sum is 0 and must be written. */
		return each_row(ctx, "head_dot", a->x.rows * a->heads, d > 0 ? d : 1, packs_fit(a->x, d, a->heads),
		                head_dot<T>{data_of<const T>(a->x), a->x.ld, d, floats_of(a->a), floats_of(a->s), a->heads});
	});
}

/* Of x and a, only the one that the wanted gradient needs has to be present. */
extern "C" hg_status hg__cuda_head_dot_back(hg_context *ctx, const struct hg__head_dot_back_args *a)
{
	const int64_t rows = a->ds.rows, cols = a->dx.data ? a->dx.cols : a->x.cols, d = a->heads > 0 ? cols / a->heads : 0;
	if (a->ds.cols != a->heads || d * a->heads != cols || !is_float(a->ds))
		return misfit(ctx, "head_dot_back", a->x, a->ds);
	if (a->dx.data)
		HG__TRY(walk(ctx, "head_dot_back", rows, cols, packs_fit(a->dx, d, a->heads),
		             head_dot_dx{floats_of(a->ds), floats_of(a->a), floats_of(a->dx), d, a->heads}));
	if (!a->da.data)
		return HG_OK;
	return with_float(ctx, "head_dot_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return columns<1>(ctx, "head_dot_back", rows, cols, packs_fit(a->x, d, a->heads),
		                  head_dot_da<T>{data_of<const T>(a->x), a->x.ld, d, floats_of(a->ds), data_of<float>(a->da), a->heads});
	});
}
