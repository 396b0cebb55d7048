/* out = {rows whose first largest logit is at the label, rows that count}; a row with a NaN logit is wrong. */

#include "kernels/cuda/softmax.cuh"

namespace
{

struct accuracy_total {
	int64_t right, count;

	__device__ void add(const accuracy_total &o)
	{
		right += o.right;
		count += o.count;
	}
};

/* The first largest of what was seen, as a pair: a NaN is larger than all, so a row with one ends with value NaN. */
struct first_largest {
	float value;
	long long col; /* -1: nothing seen */

	__device__ void see(float v, long long c)
	{
		const bool nan = v != v, mine = value != value;
		if (c >= 0 && (col < 0 || (nan && !mine) || (!mine && (v > value || (v == value && c < col))))) {
			value = v;
			col = c;
		}
	}
};

template <typename T> struct accuracy {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows;
	float *out;

	template <int W> __device__ void row(int64_t row, bool live, accuracy_total &mine) const
	{
		const int64_t label = live ? rows.label_of(row) : -1, end = label >= 0 ? cols : 0;
		struct first_largest best = {0.0f, -1};
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; col < end; col += static_cast<int64_t>(blockDim.x) * W) {
			float v[W];
			load<W>(x + row * ld + col, v);
#pragma unroll
			for (int i = 0; i < W; i++)
				if (col + i < end)
					best.see(v[i], col + i);
		}
		for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2) {
			const float v = __shfl_xor_sync(0xffffffffu, best.value, step);
			const long long c = __shfl_xor_sync(0xffffffffu, best.col, step);
			best.see(v, c);
		}
		if (label < 0 || threadIdx.x != 0)
			return;
		mine.right += best.col == label && best.value == best.value;
		mine.count++;
	}
	__device__ void finish(const accuracy_total &total) const
	{
		out[0] = static_cast<float>(total.right);
		out[1] = static_cast<float>(total.count);
	}
};

} // namespace

extern "C" hg_status hg__cuda_accuracy(hg_context *ctx, const struct hg__accuracy_args *a)
{
	if (a->label.rows != a->x.rows || a->label.dtype != HG_I32 || (a->mask.data && a->mask.rows != a->x.rows))
		return misfit(ctx, "accuracy", a->x, a->label);
	return with_float(ctx, "accuracy", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return row_totals<accuracy_total>(ctx, "accuracy", a->x.rows, a->x.cols, wide(a->x),
		                                  accuracy<T>{data_of<const T>(a->x), a->x.ld, a->x.cols, counted_of(a->label, a->mask), data_of<float>(a->out)});
	});
}
