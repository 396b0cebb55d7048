/* Dropout (drop.cuh): Y = X / (1 - p) where the element's random number is at least the threshold,
 * else 0.
 *
 * Rows of 1, 2 or 4 elements (edge values with as many heads) are processed 8 elements at a time,
 * across rows, so that memory moves in packs of 16 bytes. */

#include "kernels/cuda/drop.cuh"
#include "kernels/cuda/map.cuh"

namespace
{

struct dropout {
	struct floats x, y;
	struct drop d;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		x.get<W>(row, col, v);
		d.pack<W>(row, col, v);
		y.put<W>(row, col, v);
	}
};

/* The same for storage with rows of D = 1, 2 or 4 elements. Each row draws its own quad of random
 * numbers. */
template <int D> struct dropout_narrow {
	struct floats x, y;
	struct drop d;

	template <int W> __device__ void at(int64_t i) const
	{
		float v[W];
		x.get<W>(i, v);
		if constexpr (W == 1) {
			const struct hg__rng4 word = hg__rng_quad(d.key, i / D, 0, *d.step);
			v[0] = d.one(v[0], word.w[i % D]);
		} else {
#pragma unroll
			for (int row = 0; row < W / D; row++) {
				const struct hg__rng4 word = hg__rng_quad(d.key, i / D + row, 0, *d.step);
#pragma unroll
				for (int c = 0; c < D; c++)
					v[D * row + c] = d.one(v[D * row + c], word.w[c]);
			}
		}
		y.put<W>(i, v);
	}
};

} // namespace

HG__NO_WORKSPACE(dropout, dropout_args)

extern "C" hg_status hg__cuda_dropout(hg_context *ctx, const struct hg__dropout_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "dropout", HG__FLOATS, a->x, a->y);
	const struct floats x = floats_of(a->x), y = floats_of(a->y);
	const struct drop d = drop_of(a->p, a->key, a->step);
	switch (a->x.ld) {
	case 1:
		return flat(ctx, "dropout", a->x, dropout_narrow<1>{x, y, d});
	case 2:
		return flat(ctx, "dropout", a->x, dropout_narrow<2>{x, y, d});
	case 4:
		return flat(ctx, "dropout", a->x, dropout_narrow<4>{x, y, d});
	default:
		return walk(ctx, "dropout", a->x.rows, a->x.cols, wide(a->x), dropout{x, y, d});
	}
}
