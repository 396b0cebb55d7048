/* Sampled sums, with one value per head and edge. Lane l takes edge l of a batch and W neighbouring
 * heads of it:
 *
 *     E[edge p, k] = f(A[i, k] + B[j, k]),    f(x) = x > 0 ? x : slope x */

#include "kernels/cuda/sddmm.cuh"

/* W numbers as they are in memory: one access of up to 16 bytes, or two of 16. */
template <int BYTES> struct word_of {
	using type = uint4;
};
template <> struct word_of<8> {
	using type = uint2;
};
template <> struct word_of<4> {
	using type = unsigned;
};
template <> struct word_of<2> {
	using type = unsigned short;
};
template <typename T, int W> struct heads_of {
	using word = typename word_of<sizeof(T) * W>::type;
	static constexpr int WORDS = sizeof(T) * W / sizeof(word);
	word q[WORDS];

	static __device__ heads_of read(const T *p)
	{
		heads_of r;
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			r.q[i] = __ldg(reinterpret_cast<const word *>(p) + i);
		return r;
	}
	__device__ void write(T *p) const
	{
#pragma unroll
		for (int i = 0; i < WORDS; i++)
			__stcs(reinterpret_cast<word *>(p) + i, q[i]);
	}
	/* f(this + b), computed in f32 and narrowed once */
	__device__ heads_of plus(const heads_of &b, float slope) const
	{
		T x[W], y[W];
		memcpy(static_cast<void *>(x), q, sizeof q);
		memcpy(static_cast<void *>(y), b.q, sizeof q);
#pragma unroll
		for (int i = 0; i < W; i++) {
			const float sum = widen(x[i]) + widen(y[i]);
			x[i] = narrow<T>(sum > 0.0f ? sum : slope * sum);
		}
		heads_of r;
		memcpy(r.q, static_cast<const void *>(x), sizeof q);
		return r;
	}
};

/* Batches whose ids, and then whose gathers, are in flight together. The ids of 8 batches are 8 *
 * 128 bytes a warp and 32 kB for the 32 warps that a multiprocessor has at least, which hides the
 * latency of device memory (parts.cuh). */
template <typename T, int W> constexpr int ADD_BATCHES = sizeof(T) * W > 8 ? 4 : 8;

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK)
    add_items(const struct sddmm_problem p, int packs, float slope)
{
	after_previous();
	constexpr int U = ADD_BATCHES<T, W>;
	using bits = heads_of<T, W>;
	const int64_t work = packs == 1 ? own_warp() : own_warp() / packs;
	if (work >= p.plan.items)
		return;
	const struct warp_item it(p.plan, work);
	const int64_t c = packs == 1 ? 0 : (own_warp() - work * packs) * W;
	const int lane = own_lane();
	const T *a = static_cast<const T *>(p.a) + c, *b = static_cast<const T *>(p.b) + c;
	T *out = static_cast<T *>(p.e) + c;
	struct row_window window;
	window.open(p.plan, it);
	int32_t held = -1; /* the row whose values x holds */
	bits x = {};
	for (int start = 0; start < it.stop; start += 32 * U) {
		int32_t id[U];
		bits y[U];
#pragma unroll
		for (int u = 0; u < U; u++)
			id[u] = start + 32 * u + lane < it.stop
			            ? __ldcs(p.col + it.base + start + 32 * u + lane)
			            : 0;
#pragma unroll
		for (int u = 0; u < U; u++)
			y[u] = bits::read(b + id[u] * p.ldb);
#pragma unroll
		for (int u = 0; u < U; u++) {
			const int e = start + 32 * u, n = it.stop - e < 32 ? it.stop - e : 32;
			if (n <= 0)
				break;
			bool one;
			const int32_t row = window.rows_of(p.plan, it, e, n, &one);
			if (lane >= n)
				continue;
			if (row != held)
				x = bits::read(a + row * p.lda);
			held = row;
			x.plus(y[u], slope).write(out + edge_of(p, it.base + e + lane) * p.lde);
		}
	}
}

/* ---- launch ---- */

/* Whether rows begin at multiples of `width` elements. A and B may be some columns of wider
 * matrices. */
static bool in_packs(const struct hg__mat &m, int64_t width)
{
	return m.ld % width == 0 && reinterpret_cast<uintptr_t>(m.data) %
	                                    (static_cast<size_t>(width) * hg_dtype_size(m.dtype)) ==
	                                0;
}

/* Calls f(W). W is the number of heads where all heads of an edge fit one access without padding,
 * otherwise 8 where rows allow it, otherwise 1. The last pack of 8 may read columns beside those of
 * A and B; the results of these go into E's padding. */
template <typename F> static hg_status with_heads(const struct hg__sddmm_add_args *a, F f)
{
	const int64_t ld = a->e.ld;
	const auto fits = [&](int64_t width) {
		return in_packs(a->a, width) && in_packs(a->b, width) && in_packs(a->e, width);
	};
	if (fits(8))
		return f(int_constant<8>{});
	if (a->e.cols == ld && ld == 4 && fits(4))
		return f(int_constant<4>{});
	if (a->e.cols == ld && ld == 2 && fits(2))
		return f(int_constant<2>{});
	return f(int_constant<1>{});
}

hg_status hg__sddmm_add(hg_context *ctx, const struct sddmm_problem &p,
                        const struct hg__sddmm_add_args *a)
{
	return with_float(ctx, "sddmm_add", a->a.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_heads(a, [&](auto heads) {
			constexpr int W = decltype(heads)::value;
			const int64_t packs = (p.cols + W - 1) / W;
			return launch(ctx, "sddmm_add", add_items<T, W>, grid_for(p.plan.items * packs, WARPS),
			              BLOCK, p, static_cast<int>(packs), a->leaky ? a->slope : 1.0f);
		});
	});
}
