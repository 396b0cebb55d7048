/* Losses per element: the mean, over the elements that count, of
 *
 *     BCE with logits   max(x, 0) - x t + log(1 + exp(-|x|))      dx = sigmoid(x) - t
 *     MSE               (x - t)^2                                 dx = 2 (x - t)
 *     MAE               |x - t|                                   dx = sign(x - t)
 *     PRODUCT           x t                                       dx = t
 *     weighted BCE      (1 - t) x + l (max(-x, 0) + log(1 + exp(-|x|))),  l = 1 + (w - 1) t
 *                                                                 dx = (1 - t) - l sigmoid(-x)
 *
 * The gradient is multiplied by dloss / count, or by dloss where there is no count, and is 0 where
 * an element does not count. */

#include "kernels/cuda/softmax.cuh"

namespace
{

struct bce {
	static constexpr bool weighted = false;
	static __device__ float value(float x, float t, float)
	{
		return (fmaxf(x, 0.0f) - x * t) + log1pf(expf(-fabsf(x)));
	}
	/* e = exp(-|x|) is at most 1, so nothing overflows. */
	static __device__ float gradient(float x, float t, float)
	{
		const float e = expf(-fabsf(x));
		return (x >= 0.0f ? 1.0f : e) / (1.0f + e) - t;
	}
};
struct mse {
	static constexpr bool weighted = false;
	static __device__ float value(float x, float t, float)
	{
		return (x - t) * (x - t);
	}
	static __device__ float gradient(float x, float t, float)
	{
		return 2.0f * (x - t);
	}
};

struct mae {
	static constexpr bool weighted = false;
	static __device__ float value(float x, float t, float)
	{
		return fabsf(x - t);
	}
	/* A difference of 0 or NaN is returned as it is. */
	static __device__ float gradient(float x, float t, float)
	{
		const float d = x - t;
		return d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d;
	}
};

struct product {
	static constexpr bool weighted = false;
	static __device__ float value(float x, float t, float)
	{
		return x * t;
	}
	static __device__ float gradient(float, float t, float)
	{
		return t;
	}
};

/* w: the weight of ones. */
struct bce_weighted {
	static constexpr bool weighted = true;
	static __device__ float value(float x, float t, float w)
	{
		const float soft = (x < 0.0f ? -x : x - x) + log1pf(expf(-fabsf(x)));
		return (1.0f - t) * x + (1.0f + (w - 1.0f) * t) * soft;
	}
	static __device__ float gradient(float x, float t, float w)
	{
		const float e = expf(-fabsf(x));
		return (1.0f - t) - (1.0f + (w - 1.0f) * t) * ((x >= 0.0f ? e : 1.0f) / (1.0f + e));
	}
};

/* The weight of a column; 1 for losses without weights. */
template <typename L> static __device__ float weight_at(const float *weight, int64_t col)
{
	if constexpr (L::weighted)
		return weight[col];
	else
		return 1.0f;
}

/* Which elements count. mask: u8 [n, 1] for whole rows, [n, cols] for elements (`each`), or NULL.
 * live: only the first *live rows count, or NULL. */
struct counted_elements {
	const uint8_t *mask;
	int64_t ld, cols;
	bool each;
	const int64_t *live;

