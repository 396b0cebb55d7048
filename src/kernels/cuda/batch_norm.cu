/* Y = gamma * (X - mean) * rstd + beta, mean and variance of each column in f32.
 *
 *     train   mean = 1/n sum X,  var = 1/n sum (X - mean)^2  (two passes: no cancellation),  rstd = 1 / sqrt(var + eps)
 *             running <- (1 - momentum) running + momentum (mean, var n / (n - 1)) of the columns where both are finite
 *     else    mean and var are the running ones
 *
 * Back: xhat = (X - mean) rstd,  dgamma = sum dY xhat,  dbeta = sum dY,  dX = gamma rstd (dY - dbeta / n - xhat dgamma / n).
 *
 * Where a stripe of 8 columns fits the registers of one block (a few thousand rows), that block does all of it, in one kernel; else sums and elements take turns.
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
	__device__ void finish(int64_t col, const float (&sum)[1]) const
	{
		rstd[col] = record(col, mean[col], sum[0]);
	}
	/* rstd from the sum of squares, and the running statistics. One row has no unbiased variance: its (zero) biased one is recorded. */
	__device__ float record(int64_t col, float centre, float squares) const
	{
		const float n = static_cast<float>(rows), var = rows > 0 ? squares / n : 0.0f;
		const float unbiased = rows > 1 ? var * (n / (n - 1.0f)) : var;
		if (rows > 0 && isfinite(centre) && isfinite(unbiased)) {
			if (running_mean)
				running_mean[col] = (1.0f - momentum) * running_mean[col] + momentum * centre;
			if (running_var)
				running_var[col] = (1.0f - momentum) * running_var[col] + momentum * unbiased;
		}
		return 1.0f / sqrtf(var + eps);
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

/* What a pack of columns multiplies and adds. */
template <int W> struct column_pack {
	float mean[W], rstd[W], gamma[W], beta[W];

	__device__ float value(int i, float x) const
	{
		return gamma[i] * ((x - mean[i]) * rstd[i]) + beta[i];
	}
	/* x -> y */
	__device__ void normalise(bool relu, float (&v)[W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = value(i, v[i]);
		if (relu)
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = v[i] <= 0.0f ? 0.0f : v[i];
	}
	/* Takes from dY what relu has kept back. */
	__device__ void pass(bool relu, const float (&v)[W], float (&d)[W]) const
	{
		if (relu)
#pragma unroll
			for (int i = 0; i < W; i++)
				d[i] = value(i, v[i]) > 0.0f ? d[i] : 0.0f;
	}
	__device__ void add_gradients(const float (&v)[W], const float (&d)[W], float (&acc)[2][W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++) {
			acc[0][i] += d[i] * ((v[i] - mean[i]) * rstd[i]);
			acc[1][i] += d[i];
		}
	}
	/* x -> dx, from the means over rows of dY xhat and dY */
	__device__ void input_gradient(const float (&d)[W], const float (&dgamma)[W], const float (&dbeta)[W], float (&v)[W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = gamma[i] * rstd[i] * (d[i] - dbeta[i] - (v[i] - mean[i]) * rstd[i] * dgamma[i]);
	}
};

/* Where they are; beta NULL: not needed. */
struct column_facts {
	const float *mean, *rstd, *gamma, *beta;

	template <int W> __device__ struct column_pack<W> at(int64_t col) const {
		struct column_pack<W> p = {
		};
		load<W>(mean + col, p.mean);
		load<W>(rstd + col, p.rstd);
		load<W>(gamma + col, p.gamma);
		if (beta)
			load<W>(beta + col, p.beta);
		return p;
	}
};

struct normalise {
	struct floats x, y;
	struct column_facts of;
	bool relu;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		x.get<W>(row, col, v);
		of.at<W>(col).normalise(relu, v);
		y.put<W>(row, col, v);
	}
};

template <typename T> struct parameter_gradients {
	const T *x, *dy;
	int64_t ld_x, ld_dy;
	struct column_facts of;
	bool relu;
	float *dgamma, *dbeta;

	template <int W> __device__ void add(int64_t row, int64_t col, float (&acc)[2][W]) const
	{
		float v[W], d[W];
		load<W>(x + row * ld_x + col, v);
		load<W>(dy + row * ld_dy + col, d);
		const struct column_pack<W> p = of.at<W>(col);
		p.pass(relu, v, d);
		p.add_gradients(v, d, acc);
	}
	__device__ void finish(int64_t col, const float (&sum)[2]) const
	{
		dgamma[col] = sum[0];
		dbeta[col] = sum[1];
	}
};

struct input_gradient {
	struct floats x, dy, dx;
	struct column_facts of;
	bool relu;
	float over_rows;
	const float *dgamma, *dbeta;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], d[W], dg[W], db[W];
		x.get<W>(row, col, v);
		dy.get<W>(row, col, d);
		load<W>(dgamma + col, dg);
		load<W>(dbeta + col, db);
#pragma unroll
		for (int i = 0; i < W; i++) {
			dg[i] *= over_rows;
			db[i] *= over_rows;
		}
		const struct column_pack<W> p = of.at<W>(col);
		p.pass(relu, v, d);
		p.input_gradient(d, dg, db, v);
		dx.put<W>(row, col, v);
	}
};

