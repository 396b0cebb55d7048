/* loss = mean over the rows that count of  log(sum exp(x - max)) - (x[label] - max);
 * back: dX[i, c] = (softmax(X)[i, c] - [c == label i]) * dloss / count, 0 in rows that do not count.
 * Labels are below the number of classes: recording has looked. */

#include "kernels/cuda/softmax.cuh"

namespace
{

template <typename T> struct softmax_xent {
	const T *x;
	int64_t ld, cols;
	struct counted_rows rows;
	float *loss, *count;

	template <int W> __device__ void row(int64_t row, bool live, loss_total &mine) const
	{
		const int64_t label = live ? rows.label_of(row) : -1;
		const T *logits = x + row * ld;
		const struct softmax_row s = softmax_of<W>(logits, label >= 0 ? cols : 0);
		if (label < 0 || threadIdx.x != 0)
			return;
		const float at_label = label < cols ? widen(logits[label]) : -INFINITY; /* a label that is no class has probability 0 */
		mine.sum += static_cast<double>(logf(s.sum) - (at_label - s.max));
		mine.count++;
	}
	__device__ void finish(const loss_total &total) const
	{
		total.write(loss, count, 1);
	}
};

template <typename T> struct softmax_xent_back {
	const T *x;
	struct floats dx;
	int64_t ld, cols;
	struct counted_rows rows;
	struct loss_factor loss;

	template <int W> __device__ void row(int64_t row, bool live) const
	{
		const float factor = loss.value();
		const int64_t label = live ? rows.label_of(row) : -1, step = static_cast<int64_t>(blockDim.x) * W;
		const struct softmax_row s = softmax_of<W>(x + row * ld, label >= 0 ? cols : 0);
		for (int64_t col = static_cast<int64_t>(threadIdx.x) * W; live && col < cols; col += step) {
			float v[W] = {};
			if (label >= 0) {
				load<W>(x + row * ld + col, v);
#pragma unroll
				for (int i = 0; i < W; i++)
					v[i] = (expf(v[i] - s.max) / s.sum - (col + i == label ? 1.0f : 0.0f)) * factor;
			}
			dx.put<W>(row, col, v);
		}
	}
};

} // namespace

extern "C" hg_status hg__cuda_softmax_xent(hg_context *ctx, const struct hg__softmax_xent_args *a)
{
	if (a->label.rows != a->x.rows || a->label.dtype != HG_I32 || (a->mask.data && a->mask.rows != a->x.rows))
		return misfit(ctx, "softmax_xent", a->x, a->label);
	return with_float(ctx, "softmax_xent", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return row_totals<loss_total>(
		    ctx, "softmax_xent", a->x.rows, a->x.cols, wide(a->x),
		    softmax_xent<T>{data_of<const T>(a->x), a->x.ld, a->x.cols, counted_of(a->label, a->mask), data_of<float>(a->loss), data_of<float>(a->count)});
	});
}

extern "C" hg_status hg__cuda_softmax_xent_back(hg_context *ctx, const struct hg__softmax_xent_back_args *a)
{
	if (a->label.rows != a->x.rows || a->label.dtype != HG_I32 || !alike(a->x, a->dx))
		return misfit(ctx, "softmax_xent_back", a->x, a->dx);
	return with_float(ctx, "softmax_xent_back", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return each_row(ctx, "softmax_xent_back", a->x.rows, a->x.cols, wide(a->x),
		                softmax_xent_back<T>{data_of<const T>(a->x),
		                                     floats_of(a->dx),
		                                     a->x.ld,
		                                     a->x.cols,
		                                     counted_of(a->label, a->mask),
		                                     {data_of<const float>(a->count), data_of<const float>(a->dloss)}});
	});
}
