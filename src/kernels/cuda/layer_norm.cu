/* Layer normalisation, with mean and variance of each row in f32:
 *
 *     Y = gamma * (X - mean) * rstd + beta
 *
 * A row is read three times: for the mean, for the centred squares and for the result. The second
 * and third time it is in the cache. Backward, with d columns and g = gamma dY:
 *
 *     dX = rstd (g - 1/d sum g - xhat 1/d sum g xhat)
 *     dgamma = sum over rows of dY xhat,  dbeta = sum over rows of dY */

#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

template <typename T> struct layer_norm {
	const T *x;
	struct floats y;
	int64_t ld_x, cols;
	const float *gamma, *beta;
	float *mean, *rstd;
	float eps;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, first = static_cast<int64_t>(threadIdx.x) * W,
		              step = static_cast<int64_t>(blockDim.x) * W;
		const float d = static_cast<float>(cols);
		float v[W], sum = 0.0f, squares = 0.0f;
		for (int64_t col = first; col < end; col += step) {
			load<W>(x + row * ld_x + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum += col + i < end ? v[i] : 0.0f;
		}
		const float m = row_sum(sum) / d;
		for (int64_t col = first; col < end; col += step) {
			load<W>(x + row * ld_x + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				squares += col + i < end ? (v[i] - m) * (v[i] - m) : 0.0f;
		}
		const float r = 1.0f / sqrtf(row_sum(squares) / d + eps);
		for (int64_t col = first; col < end; col += step) {
			float g[W], b[W];
			load<W>(x + row * ld_x + col, v);
			load<W>(gamma + col, g);
			load<W>(beta + col, b);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = g[i] * ((v[i] - m) * r) + b[i];
			y.put<W>(row, col, v);
		}
		if (live && threadIdx.x == 0 && mean) {
			mean[row] = m;
			rstd[row] = r;
		}
	}
};

template <typename T> struct input_gradient {
	const T *x, *dy;
	struct floats dx;
	int64_t ld_x, ld_dy, cols;
	const float *gamma, *mean, *rstd;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? cols : 0, first = static_cast<int64_t>(threadIdx.x) * W,
		              step = static_cast<int64_t>(blockDim.x) * W;
		const float d = static_cast<float>(cols), m = live ? mean[row] : 0.0f,
		            r = live ? rstd[row] : 0.0f;
		float v[W], g[W], dv[W], sum_g = 0.0f, sum_gx = 0.0f;
		for (int64_t col = first; col < end; col += step) {
			load<W>(x + row * ld_x + col, v);
			load<W>(dy + row * ld_dy + col, dv);
			load<W>(gamma + col, g);
#pragma unroll
			for (int i = 0; i < W; i++) {
				sum_g += col + i < end ? g[i] * dv[i] : 0.0f;
				sum_gx += col + i < end ? g[i] * dv[i] * ((v[i] - m) * r) : 0.0f;
			}
		}
		sum_g = row_sum(sum_g) / d;
		sum_gx = row_sum(sum_gx) / d;
		for (int64_t col = first; col < end; col += step) {
			load<W>(x + row * ld_x + col, v);
			load<W>(dy + row * ld_dy + col, dv);
			load<W>(gamma + col, g);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = r * (g[i] * dv[i] - sum_g - (v[i] - m) * r * sum_gx);
			dx.put<W>(row, col, v);
		}
	}
};

template <typename T> struct parameter_gradients {
	const T *x, *dy;
	int64_t ld_x, ld_dy;
	const float *mean, *rstd;
	float *dgamma, *dbeta;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[2][W]) const
	{
		const float m = mean[row], r = rstd[row];
		float v[W], d[W];
		load<W>(x + row * ld_x + col, v);
		load<W>(dy + row * ld_dy + col, d);
#pragma unroll
		for (int i = 0; i < W; i++) {
			acc[0][i] += d[i] * ((v[i] - m) * r);
			acc[1][i] += d[i];
		}
	}
	__device__ void finish(int64_t col, const float (&sum)[2]) const
	{
		if (dgamma)
			dgamma[col] = sum[0];
		if (dbeta)
			dbeta[col] = sum[1];
	}
};

} // namespace

HG__NO_WORKSPACE(layer_norm, layer_norm_args)

extern "C" hg_status hg__cuda_layer_norm(hg_context *ctx, const struct hg__layer_norm_args *a)
{
	if (!alike(a->x, a->y) || a->gamma.cols != a->x.cols || a->beta.cols != a->x.cols)
		return misfit(ctx, "layer_norm", HG__FLOATS, a->x, a->y);
	return with_float(ctx, "layer_norm", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "layer_norm", a->x.rows, a->x.cols, wide(a->x),
		                layer_norm<T>{data_of<const T>(a->x), floats_of(a->y), a->x.ld, a->x.cols,
		                              data_of<const float>(a->gamma), data_of<const float>(a->beta),
		                              data_of<float>(a->mean), data_of<float>(a->rstd), a->eps});
	});
}

size_t hg__cuda_layer_norm_back_workspace(const hg_context *,
                                          const struct hg__layer_norm_back_args *a)
{
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_layer_norm_back(hg_context *ctx,
                                              const struct hg__layer_norm_back_args *a)
{
	if (!alike(a->x, a->dy) || !alike(a->x, a->dx) || a->x.dtype != a->dy.dtype ||
	    a->gamma.cols != a->x.cols)
		return misfit(ctx, "layer_norm_back", HG__ONE_FLOAT, a->x, a->dy);
	const float *mean = data_of<const float>(a->mean), *rstd = data_of<const float>(a->rstd);
	return with_float(ctx, "layer_norm_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		const T *x = data_of<const T>(a->x), *dy = data_of<const T>(a->dy);
		if (a->dx.data)
			HG__TRY(
			    each_row(ctx, "layer_norm_back", a->x.rows, a->x.cols, wide(a->x),
			             input_gradient<T>{x, dy, floats_of(a->dx), a->x.ld, a->dy.ld, a->x.cols,
			                               data_of<const float>(a->gamma), mean, rstd}));
		if (a->dgamma.data || a->dbeta.data)
			HG__TRY(columns<2>(ctx, "layer_norm_back", a->x.rows, a->x.cols, wide(a->x),
			                   parameter_gradients<T>{x, dy, a->x.ld, a->dy.ld, mean, rstd,
			                                          data_of<float>(a->dgamma),
			                                          data_of<float>(a->dbeta)}));
		return HG_OK;
	});
}
