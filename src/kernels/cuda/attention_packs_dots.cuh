/* Dot products of heads of 8 lanes of halves, by tensor cores and without moving a row.
 *
 * A warp has the four sub-warps s = 0 .. 3, each with rows of its own and with gathered rows. Seen
 * as quads of lanes, quad g = 2 s + (0 or 1) holds one half of the columns of sub-warp s. As
 * operands of a product (tensor_core.cuh), the packs that lanes hold of two own rows are the rows g
 * and g + 8 of A, and those of a gathered row are column g of B. Both have the same columns of the
 * head in the same lane, and in which order these are added does not matter. Elements [g, g] and
 * [g + 8, g] of the result are what quad g looks for: the products of both own rows with the
 * gathered one, over its half of the columns. They lie in lane s of the quad. The other elements
 * are products of rows that have no edge, and are ignored. B takes the registers of a gathered pack
 * as they are; with the gathered rows as A, four registers would be copied for each product. */
#ifndef HG_KERNELS_CUDA_ATTENTION_PACKS_DOTS_CUH
#define HG_KERNELS_CUDA_ATTENTION_PACKS_DOTS_CUH

#include <type_traits>

#include "kernels/cuda/attention_packs.cuh"

struct no_operand {
};
/* Two own rows of a part, as A of two products. */
struct own_operand {
	uint4 low, high;

	__device__ void set(const uint4 &x, const uint4 &y)
	{
		low = make_uint4(x.x, y.x, x.y, y.y);
		high = make_uint4(x.z, y.z, x.w, y.w);
	}
	/* One row, twice. The shuffles hide from the compiler that it is the same: it would keep four
	 * registers and copy them for each product. */
	__device__ void set(const uint4 &x)
	{
		set(x,
		    make_uint4(__shfl_xor_sync(WHOLE_WARP, x.x, 0), __shfl_xor_sync(WHOLE_WARP, x.y, 0),
		               __shfl_xor_sync(WHOLE_WARP, x.z, 0), __shfl_xor_sync(WHOLE_WARP, x.w, 0)));
	}
	/* The first of them. */
	__device__ raw<__half, 8> first() const
	{
		return {{make_uint4(low.x, low.z, high.x, high.z)}};
	}
	__device__ void times(float (&c)[4], const raw<__half, 8> &row) const
	{
		multiply(c, low, row.q[0].x, row.q[0].y);
		multiply(c, high, row.q[0].z, row.q[0].w);
	}
};

/* Whether this lane is in the second quad of its sub-warp. */
static __device__ inline bool second_quad()
{
	return threadIdx.x & 4;
}
/* The lane in a quad of this sub-warp that has its results. */
static __device__ inline int result_lane()
{
	return static_cast<int>(threadIdx.y) % 4;
}

/* The sums of both quads, and from the lanes that have them to those that hold the edges. x: the
 * results of E edges, valid in the lanes that have them. */
template <int E> static __device__ inline float eight_lanes_sum(const float (&x)[E])
{
	constexpr int KEPT = E / 2; /* edges of each quad */
	const bool high = second_quad();
	const int quad_lane = static_cast<int>(threadIdx.x) % 4;
	float r[KEPT];
#pragma unroll
	for (int i = 0; i < KEPT; i++) {
		const int a = E == 8 ? 2 * i : i, b = E == 8 ? 2 * i + 1 : i + KEPT;
		const float keep = high ? x[b] : x[a], give = high ? x[a] : x[b];
		r[i] = keep + __shfl_xor_sync(WHOLE_WARP, give, 4);
	}
	/* lane t looks for edge t, or with 8 edges for that of its own quad */
	const int from = result_lane() + (E == 8 ? (high ? 4 : 0) : 4 * (quad_lane / 2));
#pragma unroll
	for (int i = 0; i < KEPT; i++)
		r[i] = __shfl_sync(WHOLE_WARP, r[i], from, 8);
	if constexpr (E == 8) {
		const float low = quad_lane & 1 ? r[1] : r[0], up = quad_lane & 1 ? r[3] : r[2];
		return quad_lane & 2 ? up : low;
	} else {
		return quad_lane & 1 ? r[1] : r[0];
	}
}

/* The product of the first own row and the row of this lane's edge; SECOND: of the second own row.
 * All lanes of a warp must take part in these functions. */
template <bool SECOND, int E>
static __device__ inline float eight_lanes_dot(const raw<__half, 8> (&rows)[E],
                                               const struct own_operand &own)
{
	constexpr int FIRST = SECOND ? 2 : 0;
	const bool odd = second_quad();
	float x[E];
#pragma unroll
	for (int u = 0; u < E; u++) {
		float c[4] = {};
		own.times(c, rows[u]);
		x[u] = odd ? c[FIRST + 1] : c[FIRST];
	}
	return eight_lanes_sum(x);
}

/* The products of both own rows with the row of this lane's edge. */
template <int E>
static __device__ inline void eight_lanes_dots(const raw<__half, 8> (&rows)[E],
                                               const struct own_operand &own, float *s, float *t)
{
	const bool odd = second_quad();
	float x[E], y[E];
#pragma unroll
	for (int u = 0; u < E; u++) {
		float c[4] = {};
		own.times(c, rows[u]);
		x[u] = odd ? c[1] : c[0];
		y[u] = odd ? c[3] : c[2];
	}
	*s = eight_lanes_sum(x);
	*t = eight_lanes_sum(y);
}

#endif
