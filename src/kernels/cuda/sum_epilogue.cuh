/* The epilogue of an aggregation, applied to f32 sums before their one narrowing (struct
 * hg__sum_epilogue):
 *
 *     y = dropout(f((x + beta Z) + b))
 *
 * It runs once per row, whatever the degree of the row, so the choice of f and of dropout is made
 * at run time and one kernel serves all epilogues. It processes four columns at a time, in a loop,
 * because it needs registers beside those of the sums. */
#ifndef HG_KERNELS_CUDA_SUM_EPILOGUE_CUH
#define HG_KERNELS_CUDA_SUM_EPILOGUE_CUH

#include "kernels/cuda/act_drop.cuh"
#include "kernels/cuda/guard.cuh"

/* Four columns: one access of 8 or 16 bytes, and one quad of random numbers. */
static __device__ inline void load_four(const float *p, float (&x)[4])
{
	const float4 a = *reinterpret_cast<const float4 *>(p);
	x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
}
static __device__ inline void load_four(const __half *p, float (&x)[4])
{
	const uint2 bits = *reinterpret_cast<const uint2 *>(p);
	__half2 h[2];
	memcpy(static_cast<void *>(h), &bits, sizeof h);
	const float2 low = __half22float2(h[0]), high = __half22float2(h[1]);
	x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}
static __device__ inline void store_four(float *p, const float (&x)[4])
{
	*reinterpret_cast<float4 *>(p) = make_float4(x[0], x[1], x[2], x[3]);
}
static __device__ inline void store_four(__half *p, const float (&x)[4])
{
	const __half2 h[2] = {__floats2half2_rn(x[0], x[1]), __floats2half2_rn(x[2], x[3])};
	uint2 bits;
	memcpy(&bits, h, sizeof bits);
	*reinterpret_cast<uint2 *>(p) = bits;
}

struct sum_epilogue {
	const void *z, *b; /* of Y's type, or NULL; Z has Y's layout */
	const float *beta_p;
	float beta;
	int act;
	bool drops;
	struct act_drop<identity, true> act_drop;

	template <typename A, int W> __device__ void activate(float (&v)[W]) const
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			v[i] = A::value(v[i], act_drop.act_p);
	}
	/* v: the sums of columns col .. col + W - 1 of a row; at: their position in Y and Z. */
	template <int W, typename T>
	__device__ void apply(T *y, int64_t at, int32_t row, int32_t col, float (&v)[W],
	                      const struct guard &guard) const
	{
		float more[W];
		if (z) {
			const float factor = beta_p ? beta * (1.0f + *beta_p) : beta;
			get(static_cast<const T *>(z) + at, more);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] += factor * more[i];
		}
		if (b) {
			get(static_cast<const T *>(b) + col, more);
#pragma unroll
			for (int i = 0; i < W; i++)
				v[i] += more[i];
		}
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(...)
#define HG_SUM_EPILOGUE_FUNCTION(name, ...) \
	if (act == 1 + HG__ACT_##name)          \
		activate<acts::name>(v);
#include "kernels/functions.def"
		if (drops)
			act_drop.d.template pack<W>(static_cast<uint32_t>(row), col, v);
		guard.check(col, v);
		set(y + at, v);
	}
	template <typename T> static __device__ void get(const T *p, float (&x)[4])
	{
		load_four(p, x);
	}
	template <typename T> static __device__ void get(const T *p, float (&x)[1])
	{
		load<1>(p, x);
	}
	template <typename T> static __device__ void set(T *p, const float (&x)[4])
	{
		store_four(p, x);
	}
	template <typename T> static __device__ void set(T *p, const float (&x)[1])
	{
		store<1>(p, x);
	}
	template <typename T>
	__device__ void put(T *y, int64_t at, int32_t row, int32_t col, float (&v)[1],
	                    const struct guard &guard) const
	{
		apply<1>(y, at, row, col, v, guard);
	}
	template <typename T>
	__device__ void put(T *y, int64_t at, int32_t row, int32_t col, float (&v)[4],
	                    const struct guard &guard) const
	{
		apply<4>(y, at, row, col, v, guard);
	}
	template <typename T>
	__device__ void put(T *y, int64_t at, int32_t row, int32_t col, float (&v)[8],
	                    const struct guard &guard) const
	{
		float four[4] = {v[0], v[1], v[2], v[3]};
#pragma unroll 1
		for (int i = 0; i < 8; i += 4) {
			apply<4>(y, at + i, row, col + i, four, guard);
			four[0] = v[4], four[1] = v[5], four[2] = v[6], four[3] = v[7];
		}
	}
	/* The factor of Z. */
	__device__ float factor_of_z() const
	{
		return z && beta_p ? beta * (1.0f + *beta_p) : beta;
	}
	/* The same for a kernel that has loaded Z and its factor early, because it waits for loads most
	 * of the time. */
	template <typename T>
	__device__ void put_after(T *y, int64_t at, int32_t row, int32_t col, float (&v)[8],
	                          const float (&of_z)[8], float factor, const struct guard &guard) const
	{
		float more[8];
		if (z)
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] += factor * of_z[i];
		if (b) {
			load<8>(static_cast<const T *>(b) + col, more);
#pragma unroll
			for (int i = 0; i < 8; i++)
				v[i] += more[i];
		}
		/* relu is what models use most; the path below tests one function after the other, in a
		 * copy of this struct */
		if (act == 1 + HG__ACT_relu && !drops) {
			activate<acts::relu>(v);
		} else if (act || drops) {
			struct sum_epilogue rest = *this;
			rest.z = rest.b = nullptr;
			rest.put(y, at, row, col, v, guard);
			return;
		}
		guard.check(col, v);
		store<8>(y + at, v);
	}
};

static inline struct sum_epilogue sum_epilogue_of(const struct hg__sum_epilogue &e)
{
	return {e.z.data,
	        e.b.data,
	        e.beta_p,
	        e.beta,
	        e.act_drop.act,
	        e.act_drop.p > 0.0f,
	        act_drop_of<act_drop<identity, true>>(e.act_drop)};
}

#endif