	/* Bit i: element (row, col + i) counts. Padding does not. */
	template <int W> __device__ unsigned in(int64_t row, int64_t col) const
	{
		unsigned set = 0u;
		if ((live && row >= *live) || (mask && !each && mask[row * ld] == 0))
			return 0u;
#pragma unroll
		for (int i = 0; i < W; i++)
			if (col + i < cols && !(each && mask[row * ld + col + i] == 0))
				set |= 1u << i;
		return set;
	}
};
struct counted_elements elements_of(const struct hg__mat &mask, int64_t cols, const int64_t *live)
{
	return {data_of<const uint8_t>(mask), mask.ld, cols, mask.data && mask.cols > 1, live};
}

template <typename L> struct pointwise_loss {
	struct floats x, target;
	struct counted_elements elements;
	const float *weight;
	float *loss, *count;

	template <int W> __device__ void add(int64_t row, int64_t col, loss_total &mine) const
	{
		const unsigned in = elements.in<W>(row, col);
		if (in == 0u)
			return;
		float v[W], t[W];
		x.get<W>(row, col, v);
		target.get<W>(row, col, t);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (in >> i & 1u)
				mine.sum +=
				    static_cast<double>(L::value(v[i], t[i], weight_at<L>(weight, col + i)));
		mine.count += __popc(in);
	}
	__device__ void finish(const loss_total &total) const
	{
		total.write(loss, count, 1);
	}
};

template <typename L> struct pointwise_loss_back {
	struct floats x, target, dx;
	struct counted_elements elements;
	const float *weight;
	struct loss_factor loss;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		const float factor = loss.value();
		const unsigned in = elements.in<W>(row, col);
		float v[W] = {}, t[W];
		if (in != 0u) {
			x.get<W>(row, col, v);
			target.get<W>(row, col, t);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] = in >> i & 1u
				           ? L::gradient(v[i], t[i], weight_at<L>(weight, col + i)) * factor
				           : 0.0f;
		}
		dx.put<W>(row, col, v);
	}
};

template <typename L>
hg_status run_pointwise_loss(hg_context *ctx, const struct hg__pointwise_loss_args *a)
{
	return totals<loss_total>(ctx, "pointwise_loss", a->x.rows, a->x.cols, wide(a->x),
	                          pointwise_loss<L>{floats_of(a->x), floats_of(a->target),
	                                            elements_of(a->mask, a->x.cols, a->live),
	                                            data_of<const float>(a->weight),
	                                            data_of<float>(a->loss), data_of<float>(a->count)});
}

template <typename L>
hg_status run_pointwise_loss_back(hg_context *ctx, const struct hg__pointwise_loss_back_args *a)
{
	return walk(
	    ctx, "pointwise_loss_back", a->x.rows, a->x.cols, wide(a->x),
	    pointwise_loss_back<L>{floats_of(a->x),
	                           floats_of(a->target),
	                           floats_of(a->dx),
	                           elements_of(a->mask, a->x.cols, a->live),
	                           data_of<const float>(a->weight),
	                           {data_of<const float>(a->count), data_of<const float>(a->dloss)}});
}

/* In the order of hg__pointwise. */
constexpr struct {
	hg_status (*forward)(hg_context *, const struct hg__pointwise_loss_args *);
	hg_status (*backward)(hg_context *, const struct hg__pointwise_loss_back_args *);
} losses[HG__POINTWISE_COUNT] = {
    {run_pointwise_loss<bce>, run_pointwise_loss_back<bce>},
    {run_pointwise_loss<mse>, run_pointwise_loss_back<mse>},
    {run_pointwise_loss<mae>, run_pointwise_loss_back<mae>},
    {run_pointwise_loss<product>, run_pointwise_loss_back<product>},
    {run_pointwise_loss<bce_weighted>, run_pointwise_loss_back<bce_weighted>}};
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
	if (a->kind == HG__BCE_WEIGHTED)
		HG__TRY(hg__has_type(ctx, "pointwise_loss", "weights", a->weight.dtype, HG_F32));
	return losses[a->kind].forward(ctx, a);
}

HG__NO_WORKSPACE(pointwise_loss_back, pointwise_loss_back_args)

extern "C" hg_status hg__cuda_pointwise_loss_back(hg_context *ctx,
                                                  const struct hg__pointwise_loss_back_args *a)
{
	HG__TRY(hg__has_number(ctx, "pointwise_loss_back", "loss", a->kind, HG__POINTWISE_COUNT));
	if (!alike(a->x, a->target) || !alike(a->x, a->dx))
		return misfit(ctx, "pointwise_loss_back", HG__FLOATS, a->x, a->target, a->dx);
	if (a->kind == HG__BCE_WEIGHTED)
		HG__TRY(hg__has_type(ctx, "pointwise_loss_back", "weights", a->weight.dtype, HG_F32));
	return losses[a->kind].backward(ctx, a);
}
