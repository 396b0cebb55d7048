/* Y = gamma * (X - mean) * rstd + beta, mean and variance of each column in f32.
 *
 *     train   mean = 1/n sum X,  var = 1/n sum (X - mean)^2  (two passes: no cancellation),  rstd = 1 / sqrt(var + eps)
 *             running <- (1 - momentum) running + momentum (mean, var n / (n - 1)) of the columns where both are finite
 *     else    mean and var are the running ones
 *
 * Back: xhat = (X - mean) rstd,  dgamma = sum dY xhat,  dbeta = sum dY,  dX = gamma rstd (dY - dbeta / n - xhat dgamma / n).
 *
 * With relu Y = max(., 0), and dY counts where gamma xhat + beta > 0: computed again as it was, from X, which is read anyway. */

#include "kernels/cuda/columns.cuh"

namespace
{

template <typename T> struct column_mean {
	const T *x;
	int64_t rows, ld;
	float *mean;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float v[W];
		load<W>(x + row * ld + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += v[i];
	}
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		mean[col] = rows > 0 ? sum[0] / static_cast<float>(rows) : 0.0f;
	}
};

template <typename T> struct column_rstd {
	const T *x;
	int64_t rows, ld;
	const float *mean;
	float *rstd, *running_mean, *running_var;
	float momentum, eps;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[1][W]) const
	{
		float v[W], m[W];
		load<W>(x + row * ld + col, v);
		load<W>(mean + col, m);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[0][i] += (v[i] - m[i]) * (v[i] - m[i]);
	}
	/* One row has no unbiased variance: its (zero) biased one is recorded. */
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		const float n = static_cast<float>(rows), var = rows > 0 ? sum[0] / n : 0.0f;
		const float unbiased = rows > 1 ? var * (n / (n - 1.0f)) : var;
		rstd[col] = 1.0f / sqrtf(var + eps);
		if (rows == 0 || !isfinite(mean[col]) || !isfinite(unbiased))
			return;
		if (running_mean)
			running_mean[col] = (1.0f - momentum) * running_mean[col] + momentum * mean[col];
		if (running_var)
			running_var[col] = (1.0f - momentum) * running_var[col] + momentum * unbiased;
	}
};

/* Not training: the statistics of the run before. */
struct use_running {
	const float *running_mean, *running_var;
	float *mean, *rstd;
	float eps;

	template <int W> __device__ void at(int64_t, int64_t col) const
	{
		float m[W], v[W];
		load<W>(running_mean + col, m);
		load<W>(running_var + col, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = 1.0f / sqrtf(v[i] + eps);
		store<W>(mean + col, m);
		store<W>(rstd + col, v);
	}
};

struct normalise {
	struct floats x, y;
	const float *mean, *rstd, *gamma, *beta;
	bool relu;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], m[W], r[W], g[W], b[W];
		x.get<W>(row, col, v);
		load<W>(mean + col, m);
		load<W>(rstd + col, r);
		load<W>(gamma + col, g);
		load<W>(beta + col, b);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = g[i] * ((v[i] - m[i]) * r[i]) + b[i];
		if (relu)
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = v[i] <= 0.0f ? 0.0f : v[i];
		y.put<W>(row, col, v);
	}
};

/* Takes from dY what relu has kept back; beta NULL: there was none. */
struct passed {
	const float *gamma, *beta;

	template <int W> __device__ void keep(int64_t col, const float (&v)[W], const float (&m)[W], const float (&r)[W], float (&d)[W]) const
	{
		if (!beta)
			return;
		float g[W], b[W];
		load<W>(gamma + col, g);
		load<W>(beta + col, b);
#pragma unroll
		for (int i = 0; i < W; i++)
			d[i] = g[i] * ((v[i] - m[i]) * r[i]) + b[i] > 0.0f ? d[i] : 0.0f;
	}
};

template <typename T> struct parameter_gradients {
	const T *x, *dy;
	int64_t ld_x, ld_dy;
	const float *mean, *rstd;
	struct passed relu;
	float *dgamma, *dbeta;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[2][W]) const
	{
		float v[W], d[W], m[W], r[W];
		load<W>(x + row * ld_x + col, v);
		load<W>(dy + row * ld_dy + col, d);
		load<W>(mean + col, m);
		load<W>(rstd + col, r);
		relu.keep<W>(col, v, m, r, d);
#pragma unroll
		for (int i = 0; i < W; i++) {
			acc[0][i] += d[i] * ((v[i] - m[i]) * r[i]);
			acc[1][i] += d[i];
		}
	}
	__device__ void finish(int64_t col, const float (&sum)[2]) const
	{
		dgamma[col] = sum[0];
		dbeta[col] = sum[1];
	}
};

