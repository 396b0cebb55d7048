/* What the implementations of batch normalisation share: the statistics of a batch, and the
 * formulas that turn them and the gradients into elements. */
#ifndef HG_KERNELS_CUDA_BATCH_NORM_CUH
#define HG_KERNELS_CUDA_BATCH_NORM_CUH

#include "kernels/cuda/columns.cuh"

namespace
{

/* The rows that count: all of them, or the first *live. A kernel calls it after after_previous,
 * since the number may have been copied just before. */
__device__ inline int64_t rows_that_count(const int64_t *live, int64_t rows)
{
	const int64_t n = live ? *live : rows;
	return n < rows ? n : rows;
}

/* 1 / rows, by which sums over rows become means. */
__device__ inline float over(int64_t rows)
{
	return rows > 0 ? 1.0f / static_cast<float>(rows) : 0.0f;
}

/* The running statistics of a column. frozen: they must not change. */
struct running {
	float mean, var;
	bool frozen;
};

/* Where the statistics of a batch are stored. */
struct statistics {
	int64_t rows; /* that count; before `count`, those of the matrix */
	float *mean, *rstd, *running_mean, *running_var;
	float momentum, eps; /* eps: that of the stored values */
	float unit;          /* X is `unit` times the stored value */
	const int32_t *stop; /* if not 0, running statistics do not change */
	const int64_t *live; /* the number of rows that count; NULL: all of them */

	/* The same with the number of rows that count. */
	__device__ struct statistics count() const
	{
		struct statistics s = *this;
		s.rows = rows_that_count(live, rows);
		return s;
	}
	__device__ float variance(float squares) const
	{
		return rows > 0 ? squares / static_cast<float>(rows) : 0.0f;
	}
	/* rstd, from the sum of squares about the mean. */
	__device__ float scale(float squares) const
	{
		return 1.0f / sqrtf(variance(squares) + eps);
	}
	/* The running statistics of earlier batches. The caller loads them early, to hide the latency.
	 */
	__device__ struct running load_running(int64_t col) const
	{
		return {running_mean ? running_mean[col] : 0.0f, running_var ? running_var[col] : 0.0f,
		        stop && *stop};
	}
	/* Stores the statistics of a column. A single row has no unbiased variance, so its biased one
	 * (zero) is recorded. */
	__device__ void record(int64_t col, float centre, float squares,
	                       const struct running &old) const
	{
		const float n = static_cast<float>(rows), var = variance(squares),
		            unbiased = rows > 1 ? var * (n / (n - 1.0f)) : var;
		if (rows > 0 && !old.frozen && isfinite(centre) && isfinite(unbiased)) {
			if (running_mean)
				running_mean[col] = (1.0f - momentum) * old.mean + momentum * (unit * centre);
			if (running_var)
				running_var[col] =
				    (1.0f - momentum) * old.var + momentum * (unit * unit * unbiased);
		}
		mean[col] = centre;
		rstd[col] = scale(squares);
	}
};

/* The coefficients of a pack of columns. */
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
	/* The gradient of relu: sets d to 0 where the output was not positive. */
	__device__ void relu_gradient(bool relu, const float (&v)[W], float (&d)[W]) const
	{
		if (relu)
#pragma unroll
			for (int i = 0; i < W; i++)
				d[i] = value(i, v[i]) > 0.0f ? d[i] : 0.0f;
	}
	__device__ void add_gradients(const float (&v)[W], const float (&d)[W],
	                              float (&acc)[2][W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++) {
			acc[0][i] += d[i] * ((v[i] - mean[i]) * rstd[i]);
			acc[1][i] += d[i];
		}
	}
	/* x -> dx, from the means over the rows of dY xhat (dgamma) and of dY (dbeta) */
	__device__ void input_gradient(const float (&d)[W], const float (&dgamma)[W],
	                               const float (&dbeta)[W], float over_unit, float (&v)[W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = gamma[i] * (over_unit * rstd[i]) *
			       (d[i] - dbeta[i] - (v[i] - mean[i]) * rstd[i] * dgamma[i]);
	}
};

/* Pointers to the coefficients of the columns; beta NULL: not needed. */
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
	int64_t rows;
	const int64_t *live; /* as in struct statistics */

	template <int W> using pack = struct held<T, W>;
	template <int W> struct column_numbers {
		struct column_pack<W> of;
		int64_t rows; /* that count */
	};
	template <int W> __device__ struct column_numbers<W> numbers(int64_t col) const {
		return {of.at<W>(col), rows_that_count(live, rows)};
	} template <int W> __device__ void read(int64_t row, int64_t col, struct held<T, W> &v) const
	{
		v.read(x + row * ld + col);
	}
	template <int W>
	__device__ void write(int64_t row, int64_t col, const struct column_numbers<W> &n,
	                      const struct held<T, W> &held) const
	{
		float v[W] = {};
		if (row < n.rows) {
			held.get(v);
			n.of.normalise(relu, v);
		}
		store<W>(y + row * ld + col, v);
	}
};

