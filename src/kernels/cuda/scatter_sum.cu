/* Sums over a list of edges in any order, and dot products on its edges (kernels.h):
 *
 *     scatter_sum   Y[i, c] = alpha r_i sum over edges e = (i, j) of w[e, head of c] s_j X[j, c]
 *                   Y = dropout(f(that + beta Z + b)) if the call has an epilogue
 *     scatter_dot   E[e, k] = scale r_i s_j sum over c in head k of A[i, c] B[j, c]
 *
 * A group of threads takes an edge, each of them a pack of columns, and adds its terms to the sums
 * of row i by reductions of 64-bit integers, which do not return what was there. The sums are
 * zeroed before and narrowed behind, each in one pass. */

#include "kernels/cuda/map.cuh"
#include "kernels/cuda/sum_epilogue.cuh"
#include "precision/integer_sum.h"

namespace
{

using word64 = unsigned long long; /* the type that 64-bit atomics need; sums may wrap around */

/* Terms from here on are no integers. */
constexpr double LEAST_ODD = 0x1p62;

/* The sums (kernels/workspace.h). Those of a pack lie as many sums apart as a row has packs, so
 * that neighbouring threads, which have neighbouring packs, reduce to neighbouring addresses. */
struct sums {
	word64 *sum;
	unsigned *odd, *most;
	int64_t lead, words;
	double bound; /* degree, times x_most and w_most where they are given */
	bool measures_x, measures_w;
	int fixed; /* s, where nothing is measured */

	template <int W> __device__ word64 *at(int64_t row, int64_t col, int i) const
	{
		return sum + row * lead + i * (lead / W) + col / W;
	}
	__device__ int scale() const
	{
		if (!measures_x && !measures_w)
			return fixed;
		const double x = measures_x ? static_cast<double>(__uint_as_float(most[0])) : 1.0,
		             w = measures_w ? static_cast<double>(__uint_as_float(most[1])) : 1.0;
		return hg__integer_scale(bound * x * w);
	}
};

/* 2^s, for the s of sums: far from both ends of the exponents. */
__device__ double power(int s)
{
	return __hiloint2double((1023 + s) << 20, 0);
}

/* The largest |element| that is finite, as its bits. */
struct largest {
	struct floats x;
	int64_t cols;
	unsigned *most;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		unsigned bits = 0;
		x.get<W>(row, col, v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			const unsigned own = __float_as_uint(v[i]) & 0x7FFFFFFFu;
			if (col + i < cols && own < 0x7F800000u && own > bits)
				bits = own;
		}
		/* a thread that would not change the maximum only reads it */
		if (__ldcg(most) < bits)
			atomicMax(most, bits);
	}
};

struct add_edges {
	struct sums to;
	const int32_t *dst, *src;
	struct floats x, w;
	const float *col_scale;
	int64_t cols, head_cols; /* head_cols: columns of a head */

	__device__ float weight(int64_t e, int64_t col) const
	{
		float f[1] = {1.0f};
		if (w.data)
			w.get<1>(e, head_cols < cols ? col / head_cols : 0, f);
		return f[0];
	}
	__device__ void mark(int64_t row, int64_t col, double term) const
	{
		const unsigned bits = isnan(term) ? 3u : term > 0.0 ? 1u : 2u;
		atomicOr(to.odd + row * to.words + col / 16, bits << 2 * (col % 16));
	}
	template <int W> __device__ void at(int64_t e, int64_t col) const
	{
		const int64_t i = dst[e], j = src[e];
		const double up = power(to.scale());
		const float s = col_scale ? col_scale[j] : 1.0f;
		float v[W];
		float f = weight(e, col) * s;
		x.get<W>(j, col, v);
#pragma unroll
		for (int k = 0; k < W; k++) {
			if (col + k >= cols)
				break;
			if (k && head_cols < cols)
				f = weight(e, col + k) * s;
			const double term = rint(static_cast<double>(f) * up * static_cast<double>(v[k]));
			if (!(fabs(term) < LEAST_ODD))
				mark(i, col + k, term);
			else if (term != 0.0)
				atomicAdd(to.at<W>(i, col, k), static_cast<word64>(static_cast<long long>(term)));
		}
	}
};

struct put_rows {
	struct sums from;
	void *y;
	int64_t ldy, cols;
	bool half;
	const float *row_scale;
	float alpha;
	struct sum_epilogue epilogue;
	struct guard guard;

	__device__ float odd_sum(unsigned bits) const
	{
		return bits == 3 ? __int_as_float(0x7FC00000) : bits == 1 ? INFINITY : -INFINITY;
	}
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const double down = power(-from.scale());
		const float factor = row_scale ? alpha * row_scale[row] : alpha;
		float v[W];
#pragma unroll
		for (int k = 0; k < W; k++) {
			const unsigned bits =
			    from.odd[row * from.words + (col + k) / 16] >> 2 * ((col + k) % 16) & 3u;
			const double sum =
			    static_cast<double>(static_cast<long long>(*from.at<W>(row, col, k)));
			v[k] = factor * (bits ? odd_sum(bits) : static_cast<float>(sum * down));
		}
		if (half)
			epilogue.put(static_cast<__half *>(y), row * ldy + col, static_cast<int32_t>(row),
			             static_cast<int32_t>(col), v, guard);
		else
			epilogue.put(static_cast<float *>(y), row * ldy + col, static_cast<int32_t>(row),
			             static_cast<int32_t>(col), v, guard);
	}
};

