/* Batch normalisation, with mean and variance of each column in f32:
 *
 *     Y = gamma * (X - mean) * rstd + beta,    rstd = 1 / sqrt(var + eps)
 *
 *     training    mean = 1/n sum X,  var = 1/n sum (X - mean)^2, without cancellation (two passes
 *                 over registers, or moments);  running <- (1 - momentum) running + momentum
 *                 (mean, var n / (n - 1)), for columns where both are finite
 *     otherwise   mean and var are the running ones
 *
 * Backward, with xhat = (X - mean) rstd:
 *
 *     dgamma = sum dY xhat,  dbeta = sum dY
 *     dX = gamma rstd (dY - dbeta / n - xhat dgamma / n)
 *
 * Where a column tile fits the registers of a block, or of a cluster of blocks, one kernel does
 * everything (batch_norm_tile.cu). Otherwise sums and element-wise kernels alternate: the forward
 * pass reads X twice and writes Y, the backward pass reads X and dY twice and writes dX.
 *
 * With relu, Y = max(., 0), and dY counts where gamma xhat + beta > 0. The backward pass recomputes
 * this value from X, which it reads anyway, with the same operations. */

#include "kernels/cuda/batch_norm.cuh"
#include "kernels/cuda/moments.cuh"

namespace
{

/* Not training: rstd and mean from the running statistics. */
struct use_running {
	const float *running_mean, *running_var;
	float *mean, *rstd;
	float eps, unit; /* eps: that of X */

	template <int W> __device__ void at(int64_t, int64_t col) const
	{
		float m[W], v[W];
		load<W>(running_mean + col, m);
		load<W>(running_var + col, v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			m[i] = m[i] / unit;
			v[i] = unit / sqrtf(v[i] + eps);
		}
		store<W>(mean + col, m);
		store<W>(rstd + col, v);
	}
};

/* ---- moments: mean and sum of squares about it, in one pass ----
 *
 * A thread processes its rows in runs of c rows, relative to the first value k of each run: s = sum
 * (x - k), q = sum (x - k)^2, mean = k + s / c, squares = q - s^2 / c.
 *
 * The difference is accurate enough: k is one of the c values, so (k - mean)^2 <= squares and q <=
 * (1 + c) squares. The difference therefore amplifies the c roundings of q at most c + 2 times, and
 * the same holds for s and sum |x|. This is below the bound gamma_n(u32) of two passes where c (c +
 * 2) <= n, which is why a run has at most RUN rows; a thread has runs of n / 32 rows at most. Runs
 * are merged (moments.cuh). */
constexpr int RUN = 32;
static_assert(RUN % FLIGHT == 0, "whole flights");

/* The moments of one run: rows own, own + blockDim.y, ... before `end`, where own < end. */
template <int W, typename T>
__device__ struct moments<W> run_of(const T *x, int64_t ld, int64_t own, int64_t end, int64_t col) {
	const int64_t all = (end - own + blockDim.y - 1) / blockDim.y, pitch = blockDim.y * ld;
	const int rows = static_cast<int>(all < RUN ? all : RUN);
	const T *at = x + own * ld + col;
	float first[W], s[W] = {}, q[W] = {};
	load_fixed<W>(at, first);
#pragma unroll 1
	for (int k = 0; k < rows; k += FLIGHT, at += FLIGHT * pitch) {
		struct held<T, W> h[FLIGHT];
#pragma unroll
		for (int u = 0; u < FLIGHT; u++)
			h[u].read(at + (k + u < rows ? u * pitch : 0));
#pragma unroll
		for (int u = 0; u < FLIGHT; u++)
			/* The branch keeps the compiler from moving the loads apart. */
			if (k + u < rows) {
				float v[W];
				h[u].get(v);
#pragma unroll
				for (int i = 0; i < W; i++) {
					const float t = v[i] - first[i];
					s[i] += t;
					q[i] += t * t;
				}
			}
	}
	struct moments<W> m;
	m.count = static_cast<float>(rows);
	const float share = 1.0f / m.count;
#pragma unroll
	for (int i = 0; i < W; i++) {
		const float mean = s[i] * share, squares = q[i] - s[i] * mean;
		m.mean[i] = first[i] + mean;
		m.squares[i] = squares < 0.0f ? 0.0f : squares;
	}
	return m;
}

/* The moments of rows begin + y, begin + y + blockDim.y, ... before `end`. */
template <int W, typename T>
__device__ struct moments<W> moments_of(const T *x, int64_t ld, int64_t begin, int64_t end,
                                        int64_t col) {
	struct moments<W> m = {
	};
	for (int64_t row = begin + threadIdx.y; row < end;
	     row += RUN * static_cast<int64_t>(blockDim.y)) {
		const struct moments<W> run = run_of<W>(x, ld, row, end, col);
		if (m.count > 0.0f)
			m.merge(run);
		else
			m = run;
	}
	return m;
}

template <int W, typename T>
__global__ void __launch_bounds__(BLOCK, 4)
    moments_kernel(const T *x, int64_t ld, int64_t cols, struct column_parts p,
                   struct statistics all)
{
	after_previous();
	const struct statistics f = all.count();
	const int64_t part = blockIdx.y,
	              pack = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W,
	              col = pack + threadIdx.y;
	const int64_t begin = part * p.each, end = pack < cols ? end_of(p, part, f.rows) : begin;
	/* This includes padding, which merge_kernel reads. */
	const bool mine = threadIdx.y < W && pack < cols;
	const struct moments<1> m = block_moments(moments_of<W>(x, ld, begin, end, pack));
	if (p.parts > 1 && mine) {
		float *at = p.partial + part * 2 * p.pitch + col;
		at[0] = m.mean[0];
		at[p.pitch] = m.squares[0];
	} else if (mine && col < cols) {
		f.record(col, m.mean[0], m.squares[0], f.load_running(col));
	}
}

template <typename T>
hg_status launch_moments(hg_context *ctx, const struct hg__mat &x, const struct statistics &f)
{
	if (x.cols == 0)
		return HG_OK;
	return with_width(wide(x), [&](auto width) {
		constexpr int W = decltype(width)::value;
		struct column_layout l;
		HG__TRY(lay_columns(ctx, x.rows, x.cols, W, 2, BLOCK, &l));
		HG__TRY(launch(ctx, "batch_norm", moments_kernel<W, T>, l.grid, l.block,
		               data_of<const T>(x), x.ld, x.cols, l.of, f));
		return l.of.parts > 1 ? merge_moments(ctx, l.of, x.cols, f) : HG_OK;
	});
}

/* ---- launchers ---- */

/* Computes mean and rstd of this batch, or from the running statistics, and then Y, without what is
 * there or not wanted. */
template <typename T> hg_status run_batch_norm(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	const struct statistics stats = statistics_of(a);
	if (a->train && !a->has_statistics)
		HG__TRY(launch_moments<T>(ctx, a->x, stats));
	else if (!a->train)
		HG__TRY(walk(ctx, "batch_norm", 1, a->x.cols, wide(a->x),
		             use_running{stats.running_mean, stats.running_var, stats.mean, stats.rstd,
		                         a->eps, stats.unit}));
	return a->y.data ? each_by_column(ctx, "batch_norm", a->x.rows, a->x.cols, wide(a->x),
	                                  normalise_of<T>(a))
	                 : HG_OK;
}

template <typename T>
hg_status run_batch_norm_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	if (!a->has_sums)
		HG__TRY(columns<2>(ctx, "batch_norm_back", rows, cols, wide(a->x),
		                   parameter_gradients_of<T>(a)));
	return a->dx.data ? each_by_column(ctx, "batch_norm_back", rows, cols, wide(a->x),
	                                   input_gradient_of<T>(a))
	                  : HG_OK;
}