/* One pack of X and one of dY. */
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
	int64_t rows;
	const int64_t *live; /* as in struct statistics */

	template <int W> using held = struct both<T, W>;
	template <int W> struct column_numbers {
		struct column_pack<W> of;
		int64_t rows; /* that count */
	};
	template <int W> __device__ void fetch(int64_t row, int64_t col, struct both<T, W> &h) const
	{
		h.read(x + row * ld + col, dy + row * ld + col);
	}
	template <int W> __device__ struct column_numbers<W> numbers(int64_t col) const {
		return {of.at<W>(col), rows_that_count(live, rows)};
	} template <int W>
	__device__ void use(int64_t row, int64_t, const struct column_numbers<W> &n,
	                    const struct both<T, W> &h, float (&acc)[2][W]) const
	{
		float v[W], d[W];
		if (row >= n.rows)
			return;
		h.x.get(v);
		h.dy.get(d);
		n.of.relu_gradient(relu, v, d);
		n.of.add_gradients(v, d, acc);
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
	float over_unit;
	const float *dgamma, *dbeta;
	int64_t rows;
	const int64_t *live; /* as in struct statistics */

	template <int W> using pack = struct both<T, W>;
	template <int W> struct column_numbers {
		struct column_pack<W> of;
		float dgamma[W], dbeta[W];
		int64_t rows; /* that count */
	};
	template <int W> __device__ struct column_numbers<W> numbers(int64_t col) const {
		struct column_numbers<W> n;
		n.rows = rows_that_count(live, rows);
		const float over_rows = over(n.rows);
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
	template <int W>
	__device__ void write(int64_t row, int64_t col, const struct column_numbers<W> &n,
	                      const struct both<T, W> &held) const
	{
		float v[W] = {}, d[W];
		if (row < n.rows) {
			held.x.get(v);
			held.dy.get(d);
			n.of.relu_gradient(relu, v, d);
			n.of.input_gradient(d, n.dgamma, n.dbeta, over_unit, v);
		}
		store<W>(dx + row * ld + col, v);
	}
};

/* ---- from the arguments of a call ---- */

inline struct statistics statistics_of(const struct hg__batch_norm_args *a)
{
	return {a->x.rows,
	        data_of<float>(a->mean),
	        data_of<float>(a->rstd),
	        data_of<float>(a->running_mean),
	        data_of<float>(a->running_var),
	        a->momentum,
	        ldexpf(a->eps, -2 * a->shift),
	        ldexpf(1.0f, a->shift),
	        a->stop,
	        a->live};
}
template <typename T> normalise<T> normalise_of(const struct hg__batch_norm_args *a)
{
	const struct column_facts of = {data_of<const float>(a->mean), data_of<const float>(a->rstd),
	                                data_of<const float>(a->gamma), data_of<const float>(a->beta)};
	return {data_of<const T>(a->x), data_of<T>(a->y), a->x.ld, of,
	        a->relu != 0,           a->x.rows,        a->live};
}
inline struct column_facts facts_of(const struct hg__batch_norm_back_args *a)
{
	return {data_of<const float>(a->mean), data_of<const float>(a->rstd),
	        data_of<const float>(a->gamma), a->relu ? data_of<const float>(a->beta) : nullptr};
}
template <typename T>
parameter_gradients<T> parameter_gradients_of(const struct hg__batch_norm_back_args *a)
{
	return {
	    data_of<const T>(a->x),    data_of<const T>(a->dy),  a->x.ld,   facts_of(a), a->relu != 0,
	    data_of<float>(a->dgamma), data_of<float>(a->dbeta), a->x.rows, a->live};
}
template <typename T> input_gradient<T> input_gradient_of(const struct hg__batch_norm_back_args *a)
{
	return {data_of<const T>(a->x),
	        data_of<const T>(a->dy),
	        data_of<T>(a->dx),
	        a->x.ld,
	        facts_of(a),
	        a->relu != 0,
	        ldexpf(1.0f, -a->shift),
	        data_of<const float>(a->dgamma),
	        data_of<const float>(a->dbeta),
	        a->x.rows,
	        a->live};
}

} // namespace

/* Whether batch_norm_tile.cu takes this matrix: it does everything in one kernel and reads X once.
 */
bool hg__cuda_batch_norm_is_short(const hg_context *ctx, const struct hg__mat &x);
/* Only for training. mean and rstd have memory, and the operands have been checked. */
HG_NODISCARD hg_status hg__cuda_batch_norm_tile(hg_context *ctx,
                                                const struct hg__batch_norm_args *a);
HG_NODISCARD hg_status hg__cuda_batch_norm_tile_back(hg_context *ctx,
                                                     const struct hg__batch_norm_back_args *a);

#endif
