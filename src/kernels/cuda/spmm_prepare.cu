/* Preparations of aggregation: X scaled, a check whether X is finite, and weights in the order of
 * the entries. */

#include "kernels/cuda/spmm_prepare.cuh"

#include "kernels/cuda/launch.cuh"

/* ---- Z[j, c] = narrow(s_j X[j, c]) ---- */

/* The smallest number that rounds to infinity in T. */
template <typename T> constexpr float LEAST_INFINITE = INFINITY;
template <> constexpr float LEAST_INFINITE<__half> = 65520.0f;

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK)
    scale_rows(const T *x, int64_t ldx, const float *s, int64_t rows, int64_t cols, T *z,
               int64_t ldz, unsigned *spoiled)
{
	after_previous();
	const int64_t packs = (cols + W - 1) / W;
	bool bad = false;
	for (int64_t i = global_thread(); i < rows * packs; i += global_threads()) {
		const int64_t row = i / packs, c = (i - row * packs) * W;
		const float factor = s[row];
		float v[W];
		load<W>(x + row * ldx + c, v);
#pragma unroll
		for (int k = 0; k < W; k++)
			v[k] = __fmul_rn(factor, v[k]);
		store<W>(z + row * ldz + c, v);
#pragma unroll
		for (int k = 0; k < W; k++)
			bad |= c + k < cols && !(fabsf(v[k]) < LEAST_INFINITE<T>);
	}
	if (spoiled && bad)
		*spoiled = 1;
}

hg_status hg__cuda_scale_rows(hg_context *ctx, const struct hg__mat *x, const float *s,
                              const struct hg__mat *z, unsigned *spoiled)
{
	return with_float(ctx, "spmm", x->dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(*x) && wide(*z), [&](auto width) {
			constexpr int W = decltype(width)::value;
			const int64_t packs = (x->cols + W - 1) / W;
			return launch(ctx, "spmm: scaled columns", scale_rows<T, W>,
			              grid_for(x->rows * packs, BLOCK), BLOCK, data_of<T>(*x), x->ld, s,
			              x->rows, x->cols, data_of<T>(*z), z->ld, spoiled);
		});
	});
}

/* ---- check whether X is finite ---- */

/* Whether one of the first `halves` halves of a pack is not finite. The exponent of such a half is
 * all ones, so adding 1 to its last bit carries into the sign. */
static __device__ inline bool any_spoiled(const uint4 &pack, int64_t halves)
{
	const unsigned pair[4] = {pack.x, pack.y, pack.z, pack.w};
	unsigned carried = 0;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const unsigned used = halves > 2 * i + 1 ? 0x80008000u : halves > 2 * i ? 0x8000u : 0;
		carried |= ((pair[i] & 0x7c007c00u) + 0x04000400u) & used;
	}
	return carried != 0;
}

static __global__ void __launch_bounds__(BLOCK)
    check_finite(const __half *x, int64_t ld, int64_t rows, int64_t cols, unsigned *spoiled)
{
	after_previous();
	const int64_t packs = (cols + 7) / 8;
	bool bad = false;
	for (int64_t i = global_thread(); i < rows * packs; i += global_threads()) {
		const int64_t row = i / packs, c = (i - row * packs) * 8;
		bad |= any_spoiled(*reinterpret_cast<const uint4 *>(x + row * ld + c), cols - c);
	}
	if (bad)
		*spoiled = 1;
}

hg_status hg__cuda_check_finite(hg_context *ctx, const struct hg__mat *x, unsigned *spoiled)
{
	return launch(ctx, "spmm: is X finite", check_finite,
	              grid_for(x->rows * ((x->cols + 7) / 8), BLOCK), BLOCK, data_of<const __half>(*x),
	              x->ld, x->rows, x->cols, spoiled);
}

/* ---- out[p] = w[edge p] ---- */

/* Entries that a thread looks up together. Each weight is in a different line, so bandwidth depends
 * on the number of loads in flight. */
constexpr int LOOKUPS = 8;

template <typename T>
static __global__ void __launch_bounds__(BLOCK)
    order_weights(const T *w, const uint32_t *edge, int64_t m, T *out)
{
	after_previous();
	const int64_t first = static_cast<int64_t>(blockIdx.x) * BLOCK * LOOKUPS + threadIdx.x;
	uint32_t place[LOOKUPS];
	T value[LOOKUPS];
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		place[i] = first + i * BLOCK < m ? __ldg(edge + first + i * BLOCK) : 0;
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		value[i] = __ldg(w + place[i]);
#pragma unroll
	for (int i = 0; i < LOOKUPS; i++)
		if (first + i * BLOCK < m)
			out[first + i * BLOCK] = value[i];
}

hg_status hg__cuda_order_weights(hg_context *ctx, const struct hg__csr *csr,
                                 const struct hg__mat *w, void *out)
{
	return with_float(ctx, "spmm", w->dtype, [&](auto zero) {
		using T = decltype(zero);
		return launch(ctx, "spmm: weights in order", order_weights<T>,
		              grid_for(csr->m, BLOCK * LOOKUPS), BLOCK, data_of<T>(*w), csr->edge, csr->m,
		              static_cast<T *>(out));
	});
}
