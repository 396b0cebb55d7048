/* The overflow check as a separate pass over a stored matrix, for kernels that do not check while
 * they store:
 *
 *     overflow.word = max(overflow.word, the words of the elements of X that overflow a half) */

#include "kernels/cuda/guard.cuh"
#include "kernels/cuda/map.cuh"

namespace
{

template <typename T> struct watch_for {
	const T *x;
	int64_t ld;
	struct guard guard;

	template <int W> __device__ void at(int64_t row, int64_t col) const
	{
		float v[W];
		load<W>(x + row * ld + col, v);
		guard.check(col, v);
	}
};

} // namespace

HG__NO_WORKSPACE(guard, guard_args)

extern "C" hg_status hg__cuda_guard(hg_context *ctx, const struct hg__guard_args *a)
{
	return with_float(ctx, "guard", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return walk(
		    ctx, "guard", a->x.rows, a->x.cols, wide(a->x),
		    watch_for<T>{data_of<const T>(a->x), a->x.ld, guard_of(a->overflow, a->x.cols)});
	});
}
