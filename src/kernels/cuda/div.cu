/* Y = A / B, where B has A's shape, one value per row, or one value in all. Backward: dB = - (sum
 * of dY (A / B)) / B. Memory traffic is one pass over A, Y and B, and backward one pass over A and
 * dY. */

#include "kernels/cuda/rows.cuh"

namespace
{

/* B, broadcast to the shape of A. */
struct divisor {
	struct floats b;
	bool each, all; /* each: one per element; all: one for all rows */

	template <int W> __device__ void get(int64_t row, int64_t col, float (&v)[W]) const
	{
		if (each) {
			b.get<W>(row, col, v);
			return;
		}
		const float d = of_row(row);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = d;
	}
	__device__ float of_row(int64_t row) const
	{
		float v[1];
		b.get<1>(all ? 0 : row, 0, v);
		return v[0];
	}
};
bool each_divides(const struct hg__mat &a, const struct hg__mat &b)
{
	return a.rows == b.rows && a.cols == b.cols;
}
struct divisor divisor_of(const struct hg__mat &a, const struct hg__mat &b)
{
	return {floats_of(b), each_divides(a, b), b.rows == 1};
}
bool divides(const struct hg__mat &a, const struct hg__mat &b)
{
	return alike(a, b) || (is_float(b) && b.cols == 1 && (b.rows == 1 || b.rows == a.rows));
}

/* Padding stays 0, where it would otherwise be 0 / 0. */
struct quotient {
	struct floats a, y;
	struct divisor by;
	int64_t cols;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], b[W];
		a.get<W>(row, col, v);
		by.get<W>(row, col, b);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = col + i < cols ? v[i] / b[i] : 0.0f;
		y.put<W>(row, col, v);
	}
};

/* dY (A / B) of a pack; 0 in padding. */
struct terms {
	struct floats a, dy;
	struct divisor by;
	int64_t cols;

	template <int W> __device__ void get(int64_t row, int64_t col, float (&t)[W]) const
	{
		float v[W], b[W];
		a.get<W>(row, col, v);
		by.get<W>(row, col, b);
		dy.get<W>(row, col, t);
#pragma unroll
		for (int i = 0; i < W; i++)
			t[i] = col + i < cols ? t[i] * (v[i] / b[i]) : 0.0f;
	}
};

struct back_each {
	struct terms of;
	struct floats db;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float t[W], b[W];
		of.get<W>(row, col, t);
		of.by.get<W>(row, col, b);
#pragma unroll
		for (int i = 0; i < W; i++)
			t[i] = col + i < of.cols ? -(t[i] / b[i]) : 0.0f;
		db.put<W>(row, col, t);
	}
};

struct back_row {
	struct terms of;
	struct floats db;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const int64_t end = live ? of.cols : 0, step = static_cast<int64_t>(blockDim.x) * W;
		float t[W], sum = 0.0f;
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += step) {
			of.get<W>(row, col, t);
#pragma unroll
			for (int i = 0; i < W; i++)
				sum += t[i];
		}
		sum = row_sum(sum);
		if (!live || threadIdx.x != 0)
			return;
		const float out[1] = {-(sum / of.by.of_row(row))};
		db.put<1>(row, 0, out);
	}
};

/* The sum of millions of elements is f64, which is accurate enough that the order of the sum does
 * not affect the f32 result. */
struct total {
	double sum;

	__device__ void add(const total &o)
	{
		sum += o.sum;
	}
};
struct back_all {
	struct terms of;
	struct floats db;

	template <int W> __device__ void add(int64_t row, int64_t col, total &mine) const
	{
		float t[W];
		of.get<W>(row, col, t);
#pragma unroll
		for (int i = 0; i < W; i++)
			mine.sum += static_cast<double>(t[i]);
	}
	__device__ void finish(const total &all) const
	{
		const float out[1] = {-(static_cast<float>(all.sum) / of.by.of_row(0))};
		db.put<1>(0, 0, out);
	}
};

} // namespace

HG__NO_WORKSPACE(div, div_args)

extern "C" hg_status hg__cuda_div(hg_context *ctx, const struct hg__div_args *a)
{
	if (!alike(a->a, a->y))
		return misfit(ctx, "div", HG__FLOATS, a->a, a->y);
	if (!divides(a->a, a->b))
		return misfit(ctx, "div", HG__FLOATS, a->a, a->b);
	return walk(ctx, "div", a->a.rows, a->a.cols, wide(a->a),
	            quotient{floats_of(a->a), floats_of(a->y), divisor_of(a->a, a->b), a->a.cols});
}

size_t hg__cuda_div_back_workspace(const hg_context *, const struct hg__div_back_args *a)
{
	/* only one divisor for all elements needs a sum over the rows */
	return a->b.rows == 1 ? hg__reduction_bytes(a->a.rows, a->a.cols) : 0;
}

extern "C" hg_status hg__cuda_div_back(hg_context *ctx, const struct hg__div_back_args *a)
{
	const int64_t rows = a->a.rows, cols = a->a.cols;
	if (!alike(a->a, a->dy))
		return misfit(ctx, "div_back", HG__FLOATS, a->a, a->b, a->dy, a->db);
	if (!divides(a->a, a->b) || !alike(a->b, a->db))
		return misfit(ctx, "div_back", HG__FLOATS, a->a, a->b, a->dy, a->db);
	const struct terms of = {floats_of(a->a), floats_of(a->dy), divisor_of(a->a, a->b), cols};
	if (of.by.each)
		return walk(ctx, "div_back", rows, cols, wide(a->a), back_each{of, floats_of(a->db)});
	if (a->b.rows == rows) /* a row without columns also has a gradient, 0 */
		return each_row(ctx, "div_back", rows, cols > 0 ? cols : 1, wide(a->a),
		                back_row{of, floats_of(a->db)});
	return totals<total>(ctx, "div_back", rows, cols, wide(a->a), back_all{of, floats_of(a->db)});
}