struct input_gradient {
	struct floats x, dy, dx;
	int64_t rows;
	const float *mean, *rstd, *gamma, *dgamma, *dbeta;
	struct passed relu;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const float n = static_cast<float>(rows);
		float v[W], d[W], m[W], r[W], g[W], dg[W], db[W];
		x.get<W>(row, col, v);
		dy.get<W>(row, col, d);
		load<W>(mean + col, m);
		load<W>(rstd + col, r);
		load<W>(gamma + col, g);
		load<W>(dgamma + col, dg);
		load<W>(dbeta + col, db);
		relu.keep<W>(col, v, m, r, d);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = g[i] * r[i] * (d[i] - db[i] / n - (v[i] - m[i]) * r[i] * dg[i] / n);
		dx.put<W>(row, col, v);
	}
};

/* mean and rstd of this batch, or of the running statistics. */
template <typename T> hg_status statistics(hg_context *ctx, const struct hg__batch_norm_args *a, float *mean, float *rstd)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	float *running_mean = data_of<float>(a->running_mean), *running_var = data_of<float>(a->running_var);
	if (!a->train)
		return walk(ctx, "batch_norm", 1, cols, wide(a->x), use_running{running_mean, running_var, mean, rstd, a->eps});
	HG__TRY(columns<1>(ctx, "batch_norm", rows, cols, wide(a->x), column_mean<T>{data_of<const T>(a->x), rows, a->x.ld, mean}));
	return columns<1>(ctx, "batch_norm", rows, cols, wide(a->x),
	                  column_rstd<T>{data_of<const T>(a->x), rows, a->x.ld, mean, rstd, running_mean, running_var, a->momentum, a->eps});
}

} // namespace

extern "C" hg_status hg__cuda_batch_norm(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	if (!alike(a->x, a->y) || a->gamma.cols != a->x.cols || a->beta.cols != a->x.cols)
		return misfit(ctx, "batch_norm", a->x, a->y);
	float *mean = data_of<float>(a->mean), *rstd = data_of<float>(a->rstd);
	if (!mean || !rstd) {
		if (a->train)
			return hg__fail(ctx, HG_ERR_INTERNAL, "batch_norm: training without room for the statistics");
		void *memory;
		HG__TRY(hg__workspace(ctx, static_cast<size_t>(2 * a->x.ld) * sizeof(float), &memory));
		mean = static_cast<float *>(memory);
		rstd = mean + a->x.ld;
	}
	HG__TRY(with_float(ctx, "batch_norm", a->x.dtype, [&](auto zero) { return statistics<decltype(zero)>(ctx, a, mean, rstd); }));
	return walk(ctx, "batch_norm", a->x.rows, a->x.cols, wide(a->x),
	            normalise{floats_of(a->x), floats_of(a->y), mean, rstd, data_of<const float>(a->gamma), data_of<const float>(a->beta), a->relu != 0});
}

extern "C" hg_status hg__cuda_batch_norm_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	if (!alike(a->x, a->dy) || !alike(a->x, a->dx) || a->x.dtype != a->dy.dtype || a->gamma.cols != a->x.cols || !a->dgamma.data || !a->dbeta.data ||
	    (a->relu && a->beta.cols != a->x.cols))
		return misfit(ctx, "batch_norm_back", a->x, a->dy);
	float *dgamma = data_of<float>(a->dgamma), *dbeta = data_of<float>(a->dbeta);
	const float *mean = data_of<const float>(a->mean), *rstd = data_of<const float>(a->rstd), *gamma = data_of<const float>(a->gamma);
	const struct passed relu = {gamma, a->relu ? data_of<const float>(a->beta) : nullptr};
	HG__TRY(with_float(ctx, "batch_norm_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return columns<2>(ctx, "batch_norm_back", a->x.rows, a->x.cols, wide(a->x),
		                  parameter_gradients<T>{data_of<const T>(a->x), data_of<const T>(a->dy), a->x.ld, a->dy.ld, mean, rstd, relu, dgamma, dbeta});
	}));
	if (!a->dx.data)
		return HG_OK;
	return walk(ctx, "batch_norm_back", a->x.rows, a->x.cols, wide(a->x),
	            input_gradient{floats_of(a->x), floats_of(a->dy), floats_of(a->dx), a->x.rows, mean, rstd, gamma, dgamma, dbeta, relu});
}
