/* dst[:, dst_col + c] = src[:, src_col + c] for c < cols: concatenation and its gradient. */

#include "kernels/cuda/map.cuh"

namespace
{

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

/* Whether packs of 8 can be used. A pack must not write other columns of dst, so all packs are
 * whole, or the last one ends in dst's padding. */
bool whole_packs(const struct hg__copy_cols_args *a)
{
	return wide(a->src) && wide(a->dst) && a->src_col % 8 == 0 && a->dst_col % 8 == 0 &&
	       (a->cols % 8 == 0 || a->dst_col + a->cols == a->dst.cols);
}

} // namespace

HG__NO_WORKSPACE(copy_cols, copy_cols_args)

extern "C" hg_status hg__cuda_copy_cols(hg_context *ctx, const struct hg__copy_cols_args *a)
{
	if (a->src.rows != a->dst.rows || !is_float(a->src) || !is_float(a->dst) ||
	    a->src_col + a->cols > a->src.cols || a->dst_col + a->cols > a->dst.cols)
		return misfit(ctx, "copy_cols", HG__FLOATS, a->src, a->dst);
	return walk(ctx, "copy_cols", a->src.rows, a->cols, whole_packs(a),
	            copy_cols{floats_of(a->src), floats_of(a->dst), a->src_col, a->dst_col});
}
