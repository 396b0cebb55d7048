/* Scores of ADD_V2 for heads of 8 lanes of halves, by tensor cores.
 *
 * With f(x) = slope x + (1 - slope) max(x, 0) and max(q + k, 0) = k + max(q, -k),
 *
 *     <c, f(Q_i + K_j)> = slope <c, Q_i> + <c, K_j> + (1 - slope) <c, max(Q_i, -K_j)>
 *
 * The maximum of two halves is a half, so nothing is rounded before the products with c. One
 * instruction takes it for two columns, and tensor cores do the rest. With sums of numbers, each
 * column of each edge took five instructions.
 *
 * c times a power of two, with which the largest element of the head lies between 2^14 and 2^15, is
 * the sum of two halves but for 2^-22 of each element and 2^-39 of the largest one. These are the
 * two own rows of products with gathered rows (attention_packs_dots.cuh). The three products with c
 * are rounded by themselves, wherever they are computed, so a score has the same bits in all
 * passes. */
#ifndef HG_KERNELS_CUDA_ATTENTION_PACKS_VECTOR_CUH
#define HG_KERNELS_CUDA_ATTENTION_PACKS_VECTOR_CUH

#include "kernels/cuda/attention_packs_dots.cuh"

/* The own row of a part, as the derivative of ADD_V2 reads it: x + y > 0 is y > -x, in f16 two
 * comparisons at once. */
template <typename T> struct sign_pack {
	float x[8];
	/* sum[i] += ds where x[i] + y[i] > 0 */
	__device__ void add_where(const raw<T, 8> &bits, float ds, float (&sum)[8]) const
	{
		float y[8];
		unpack(bits, y);
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (y[i] > -x[i])
				sum[i] += ds;
	}
};
template <> struct sign_pack<__half> {
	raw<__half, 8> x;
	__device__ void add_where(const raw<__half, 8> &bits, float ds, float (&sum)[8]) const
	{
		const unsigned own[4] = {x.q[0].x, x.q[0].y, x.q[0].z, x.q[0].w},
		               y[4] = {bits.q[0].x, bits.q[0].y, bits.q[0].z, bits.q[0].w};
#pragma unroll
		for (int i = 0; i < 4; i++)
			asm("{\n"
			    ".reg .pred low, high;\n"
			    ".reg .b32 x;\n"
			    "neg.f16x2 x, %3;\n"
			    "setp.gt.f16x2 low|high, %2, x;\n"
			    "@low add.rn.f32 %0, %0, %4;\n"
			    "@high add.rn.f32 %1, %1, %4;\n"
			    "}"
			    : "+f"(sum[2 * i]), "+f"(sum[2 * i + 1])
			    : "r"(y[i]), "r"(own[i]), "f"(ds));
	}
};
struct no_pack {
};

/* max(x, -y) of pairs of halves, or of eight; NaN if one is. */
static __device__ inline unsigned max_with_negated(unsigned x, unsigned y)
{
	unsigned most;
	asm volatile("{\n"
	             ".reg .b32 y;\n"
	             "neg.f16x2 y, %2;\n"
	             "max.NaN.f16x2 %0, %1, y;\n"
	             "}"
	             : "=r"(most)
	             : "r"(x), "r"(y));
	return most;
}
static __device__ inline raw<__half, 8> max_with_negated(const raw<__half, 8> &x,
                                                         const raw<__half, 8> &y)
{
	const uint4 &a = x.q[0], &b = y.q[0];
	return {{make_uint4(max_with_negated(a.x, b.x), max_with_negated(a.y, b.y),
	                    max_with_negated(a.z, b.z), max_with_negated(a.w, b.w))}};
}

/* Stands for a vector that is not there. */
struct no_vector {
	__device__ no_vector(const struct packs_problem &, const struct pack_lane &)
	{
	}
};
/* Own rows of ADD_V2. COLUMNS: they are rows of K, otherwise of Q. */
template <bool COLUMNS> struct vector_score {
	struct own_operand c;
	float back;     /* what products with these halves are multiplied by */
	float own_part; /* the product of c and the own row, with its factor */

	__device__ vector_score(const struct packs_problem &p, const struct pack_lane &at)
	{
		float x[8], most = 0.0f;
		p.c.get<8>(at.column, x);
#pragma unroll
		for (int i = 0; i < 8; i++)
			most = fmaxf(most, fabsf(x[i]));
#pragma unroll
		for (int step = 1; step < 8; step *= 2)
			most = fmaxf(most, __shfl_xor_sync(WHOLE_WARP, most, step));
		/* 2^(141 - e) and its inverse; both are normal numbers */
		const unsigned bits = __float_as_uint(most) >> 23, e = bits > 15 ? bits : 15;
		const float scale = __uint_as_float((268 - e) << 23);
		back = __uint_as_float((e - 14) << 23);
		unsigned high[4], low[4];
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float a = scale * x[2 * i], b = scale * x[2 * i + 1];
			const __half2 first = __floats2half2_rn(a, b);
			const float2 taken = __half22float2(first);
			const __half2 second = __floats2half2_rn(a - taken.x, b - taken.y);
			memcpy(&high[i], &first, sizeof first);
			memcpy(&low[i], &second, sizeof second);
		}
		c.set(make_uint4(high[0], high[1], high[2], high[3]),
		      make_uint4(low[0], low[1], low[2], low[3]));
		own_part = 0.0f;
	}
	/* A quad's part of the product of c and its row, in the lane that has it. */
	__device__ float quad_part(const raw<__half, 8> &row) const
	{
		float sum[4] = {};
		c.times(sum, row);
		return second_quad() ? sum[1] + sum[3] : sum[0] + sum[2];
	}
	__device__ void open(const raw<__half, 8> &own, float slope)
	{
		float sum = quad_part(own);
		sum += __shfl_xor_sync(WHOLE_WARP, sum, 4);
		own_part = (COLUMNS ? back : slope * back) * __shfl_sync(WHOLE_WARP, sum, result_lane(), 8);
	}
	/* The score of this lane's edge. */
	template <int E>
	__device__ float of(const raw<__half, 8> (&rows)[E], const raw<__half, 8> &own,
	                    float slope) const
	{
		float x[E];
#pragma unroll
		for (int u = 0; u < E; u++)
			x[u] = quad_part(rows[u]);
		const float plain = own_part + (COLUMNS ? slope * back : back) * eight_lanes_sum(x);
#pragma unroll
		for (int u = 0; u < E; u++)
			x[u] = quad_part(COLUMNS ? max_with_negated(rows[u], own)
			                         : max_with_negated(own, rows[u]));
		return fmaf((1.0f - slope) * back, eight_lanes_sum(x), plain);
	}
};

#endif
