/* Functions of two operands, element by element: Y = f(A, B), for each f in kernels/pairs.def. */
#include "kernels/cpu/map.h"

#define HG_PAIR(name, value)                                                               \
	static void name(const void *env, int64_t n, const float *x, const float *z, float *y) \
	{                                                                                      \
		(void)env;                                                                         \
		for (int64_t i = 0; i < n; i += HG__LANES) {                                       \
			const int count = (int)hg__min(HG__LANES, n - i);                              \
			const hg__v16 a = hg__vload_n(x + i, count), b = hg__vload_n(z + i, count);    \
			hg__vstore_n(y + i, value, count);                                             \
		}                                                                                  \
	}
#include "kernels/pairs.def"

HG__NO_WORKSPACE(pair, pair_args)

hg_status HG__CPU(pair)(hg_context *ctx, const struct hg__pair_args *a)
{
	static const hg__map_fn pairs[HG__PAIR_COUNT] = {
#define HG_PAIR(name, value) name,
#include "kernels/pairs.def"
	};
	HG__TRY(hg__has_number(ctx, "pair", "function", (int)a->pair, HG__PAIR_COUNT));
	HG__TRY(hg__need(ctx, a->b.data != NULL || a->a.rows * a->a.cols == 0, "pair: no operand"));
	return HG__CPU(map)(ctx, "pair", pairs[a->pair], NULL, 1, a->a, a->b, a->y);
}