/* ---- a stripe of 8 columns in the registers of one block: no fold, no second reading ---- */

/* 512 threads have 128 registers each. Forward they hold 8 rows of halves (32 registers) or 4 of floats, backward twice that: x and dy. */
constexpr int STRIPE_THREADS = 512;
template <typename T> struct stripe {
	static constexpr int ROWS = 16 / static_cast<int>(sizeof(T)), WORDS = static_cast<int>(8 * sizeof(T) / sizeof(uint4));
	static constexpr int64_t MOST = static_cast<int64_t>(ROWS) * STRIPE_THREADS;
	uint4 word[ROWS][WORDS];

	static __device__ int row(int k)
	{
		return static_cast<int>(k * STRIPE_THREADS + threadIdx.y);
	}
	/* All loads together. */
	__device__ void read(const T *x, int64_t ld, int64_t rows, int64_t col)
	{
#pragma unroll
		for (int k = 0; k < ROWS; k++)
			if (row(k) < rows)
#pragma unroll
				for (int w = 0; w < WORDS; w++)
					word[k][w] = reinterpret_cast<const uint4 *>(x + row(k) * ld + col)[w];
	}
	__device__ void get(int k, float (&v)[8]) const
	{
		T values[8];
		memcpy(static_cast<void *>(values), word[k], sizeof values);
#pragma unroll
		for (int i = 0; i < 8; i++)
			v[i] = widen(values[i]);
	}
};

/* One number a column, from thread threadIdx.y = column to all. */
static __device__ inline void spread(const float *shared, float (&v)[8])
{
#pragma unroll
	for (int i = 0; i < 8; i++)
		v[i] = shared[i];
}

template <typename T>
__global__ void __launch_bounds__(STRIPE_THREADS) stripe_kernel(int64_t cols, struct column_mean<T> mean, struct column_rstd<T> rstd, struct normalise f)
{
	__shared__ float means[8], rstds[8];
	const int64_t first = static_cast<int64_t>(blockIdx.x) * 8, col = first + threadIdx.y, rows = mean.rows;
	const bool owner = threadIdx.y < 8; /* of a column */
	struct stripe<T> x;
	struct column_pack<8> p;
	float acc[1][8] = {}, sum[1] = {}, centre = 0.0f;
	x.read(mean.x, mean.ld, rows, first);
	load<8>(f.of.gamma + first, p.gamma);
	load<8>(f.of.beta + first, p.beta);
#pragma unroll
	for (int k = 0; k < stripe<T>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[8];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < 8; i++)
				acc[0][i] += v[i];
		}
	block_column(acc, sum);
	if (owner)
		means[threadIdx.y] = centre = sum[0] / static_cast<float>(rows);
	__syncthreads();
	spread(means, p.mean);
	memset(static_cast<void *>(acc), 0, sizeof acc);
#pragma unroll
	for (int k = 0; k < stripe<T>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[8];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < 8; i++)
				acc[0][i] += (v[i] - p.mean[i]) * (v[i] - p.mean[i]);
		}
	block_column(acc, sum);
	if (owner && col < cols) {
		rstds[threadIdx.y] = rstd.rstd[col] = rstd.record(col, centre, sum[0]);
		mean.mean[col] = centre;
	} else if (owner) {
		rstds[threadIdx.y] = 0.0f;
	}
	__syncthreads();
	spread(rstds, p.rstd);
#pragma unroll
	for (int k = 0; k < stripe<T>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[8];
			x.get(k, v);
			p.normalise(f.relu, v);
			f.y.put<8>(x.row(k), first, v);
		}
}