/* Whether m is absent, or has the type and the layout of X. */
bool has_layout(const struct hg__mat &x, const struct hg__mat &m)
{
	return alike(x, m) && (!m.data || x.dtype == m.dtype);
}

} // namespace

size_t hg__cuda_batch_norm_workspace(const hg_context *, const struct hg__batch_norm_args *a)
{
	/* sums over the rows, or room for statistics that are not kept */
	return a->train || !a->mean.data || !a->rstd.data ? hg__reduction_bytes(a->x.rows, a->x.cols)
	                                                  : 0;
}

extern "C" hg_status hg__cuda_batch_norm(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	if (!has_layout(a->x, a->y) || a->gamma.cols != a->x.cols || a->beta.cols != a->x.cols)
		return misfit(ctx, "batch_norm", HG__ONE_FLOAT, a->x, a->y);
	struct hg__batch_norm_args b = *a;
	if (!a->mean.data || !a->rstd.data) {
		if (a->train)
			return hg__fail(ctx, HG_ERR_INTERNAL,
			                "batch_norm: training without room for the statistics");
		void *memory;
		HG__TRY(hg__workspace(ctx, static_cast<size_t>(2 * a->x.ld) * sizeof(float), &memory));
		b.mean.data = memory;
		b.rstd.data = static_cast<float *>(memory) + a->x.ld;
	}
	if (a->train && a->y.data && !a->has_statistics && hg__cuda_batch_norm_is_short(ctx, a->x))
		return hg__cuda_batch_norm_tile(ctx, &b);
	return with_float(ctx, "batch_norm", a->x.dtype,
	                  [&](auto zero) { return run_batch_norm<decltype(zero)>(ctx, &b); });
}

size_t hg__cuda_batch_norm_back_workspace(const hg_context *,
                                          const struct hg__batch_norm_back_args *a)
{
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_batch_norm_back(hg_context *ctx,
                                              const struct hg__batch_norm_back_args *a)
{
	if (!has_layout(a->x, a->dy) || !has_layout(a->x, a->dx) || a->gamma.cols != a->x.cols ||
	    !a->dgamma.data || !a->dbeta.data || (a->relu && a->beta.cols != a->x.cols))
		return misfit(ctx, "batch_norm_back", HG__ONE_FLOAT, a->x, a->dy, a->dx);
	if (!a->has_sums && hg__cuda_batch_norm_is_short(ctx, a->x))
		return hg__cuda_batch_norm_tile_back(ctx, a);
	return with_float(ctx, "batch_norm_back", a->x.dtype,
	                  [&](auto zero) { return run_batch_norm_back<decltype(zero)>(ctx, a); });
}
