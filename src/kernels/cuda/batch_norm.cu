/* Y = gamma * (X - mean) * rstd + beta, mean and variance of each column in f32.
 *
 *     train   mean = 1/n sum X,  var = 1/n sum (X - mean)^2  (no cancellation: two passes over registers, or moments),  rstd = 1 / sqrt(var + eps)
 *             running <- (1 - momentum) running + momentum (mean, var n / (n - 1)) of the columns where both are finite
 *     else    mean and var are the running ones
 *
 * Back: xhat = (X - mean) rstd,  dgamma = sum dY xhat,  dbeta = sum dY,  dX = gamma rstd (dY - dbeta / n - xhat dgamma / n).
 *
 * Where a stripe of columns fits the registers of one block (a few thousand rows), that block does all of it, in one kernel; else sums and elements take turns:
 * forward X is read twice and Y written, back X and dY are read twice and dX written.
 *
 * With relu Y = max(., 0), and dY counts where gamma xhat + beta > 0: computed again as it was, from X, which is read anyway. */

#include "kernels/cuda/columns.cuh"

namespace
{

/* Where the statistics of a batch go. */
struct statistics {
	int64_t rows;
	float *mean, *rstd, *running_mean, *running_var;
	float momentum, eps;

	/* rstd from the sum of squares about the centre, and the running statistics. One row has no unbiased variance: its (zero) biased one is recorded. */
	__device__ float record(int64_t col, float centre, float squares) const
	{
		const float n = static_cast<float>(rows), var = rows > 0 ? squares / n : 0.0f;
		const float unbiased = rows > 1 ? var * (n / (n - 1.0f)) : var, scale = 1.0f / sqrtf(var + eps);
		if (rows > 0 && isfinite(centre) && isfinite(unbiased)) {
			if (running_mean)
				running_mean[col] = (1.0f - momentum) * running_mean[col] + momentum * centre;
			if (running_var)
				running_var[col] = (1.0f - momentum) * running_var[col] + momentum * unbiased;
		}
		mean[col] = centre;
		rstd[col] = scale;
		return scale;
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

template <typename T> struct normalise {
	const T *x;
	T *y;
	int64_t ld;
	struct column_facts of;
	bool relu;

	template <int W> using pack = struct held<T, W>;
	template <int W> __device__ struct column_pack<W> numbers(int64_t col) const {
		return of.at<W>(col);
	} template <int W> __device__ void read(int64_t row, int64_t col, struct held<T, W> &v) const
	{
		v.read(x + row * ld + col);
	}
	template <int W> __device__ void write(int64_t row, int64_t col, const struct column_pack<W> &p, const struct held<T, W> &held) const
	{
		float v[W];
		held.get(v);
		p.normalise(relu, v);
		store<W>(y + row * ld + col, v);
	}
};

/* Packs of X and dY. */
template <typename T, int W> struct both {
	struct held<T, W> x, dy;

	__device__ void read(const T *from_x, const T *from_dy)
	{
		x.read(from_x);
		dy.read(from_dy);
	}
};

template <typename T> struct parameter_gradients {
	const T *x, *dy;
	int64_t ld;
	struct column_facts of;
	bool relu;
	float *dgamma, *dbeta;

	template <int W> using held = struct both<T, W>;
	template <int W> __device__ void fetch(int64_t row, int64_t col, struct both<T, W> &h) const
	{
		h.read(x + row * ld + col, dy + row * ld + col);
	}
	template <int W> __device__ struct column_pack<W> numbers(int64_t col) const {
		return of.at<W>(col);
	} template <int W> __device__ void use(int64_t, int64_t, const struct column_pack<W> &p, const struct both<T, W> &h, float (&acc)[2][W]) const
	{
		float v[W], d[W];
		h.x.get(v);
		h.dy.get(d);
		p.pass(relu, v, d);
		p.add_gradients(v, d, acc);
	}
	__device__ void finish(int64_t col, const float (&sum)[2]) const
	{
		dgamma[col] = sum[0];
		dbeta[col] = sum[1];
	}
};

} // namespace

template <typename T> constexpr bool fetches_first<parameter_gradients<T>> = true;

namespace
{

template <typename T> struct input_gradient {
	const T *x, *dy;
	T *dx;
	int64_t ld;
	struct column_facts of;
	bool relu;
	float over_rows;
	const float *dgamma, *dbeta;

	template <int W> using pack = struct both<T, W>;
	template <int W> struct column_numbers {
		struct column_pack<W> of;
		float dgamma[W], dbeta[W];
	};
	template <int W> __device__ struct column_numbers<W> numbers(int64_t col) const {
		struct column_numbers<W> n;
		n.of = of.at<W>(col);
		load<W>(dgamma + col, n.dgamma);
		load<W>(dbeta + col, n.dbeta);
#pragma unroll
		for (int i = 0; i < W; i++) {
			n.dgamma[i] *= over_rows;
			n.dbeta[i] *= over_rows;
		}
		return n;
	} template <int W> __device__ void read(int64_t row, int64_t col, struct both<T, W> &v) const
	{
		v.read(x + row * ld + col, dy + row * ld + col);
	}
	template <int W> __device__ void write(int64_t row, int64_t col, const struct column_numbers<W> &n, const struct both<T, W> &held) const
	{
		float v[W], d[W];
		held.x.get(v);
		held.dy.get(d);
		n.of.pass(relu, v, d);
		n.of.input_gradient(d, n.dgamma, n.dbeta, v);
		store<W>(dx + row * ld + col, v);
	}
};

/* ---- moments: mean and sum of squares about it, in one reading ----
 *
 * A thread takes its rows in runs of c, relatively to the first of each, k:  s = sum (x - k),  q = sum (x - k)^2,  mean = k + s / c,  squares = q - s^2 / c. Since k is one
 * of the c numbers, (k - mean)^2 <= squares and q <= (1 + c) squares: what the difference loses is at most c + 2 times the c roundings of q; likewise s and sum |x|.
 * That is below the gamma_n(u32) of two passes where c (c + 2) <= n: at most RUN rows, and a thread has runs of n / 32 rows at most. Two runs are merged (Chan, Golub,
 * LeVeque 1979) by
 *
 *     d = mean_b - mean_a,   mean = mean_a + d c_b / (c_a + c_b),   squares = squares_a + squares_b + d^2 c_a c_b / (c_a + c_b)
 *
 * where no two large numbers cancel: a merge rounds the mean by u32 |mean|, and there are fewer than n of them. */
constexpr int RUN = 32;
static_assert(RUN % FLIGHT == 0, "whole flights");

template <int W> struct moments {
	float count, mean[W], squares[W];

	/* b comes after this one. */
	__device__ void merge(const moments &b)
	{
		const float both = count + b.count, share = both > 0.0f ? b.count / both : 0.0f;
#pragma unroll
		for (int i = 0; i < W; i++) {
			const float d = b.mean[i] - mean[i];
			mean[i] += d * share;
			squares[i] += b.squares[i] + d * d * (count * share);
		}
		count = both;
	}
};

/* The run from row `own` on, blockDim.y rows apart, before `end`; own < end. */
template <int W, typename T> __device__ struct moments<W> run_of(const T *x, int64_t ld, int64_t own, int64_t end, int64_t col) {
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
			if (k + u < rows) { /* a branch, over which the compiler does not move the loads apart */
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
#pragma unroll
	for (int i = 0; i < W; i++) {
		const float mean = s[i] / m.count, squares = q[i] - s[i] * mean;
		m.mean[i] = first[i] + mean;
		m.squares[i] = squares < 0.0f ? 0.0f : squares;
	}
	return m;
}

/* Rows begin + y, begin + y + blockDim.y, ... before `end`. */
template <int W, typename T>
__device__ struct moments<W> moments_of(const T *x, int64_t ld, int64_t begin, int64_t end, int64_t col) {
	struct moments<W> m = {
	};
	for (int64_t row = begin + threadIdx.y; row < end; row += RUN * static_cast<int64_t>(blockDim.y))
		m.merge(run_of<W>(x, ld, row, end, col));
	return m;
}

/* What the threads of a block have, one after the other: column threadIdx.y of the pack, valid where threadIdx.y < W. All threads call it; it may be called again
 * at once. */
template <int W>
__device__ struct moments<1> block_moments(const struct moments<W> &mine) {
	__shared__ float count[BLOCK], mean[BLOCK * W], squares[BLOCK * W]; /* [y][x], [y][x][W] */
	const unsigned width = blockDim.x, here = threadIdx.y * width + threadIdx.x;
	__syncthreads(); /* an earlier call may still be reading */
	count[here] = mine.count;
#pragma unroll
	for (int i = 0; i < W; i++) {
		mean[here * W + i] = mine.mean[i];
		squares[here * W + i] = mine.squares[i];
	}
	__syncthreads();
	struct moments<1> all = {
	};
	for (unsigned y = 0; threadIdx.y < W && y < blockDim.y; y++) {
		const unsigned at = y * width + threadIdx.x;
		all.merge({count[at], {mean[at * W + threadIdx.y]}, {squares[at * W + threadIdx.y]}});
	}
	return all;
}

/* As columns_kernel: parts leave mean and squares of each column, and the last block of a tile merges them, a thread every blockDim.y-th of them. */
__device__ int64_t
end_of(const struct column_parts &p, int64_t part, int64_t rows)
{
	return part * p.each + p.each < rows ? part * p.each + p.each : rows;
}
template <int W> __device__ struct moments<W> moments_of_parts(const struct column_parts &p, int64_t rows, int64_t col) {
	struct moments<W> m = {
	};
	for (int64_t part = threadIdx.y; part < p.parts; part += blockDim.y) {
		const float *at = p.partial + part * 2 * p.pitch + col;
		struct moments<W> b;
		b.count = static_cast<float>(end_of(p, part, rows) - part * p.each);
		load<W>(at, b.mean);
		load<W>(at + p.pitch, b.squares);
		m.merge(b);
	}
	return m;
}

template <int W, typename T>
__global__ void __launch_bounds__(BLOCK, 4) moments_kernel(const T *x, int64_t ld, int64_t cols, struct column_parts p, struct statistics f)
{
	after_previous();
	const int64_t part = blockIdx.y, pack = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W, col = pack + threadIdx.y;
	const int64_t begin = part * p.each, end = pack < cols ? end_of(p, part, f.rows) : begin;
	const bool mine = threadIdx.y < W && pack < cols; /* of the padding, too: what is read later has been written */
	struct moments<1> m = block_moments(moments_of<W>(x, ld, begin, end, pack));
	if (p.parts > 1) {
		float *at = p.partial + part * 2 * p.pitch + col;
		if (mine) {
			at[0] = m.mean[0];
			at[p.pitch] = m.squares[0];
		}
		if (!is_last(p.counters + blockIdx.x, static_cast<unsigned>(p.parts)))
			return;
		m = block_moments(pack < cols ? moments_of_parts<W>(p, f.rows, pack) : moments<W>{});
	}
	if (mine && col < cols)
		(void)f.record(col, m.mean[0], m.squares[0]);
}

template <typename T> hg_status measure(hg_context *ctx, const struct hg__mat &x, const struct statistics &f)
{
	if (x.cols == 0)
		return HG_OK;
	return with_width(wide(x), [&](auto width) {
		constexpr int W = decltype(width)::value;
		struct column_layout l;
		HG__TRY(lay_columns(ctx, x.rows, x.cols, W, 2, BLOCK, &l));
		return launch(ctx, "batch_norm", moments_kernel<W, T>, l.grid, l.block, data_of<const T>(x), x.ld, x.cols, l.of, f);
	});
}

/* ---- a stripe of W columns in the registers of one block: no fold, no second reading ---- */

/* 512 threads have 128 registers each. Forward they hold 8 rows of 8 halves (32 registers) or 4 of floats, backward twice that: x and dy. */
constexpr int STRIPE_THREADS = 512;
/* What is held of a row, in one access or, of 8 floats, two. */
template <int BYTES> struct stripe_word {
	using type = uint4;
};
template <> struct stripe_word<8> {
	using type = uint2;
};
template <> struct stripe_word<4> {
	using type = unsigned;
};
template <typename T, int W> struct stripe {
	using word_type = typename stripe_word<W *static_cast<int>(sizeof(T))>::type;
	static constexpr int ROWS = 16 / static_cast<int>(sizeof(T)), WORDS = static_cast<int>(W * sizeof(T) / sizeof(word_type));
	word_type word[ROWS][WORDS];

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
					word[k][w] = reinterpret_cast<const word_type *>(x + row(k) * ld + col)[w];
	}
	__device__ void get(int k, float (&v)[W]) const
	{
		T values[W];
		memcpy(static_cast<void *>(values), word[k], sizeof values);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = widen(values[i]);
	}
};

/* One number a column, from thread threadIdx.y = column to all. */
template <int W> static __device__ inline void spread(const float *shared, float (&v)[W])
{
#pragma unroll
	for (int i = 0; i < W; i++)
		v[i] = shared[i];
}

template <typename T, int W> __global__ void __launch_bounds__(STRIPE_THREADS) stripe_kernel(int64_t cols, struct statistics stats, struct normalise<T> f)
{
	after_previous();
	__shared__ float means[W], rstds[W];
	const int64_t first = static_cast<int64_t>(blockIdx.x) * W, col = first + threadIdx.y, rows = stats.rows;
	const bool owner = threadIdx.y < W; /* of a column */
	struct stripe<T, W> x;
	struct column_pack<W> p;
	float acc[1][W] = {}, sum[1] = {}, centre = 0.0f;
	x.read(f.x, f.ld, rows, first);
	load<W>(f.of.gamma + first, p.gamma);
	load<W>(f.of.beta + first, p.beta);
#pragma unroll
	for (int k = 0; k < stripe<T, W>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[0][i] += v[i];
		}
	block_column(acc, sum);
	if (owner)
		means[threadIdx.y] = centre = sum[0] / static_cast<float>(rows);
	__syncthreads();
	spread(means, p.mean);
	memset(static_cast<void *>(acc), 0, sizeof acc);
#pragma unroll
	for (int k = 0; k < stripe<T, W>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				acc[0][i] += (v[i] - p.mean[i]) * (v[i] - p.mean[i]);
		}
	block_column(acc, sum);
	if (owner)
		rstds[threadIdx.y] = col < cols ? stats.record(col, centre, sum[0]) : 0.0f;
	__syncthreads();
	spread(rstds, p.rstd);
#pragma unroll
	for (int k = 0; k < stripe<T, W>::ROWS; k++)
		if (x.row(k) < rows) {
			float v[W];
			x.get(k, v);
			p.normalise(f.relu, v);
			store<W>(f.y + x.row(k) * f.ld + first, v);
		}
}

template <typename T, int W>
__global__ void __launch_bounds__(STRIPE_THREADS) stripe_back_kernel(int64_t rows, int64_t cols, struct parameter_gradients<T> g, struct input_gradient<T> f)
{
	after_previous();
	__shared__ float dgammas[W], dbetas[W];
	const int64_t first = static_cast<int64_t>(blockIdx.x) * W, col = first + threadIdx.y;
	struct stripe<T, W> x, dy;
	x.read(g.x, g.ld, rows, first);
	dy.read(g.dy, g.ld, rows, first);
	const struct column_pack<W> p = g.of.template at<W>(first);
	float acc[2][W] = {}, sum[2] = {}, v[W], d[W];
#pragma unroll
	for (int k = 0; k < stripe<T, W>::ROWS; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.pass(g.relu, v, d);
			p.add_gradients(v, d, acc);
		}
	block_column(acc, sum);
	if (threadIdx.y < W) {
		if (col < cols)
			g.finish(col, sum);
		dgammas[threadIdx.y] = sum[0] * f.over_rows;
		dbetas[threadIdx.y] = sum[1] * f.over_rows;
	}
	if (!f.dx)
		return;
	__syncthreads();
	float dg[W], db[W];
	spread(dgammas, dg);
	spread(dbetas, db);
#pragma unroll
	for (int k = 0; k < stripe<T, W>::ROWS; k++)
		if (x.row(k) < rows) {
			x.get(k, v);
			dy.get(k, d);
			p.pass(g.relu, v, d);
			p.input_gradient(d, dg, db, v);
			store<W>(f.dx + x.row(k) * f.ld + first, v);
		}
}

template <typename T> bool fits(const struct hg__mat &x)
{
	return wide(x) && x.cols > 0 && x.rows > 0 && x.rows <= static_cast<int64_t>(stripe<T, 8>::ROWS) * STRIPE_THREADS;
}

/* Stripes of two columns as long as each has a multiprocessor for itself: a thread then has a quarter of the arithmetic between its loads. Beyond that stripes of 8,
 * which read whole sectors of memory. Derived from counting instructions, not measured: 900 of them a thread for 8 columns and 6 rows are 2 us of 4 warps a scheduler. */
constexpr int64_t NARROW_STRIPES = 132;
template <typename F> hg_status with_stripe(const struct hg__mat &x, F f)
{
	return x.cols <= 2 * NARROW_STRIPES ? f(int_constant<2>{}) : f(int_constant<8>{});
}

/* ---- launchers ---- */

/* mean and rstd of this batch, or of the running statistics; then Y. */
template <typename T> hg_status run(hg_context *ctx, const struct hg__batch_norm_args *a, float *mean, float *rstd)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	float *running_mean = data_of<float>(a->running_mean), *running_var = data_of<float>(a->running_var);
	const struct normalise<T> f = {
		data_of<const T>(a->x), data_of<T>(a->y), a->x.ld, {mean, rstd, data_of<const float>(a->gamma), data_of<const float>(a->beta)}, a->relu != 0
	};
	const struct statistics stats = {rows, mean, rstd, running_mean, running_var, a->momentum, a->eps};
	if (a->train && fits<T>(a->x)) {
		return with_stripe(a->x, [&](auto width) {
			constexpr int W = decltype(width)::value;
			return launch(ctx, "batch_norm", stripe_kernel<T, W>, grid_for(cols, W), dim3(1, STRIPE_THREADS), cols, stats, f);
		});
	}
	if (a->train)
		HG__TRY(measure<T>(ctx, a->x, stats));
	else
		HG__TRY(walk(ctx, "batch_norm", 1, cols, wide(a->x), use_running{running_mean, running_var, mean, rstd, a->eps}));
	return stay(ctx, "batch_norm", rows, cols, wide(a->x), f);
}

template <typename T> hg_status run_back(hg_context *ctx, const struct hg__batch_norm_back_args *a)
{
	const int64_t rows = a->x.rows, cols = a->x.cols;
	const bool relu = a->relu != 0;
	const T *x = data_of<const T>(a->x), *dy = data_of<const T>(a->dy);
	float *dgamma = data_of<float>(a->dgamma), *dbeta = data_of<float>(a->dbeta);
	const struct column_facts of = {data_of<const float>(a->mean), data_of<const float>(a->rstd), data_of<const float>(a->gamma),
	                                relu ? data_of<const float>(a->beta) : nullptr};
	const float over_rows = rows > 0 ? 1.0f / static_cast<float>(rows) : 0.0f;
	const struct parameter_gradients<T> g = {
		x, dy, a->x.ld, of, relu, dgamma, dbeta
	};
	const struct input_gradient<T> f = {
		x, dy, data_of<T>(a->dx), a->x.ld, of, relu, over_rows, dgamma, dbeta
	};
	if (fits<T>(a->x)) {
		return with_stripe(a->x, [&](auto width) {
			constexpr int W = decltype(width)::value;
			return launch(ctx, "batch_norm_back", stripe_back_kernel<T, W>, grid_for(cols, W), dim3(1, STRIPE_THREADS), rows, cols, g, f);
		});
	}
	HG__TRY(columns<2>(ctx, "batch_norm_back", rows, cols, wide(a->x), g));
	return a->dx.data ? stay(ctx, "batch_norm_back", rows, cols, wide(a->x), f) : HG_OK;
}

/* Of X's type and layout, or absent. */
bool same(const struct hg__mat &x, const struct hg__mat &m)
{
	return alike(x, m) && (!m.data || x.dtype == m.dtype);
}

} // namespace

extern "C" hg_status hg__cuda_batch_norm(hg_context *ctx, const struct hg__batch_norm_args *a)
{
	if (!same(a->x, a->y) || a->gamma.cols != a->x.cols || a->beta.cols != a->x.cols)
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
	if (!same(a->x, a->dy) || !same(a->x, a->dx) || a->gamma.cols != a->x.cols || !a->dgamma.data || !a->dbeta.data || (a->relu && a->beta.cols != a->x.cols))
		return misfit(ctx, "batch_norm_back", a->x, a->dy);
	return with_float(ctx, "batch_norm_back", a->x.dtype, [&](auto zero) { return run_back<decltype(zero)>(ctx, a); });
}
