/* Y = X / (1 - p) where the element's random word >= threshold, else 0.
 *
 * The word of element (row, c) is word c % 4 of hg__rng_quad(key, row, c / 4, *step): a pure function, the same on every device, so backward draws it again
 * instead of keeping a mask. *step is read on the device: a captured step stays valid.
 *
 * Rows of 1, 2 or 4 elements (edge values of as many heads) are taken 8 elements at a time, across rows: memory moves in packs of 16 bytes. */

#include "core/rng.h"
#include "kernels/cuda/map.cuh"

namespace
{

struct dropout {
	struct floats x, y;
	uint64_t key;
	const int64_t *step;
	uint32_t threshold;
	float keep; /* 1 - p */

	__device__ float drop(float v, uint32_t word) const
	{
		return word >= threshold ? v / keep : 0.0f;
	}
	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		x.get<W>(row, col, v);
		if constexpr (W == 1) {
			const struct hg__rng4 word = hg__rng_quad(key, row, static_cast<uint32_t>(col / 4), *step);
			v[0] = drop(v[0], word.w[col % 4]);
		} else {
#pragma unroll
			for (int quad = 0; quad < W / 4; quad++) {
				const struct hg__rng4 word = hg__rng_quad(key, row, static_cast<uint32_t>(col / 4 + quad), *step);
#pragma unroll
				for (int i = 0; i < 4; i++)
					v[4 * quad + i] = drop(v[4 * quad + i], word.w[i]);
			}
		}
		y.put<W>(row, col, v);
	}
};

/* The same over storage of rows of D elements, D = 1, 2 or 4: each row draws its own quad. */
template <int D> struct dropout_narrow {
	struct dropout d;

	template <int W> __device__ void at(int64_t i) const
	{
		float v[W];
		d.x.get<W>(i, v);
		if constexpr (W == 1) {
			const struct hg__rng4 word = hg__rng_quad(d.key, i / D, 0, *d.step);
			v[0] = d.drop(v[0], word.w[i % D]);
		} else {
#pragma unroll
			for (int row = 0; row < W / D; row++) {
				const struct hg__rng4 word = hg__rng_quad(d.key, i / D + row, 0, *d.step);
#pragma unroll
				for (int c = 0; c < D; c++)
					v[D * row + c] = d.drop(v[D * row + c], word.w[c]);
			}
		}
		d.y.put<W>(i, v);
	}
};

} // namespace

extern "C" hg_status hg__cuda_dropout(hg_context *ctx, const struct hg__dropout_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "dropout", a->x, a->y);
	const struct dropout d = {floats_of(a->x), floats_of(a->y), a->key, a->step, hg__rng_threshold(a->p), 1.0f - a->p};
	switch (a->x.ld) {
	case 1:
		return flat(ctx, "dropout", a->x, dropout_narrow<1>{d});
	case 2:
		return flat(ctx, "dropout", a->x, dropout_narrow<2>{d});
	case 4:
		return flat(ctx, "dropout", a->x, dropout_narrow<4>{d});
	default:
		return walk(ctx, "dropout", a->x.rows, a->x.cols, wide(a->x), d);
	}
}