template <typename T>
__global__ void __launch_bounds__(STRIPE_THREADS) stripe_back_kernel(int64_t rows, int64_t cols, struct parameter_gradients<T> g, struct input_gradient f)
{
	__shared__ float dgammas[8], dbetas[8];
	const int64_t first = static_cast<int64_t>(blockIdx.x) * 8, col = first + threadIdx.y;
	struct stripe<T> x, dy;
	x.read(g.x, g.ld_x, rows, first);
	dy.read(g.dy, g.ld_dy, rows, first);
	const struct column_pack<8> p = g.of.template at<8>(first);
	float acc[2][8] = {}, sum[2] = {}, v[8], d[8];
#pragma unroll
	for (int k = 0; k < stripe<T>::ROWS; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.pass(g.relu, v, d);
			p.add_gradients(v, d, acc);
		}
	block_column(acc, sum);
	if (threadIdx.y < 8) {
		if (col < cols)
			g.finish(col, sum);
		dgammas[threadIdx.y] = sum[0] * f.over_rows;
		dbetas[threadIdx.y] = sum[1] * f.over_rows;
	}
	if (!f.dx.data)
		return;
	__syncthreads();
	float dg[8], db[8];
	spread(dgammas, dg);
	spread(dbetas, db);
#pragma unroll
	for (int k = 0; k < stripe<T>::ROWS; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.pass(g.relu, v, d);
			p.input_gradient(d, dg, db, v);
			f.dx.put<8>(x.row(k), first, v);
		}
}

template <typename T> bool fits(const struct hg__mat &x)
{
	return wide(x) && x.cols > 0 && x.rows > 0 && x.rows <= stripe<T>::MOST;
}
unsigned stripes_of(const struct hg__mat &x)
{
	return grid_for(x.cols, 8);
}

/* ---- launchers ---- */

/* mean and rstd of this batch, or of the running statistics; then Y. */
template <typename T> hg_status run(hg_context *ctx, const struct hg__batch_norm_args *a, float *mean, float *rstd)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	float *running_mean = data_of<float>(a->running_mean), *running_var = data_of<float>(a->running_var);
	const struct normalise f = {floats_of(a->x), floats_of(a->y), {mean, rstd, data_of<const float>(a->gamma), data_of<const float>(a->beta)}, a->relu != 0};
	const struct column_mean<T> means = {
		data_of<const T>(a->x), rows, a->x.ld, mean
	};
	const struct column_rstd<T> rstds = {
		data_of<const T>(a->x), rows, a->x.ld, mean, rstd, running_mean, running_var, a->momentum, a->eps
	};
	if (a->train && fits<T>(a->x)) {
		stripe_kernel<T><<<stripes_of(a->x), dim3(1, STRIPE_THREADS), 0, stream_of(ctx)>>>(cols, means, rstds, f);
		return launched(ctx, "batch_norm");
	}
	if (a->train) {
		HG__TRY(columns<1>(ctx, "batch_norm", rows, cols, wide(a->x), means));
		HG__TRY(columns<1>(ctx, "batch_norm", rows, cols, wide(a->x), rstds));
	} else {
		HG__TRY(walk(ctx, "batch_norm", 1, cols, wide(a->x), use_running{running_mean, running_var, mean, rstd, a->eps}));
	}
	return walk(ctx, "batch_norm", rows, cols, wide(a->x), f);
}

template <typename T> hg_status run_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	const bool relu = a->relu != 0;
	float *dgamma = data_of<float>(a->dgamma), *dbeta = data_of<float>(a->dbeta);
	const struct column_facts of = {data_of<const float>(a->mean), data_of<const float>(a->rstd), data_of<const float>(a->gamma),
	                                relu ? data_of<const float>(a->beta) : nullptr};
	const float over_rows = rows > 0 ? 1.0f / static_cast<float>(rows) : 0.0f;
	const struct parameter_gradients<T> g = {
		data_of<const T>(a->x), data_of<const T>(a->dy), a->x.ld, a->dy.ld, of, relu, dgamma, dbeta
	};
	const struct input_gradient f = {floats_of(a->x), floats_of(a->dy), floats_of(a->dx), of, relu, over_rows, dgamma, dbeta};
	if (fits<T>(a->x)) {
		stripe_back_kernel<T><<<stripes_of(a->x), dim3(1, STRIPE_THREADS), 0, stream_of(ctx)>>>(rows, cols, g, f);
		return launched(ctx, "batch_norm_back");
	}
	HG__TRY(columns<2>(ctx, "batch_norm_back", rows, cols, wide(a->x), g));
	return a->dx.data ? walk(ctx, "batch_norm_back", rows, cols, wide(a->x), f) : HG_OK;
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
	return with_float(ctx, "batch_norm", a->x.dtype, [&](auto zero) { return run<decltype(zero)>(ctx, a, mean, rstd); });
}

extern "C" hg_status hg__cuda_batch_norm_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	if (!alike(a->x, a->dy) || !alike(a->x, a->dx) || a->x.dtype != a->dy.dtype || a->gamma.cols != a->x.cols || !a->dgamma.data || !a->dbeta.data ||
	    (a->relu && a->beta.cols != a->x.cols))
		return misfit(ctx, "batch_norm_back", a->x, a->dy);
	return with_float(ctx, "batch_norm_back", a->x.dtype, [&](auto zero) { return run_back<decltype(zero)>(ctx, a); });
}