struct sums sums_of(const struct hg__scatter_sum_args *a, const struct hg__scatter_memory &m,
                    void *memory)
{
	char *const begin = static_cast<char *>(memory);
	struct sums s = {};
	s.sum = static_cast<word64 *>(memory);
	s.odd = reinterpret_cast<unsigned *>(begin + m.odd);
	s.most = reinterpret_cast<unsigned *>(begin + m.most);
	s.lead = m.lead;
	s.words = m.words;
	s.measures_x = !(a->x_most > 0.0f);
	s.measures_w = !(a->w_most > 0.0f);
	s.bound = a->degree * (s.measures_x ? 1.0 : static_cast<double>(a->x_most)) *
	          (s.measures_w ? 1.0 : static_cast<double>(a->w_most));
	s.fixed = hg__integer_scale(s.bound);
	return s;
}

hg_status measure(hg_context *ctx, const struct hg__mat &m, unsigned *most)
{
	const struct largest f = {floats_of(m), m.cols, most};
	return walk(ctx, "scatter_sum: scale", m.rows, m.cols, wide(m), f);
}

} // namespace

size_t hg__cuda_scatter_sum_workspace(const hg_context *, const struct hg__scatter_sum_args *a)
{
	return hg__scatter_memory(a->y.rows, a->y.cols).bytes;
}

hg_status hg__cuda_scatter_sum(hg_context *ctx, const struct hg__scatter_sum_args *a)
{
	const struct hg__scatter_memory m = hg__scatter_memory(a->y.rows, a->y.cols);
	void *memory = nullptr;
	HG__TRY(hg__scatter_sum_supported(ctx, a));
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	HG__TRY(hg__workspace(ctx, m.bytes, &memory));
	const bool by_eight = wide(a->x) && wide(a->y) && wide(a->epilogue.z);
	const struct sums sums = sums_of(a, m, memory);
	HG__CUDA(ctx, "scatter_sum: zeros", cudaMemsetAsync(memory, 0, m.bytes, stream_of(ctx)));
	if (sums.measures_x)
		HG__TRY(measure(ctx, a->x, sums.most));
	if (sums.measures_w)
		HG__TRY(measure(ctx, a->w, sums.most + 1));
	const struct add_edges add = {sums,
	                              a->coo.dst,
	                              a->coo.src,
	                              floats_of(a->x),
	                              floats_of(a->w),
	                              a->col_scale,
	                              a->y.cols,
	                              a->w.data ? a->y.cols / a->heads : a->y.cols};
	if (a->coo.m > 0)
		HG__TRY(walk(ctx, "scatter_sum", a->coo.m, a->y.cols, by_eight, add));
	const struct put_rows put = {sums,
	                             a->y.data,
	                             a->y.ld,
	                             a->y.cols,
	                             a->y.dtype == HG_F16,
	                             a->row_scale,
	                             a->alpha,
	                             sum_epilogue_of(a->epilogue),
	                             guard_of(a->overflow, a->y.cols)};
	return walk(ctx, "scatter_sum: rows", a->y.rows, a->y.cols, by_eight, put);
}

/* ---- dot products ---- */

namespace
{

struct dot_problem {
	const int32_t *dst, *src;
	struct floats a, b, e;
	int64_t m, heads, head_cols;
	float scale;
	const float *row_scale, *col_scale;
};

constexpr int TEAM = 8; /* threads of a dot product */

template <int W>
__global__ void __launch_bounds__(BLOCK) dots(const __grid_constant__ dot_problem p)
{
	after_previous();
	const int lane = static_cast<int>(threadIdx.x) % TEAM;
	const unsigned team = 0xFFu << (static_cast<int>(threadIdx.x) % 32 / TEAM * TEAM);
	for (int64_t t = global_thread() / TEAM; t < p.m * p.heads; t += global_threads() / TEAM) {
		const int64_t e = t / p.heads, k = t - e * p.heads, i = p.dst[e], j = p.src[e];
		float sum = 0.0f;
		for (int64_t c = lane * W; c < p.head_cols; c += TEAM * W) {
			float a[W], b[W];
			p.a.get<W>(i, k * p.head_cols + c, a);
			p.b.get<W>(j, k * p.head_cols + c, b);
#pragma unroll
			for (int l = 0; l < W; l++)
				sum += a[l] * b[l];
		}
		sum = lanes_sum<TEAM>(sum, team);
		const float r = p.row_scale ? p.row_scale[i] : 1.0f,
		            s = p.col_scale ? p.col_scale[j] : 1.0f, value[1] = {sum * p.scale * r * s};
		if (lane == 0)
			p.e.put<1>(e, k, value);
	}
}

} // namespace

HG__NO_WORKSPACE(scatter_dot, scatter_dot_args)

hg_status hg__cuda_scatter_dot(hg_context *ctx, const struct hg__scatter_dot_args *a)
{
	const int64_t d = a->heads > 0 ? a->a.cols / a->heads : 0;
	if (!is_float(a->a) || !is_float(a->b) || !is_float(a->e) || a->b.cols != a->a.cols ||
	    d * a->heads != a->a.cols || a->e.cols != a->heads || a->e.rows != a->coo.m ||
	    a->a.rows != a->coo.rows || a->b.rows != a->coo.cols)
		return misfit(ctx, "scatter_dot", HG__FLOATS, a->a, a->b, a->e);
	if (a->coo.m == 0 || a->heads == 0)
		return HG_OK;
	const struct dot_problem p = {a->coo.dst,      a->coo.src,   floats_of(a->a), floats_of(a->b),
	                              floats_of(a->e), a->coo.m,     a->heads,        d,
	                              a->scale,        a->row_scale, a->col_scale};
	return with_width(d % 8 == 0 && wide(a->a) && wide(a->b), [&](auto width) {
		return launch(ctx, "scatter_dot", dots<decltype(width)::value>,
		              grid_for(p.m * p.heads, BLOCK / TEAM), BLOCK, p);
	});
}
