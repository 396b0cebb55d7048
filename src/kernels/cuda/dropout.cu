/* Y = X / (1 - p) where the element's random word >= threshold, else 0.
 *
 * The word of element (row, c) is word c % 4 of hg__rng_quad(key, row, c / 4, *step): a pure function, the same on every device, so backward draws it again
 * instead of keeping a mask. *step is read on the device: a captured step stays valid. */

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

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		x.get<W>(row, col, v);
		if constexpr (W == 1) {
			const struct hg__rng4 word = hg__rng_quad(key, row, static_cast<uint32_t>(col / 4), *step);
			v[0] = word.w[col % 4] >= threshold ? v[0] / keep : 0.0f;
		} else {
#pragma unroll
			for (int quad = 0; quad < W / 4; quad++) {
				const struct hg__rng4 word = hg__rng_quad(key, row, static_cast<uint32_t>(col / 4 + quad), *step);
#pragma unroll
				for (int i = 0; i < 4; i++)
					v[4 * quad + i] = word.w[i] >= threshold ? v[4 * quad + i] / keep : 0.0f;
			}
		}
		y.put<W>(row, col, v);
	}
};

} // namespace

extern "C" hg_status hg__cuda_dropout(hg_context *ctx, const struct hg__dropout_args *a)
{
	if (!alike(a->x, a->y))
		return misfit(ctx, "dropout", a->x, a->y);
	return walk(ctx, "dropout", a->x.rows, a->x.cols, wide(a->x),
	            dropout{floats_of(a->x), floats_of(a->y), a->key, a->step, hg__rng_threshold(a->p), 1.0f - a->p});
}
