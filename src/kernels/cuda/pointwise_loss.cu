/* Losses per element: the mean, over the rows that count and all columns, of
 *
 *     BCE with logits   max(x, 0) - x t + log(1 + exp(-|x|))      dx = sigmoid(x) - t
 *     MSE               (x - t)^2                                 dx = 2 (x - t)
 *
 * The gradient is multiplied by dloss / count, and is 0 in rows that do not count. */

#include "kernels/cuda/softmax.cuh"

namespace
{

struct bce {
	static __device__ float value(float x, float t)
	{
		return (fmaxf(x, 0.0f) - x * t) + log1pf(expf(-fabsf(x)));
	}
	/* e = exp(-|x|) is at most 1, so nothing overflows. */
	static __device__ float gradient(float x, float t)
	{
		const float e = expf(-fabsf(x));
		return (x >= 0.0f ? 1.0f : e) / (1.0f + e) - t;
	}
};
struct mse {
	static __device__ float value(float x, float t)
	{
		return (x - t) * (x - t);
	}
	static __device__ float gradient(float x, float t)
	{
		return 2.0f * (x - t);
	}
};

template <typename L> struct pointwise_loss {
	struct floats x, target;
	int64_t cols;
	struct counted_rows rows;
	float *loss, *count;

	template <int W> __device__ void add(int64_t row, int64_t col, loss_total &mine) const
	{
		if (!rows.counts(row))
			return;
		float v[W], t[W];
		x.get<W>(row, col, v);
		target.get<W>(row, col, t);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < cols)
				mine.sum += static_cast<double>(L::value(v[i], t[i]));
		mine.count += col == 0;
	}
	__device__ void finish(const loss_total &total) const
	{
		total.write(loss, count, cols);
	}
};

template <typename L> struct pointwise_loss_back {
	struct floats x, target, dx;
	struct counted_rows rows;
	struct loss_factor loss;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const float factor = loss.value();
		float v[W] = {}, t[W];
		if (rows.counts(row)) {
			x.get<W>(row, col, v);
			target.get<W>(row, col, t);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = L::gradient(v[i], t[i]) * factor;
		}
		dx.put<W>(row, col, v);
	}
};

template <typename L>
hg_status run_pointwise_loss(hg_context *ctx, const struct hg__pointwise_loss_args *a)
{
	return totals<loss_total>(ctx, "pointwise_loss", a->x.rows, a->x.cols, wide(a->x),
	                          pointwise_loss<L>{floats_of(a->x), floats_of(a->target), a->x.cols,
	                                            counted_of({}, a->mask), data_of<float>(a->loss),
	                                            data_of<float>(a->count)});
}

template <typename L>
hg_status run_pointwise_loss_back(hg_context *ctx, const struct hg__pointwise_loss_back_args *a)
{
	return walk(
	    ctx, "pointwise_loss_back", a->x.rows, a->x.cols, wide(a->x),
	    pointwise_loss_back<L>{floats_of(a->x),
	                           floats_of(a->target),
	                           floats_of(a->dx),
	                           counted_of({}, a->mask),
	                           {data_of<const float>(a->count), data_of<const float>(a->dloss)}});
}

/* In the order of hg__pointwise. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__pointwise_loss_args *);
	hg_status (*backward)(hg_context *, const struct hg__pointwise_loss_back_args *);
} losses[HG__POINTWISE_COUNT] = {{run_pointwise_loss<bce>, run_pointwise_loss_back<bce>},
                                 {run_pointwise_loss<mse>, run_pointwise_loss_back<mse>}};
static_assert(every(losses, [](const auto &row) { return row.forward && row.backward; }), "a hole");

} // namespace

size_t hg__cuda_pointwise_loss_workspace(const hg_context *,
                                         const struct hg__pointwise_loss_args *a)
{
	return hg__reduction_bytes(a->x.rows, a->x.cols);
}

extern "C" hg_status hg__cuda_pointwise_loss(hg_context *ctx,
                                             const struct hg__pointwise_loss_args *a)
{
	HG__TRY(hg__has_number(ctx, "pointwise_loss", "loss", a->kind, HG__POINTWISE_COUNT));
	if (!alike(a->x, a->target))
		return misfit(ctx, "pointwise_loss", HG__FLOATS, a->x, a->target);
	return losses[a->kind].forward(ctx, a);
}

HG__NO_WORKSPACE(pointwise_loss_back, pointwise_loss_back_args)

extern "C" hg_status hg__cuda_pointwise_loss_back(hg_context *ctx,
                                                  const struct hg__pointwise_loss_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "pointwise_loss_back", "loss", a->kind, HG__POINTWISE_COUNT));
	if (!alike(a->x, a->target) || !alike(a->x, a->dx))
		return misfit(ctx, "pointwise_loss_back", HG__FLOATS, a->x, a->target, a->dx);
	return losses[a->kind].backward(ctx, a);
}
