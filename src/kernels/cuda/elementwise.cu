/* Y = alpha (1 + *alpha_p) X + beta Z, also the cast between float types; Y = X + b; copies of columns. In f32, narrowed once.
 * Traffic: every operand once. */

#include "kernels/cuda/map.cuh"

namespace
{

struct axpby {
	struct floats x, z, y;
	float alpha, beta;
	const float *alpha_p;

	template <int W> __device__ void at(int64_t i) const
	{
		const float factor = alpha_p ? alpha * (1.0f + *alpha_p) : alpha;
		float v[W], w[W] = {};
		x.get<W>(i, v);
		if (z.data)
			z.get<W>(i, w);
#pragma unroll
		for (int j = 0; j < W; j++)
			v[j] = z.data ? factor * v[j] + beta * w[j] : factor * v[j];
		y.put<W>(i, v);
	}
};

struct bias_add {
	struct floats x, b, y;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W], add[W];
		x.get<W>(row, col, v);
		b.get<W>(col, add);
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] += add[i];
		y.put<W>(row, col, v);
	}
};

struct copy_cols {
	struct floats src, dst;
	int64_t src_col, dst_col;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		src.get<W>(row, src_col + col, v);
		dst.put<W>(row, dst_col + col, v);
	}
};

/* A pack must not reach into columns of dst that are not its own: whole packs, or a last pack that ends in dst's padding. */
bool whole_packs(const struct hg__copy_cols_args *a)
{
	return wide(a->src) && wide(a->dst) && a->src_col % 8 == 0 && a->dst_col % 8 == 0 && (a->cols % 8 == 0 || a->dst_col + a->cols == a->dst.cols);
}

} // namespace

extern "C" hg_status hg__cuda_axpby(hg_context *ctx, const struct hg__axpby_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "axpby", a->x, a->y);
	if (!alike(a->x, a->z))
		return misfit(ctx, "axpby", a->x, a->z);
	return flat(ctx, "axpby", a->x, axpby{floats_of(a->x), floats_of(a->z), floats_of(a->y), a->alpha, a->beta, a->alpha_p});
}

extern "C" hg_status hg__cuda_bias_add(hg_context *ctx, const struct hg__bias_add_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "bias_add", a->x, a->y);
	if (a->b.cols != a->x.cols || !is_float(a->b))
		return misfit(ctx, "bias_add", a->x, a->b);
	return walk(ctx, "bias_add", a->x.rows, a->x.cols, wide(a->x), bias_add{floats_of(a->x), floats_of(a->b), floats_of(a->y)});
}

extern "C" hg_status hg__cuda_copy_cols(hg_context *ctx, const struct hg__copy_cols_args *a)
{
	if (a->src.rows != a->dst.rows || !is_float(a->src) || !is_float(a->dst) || a->src_col + a->cols > a->src.cols || a->dst_col + a->cols > a->dst.cols)
		return misfit(ctx, "copy_cols", a->src, a->dst);
	return walk(ctx, "copy_cols", a->src.rows, a->cols, whole_packs(a), copy_cols{floats_of(a->src), floats_of(a->dst), a->src_col, a->dst_col});
}
