/* Records of the backward pass of attention with additive scores (attention_add_back.cu): what an
 * edge needs of its row, for one head, in as few bytes as it can be read from. */
#ifndef HG_KERNELS_CUDA_ATTENTION_ADD_RECORDS_CUH
#define HG_KERNELS_CUDA_ATTENTION_ADD_RECORDS_CUH

#include "kernels/cuda/attention_add.cuh"

/* What an edge needs of its row. Where no edge of a row counts, log_sum is -inf, and the record has
 * +inf: p is then 0. */
struct row_numbers {
	float q, log_sum, d;
};
static __device__ inline float offset_of(float log_sum)
{
	return log_sum == -INFINITY ? INFINITY : log_sum;
}

/* Rows of f32: as they are. */
struct full_record {
	float4 v;

	__device__ void set(float q, const struct row_numbers &n)
	{
		v = make_float4(q, n.log_sum, n.d, 0.0f);
	}
	__device__ struct row_numbers get() const
	{
		return {v.x, v.y, v.z};
	}
};

/* Rows of f16, in 8 bytes, because a larger record does not stay in the caches. (Measured with
 * a prototype on an H200, products-like, one head of 64 columns: 16 bytes 5.7 ms, 8 bytes 4.4.) q
 * is exact, so that q + k has the same sign as in the forward pass. log_sum has 19 bits after the
 * leading one, and D 11, both rounded to nearest. So p has a relative error of at most 2^-20
 * |log_sum|, and dk an error of at most 2^-12 sum of p |D|; that of D through Y, which is stored
 * in f16, is at most 2^-11 sum of |G| |Y|. */
struct half_record {
	uint2 v;

	/* The bits of x rounded to a multiple of 2^drop. NaN is the one whose low bits are 0. */
	static __device__ unsigned rounded(float x, int drop)
	{
		const unsigned bits = x != x ? 0x7FC00000u : __float_as_uint(x);
		return (bits + (1u << (drop - 1))) & ~((1u << drop) - 1);
	}
	__device__ void set(__half q, const struct row_numbers &n)
	{
		const unsigned log_sum = rounded(n.log_sum, 4), d = rounded(n.d, 12);
		v = make_uint2((log_sum & 0xFFFF0000u) | __half_as_ushort(q), d | (log_sum & 0xFFFFu) >> 4);
	}
	__device__ struct row_numbers get() const
	{
		return {__half2float(__ushort_as_half(static_cast<unsigned short>(v.x & 0xFFFFu))),
		        __uint_as_float((v.x & 0xFFFF0000u) | (v.y << 4 & 0xFFFFu)),
		        __uint_as_float(v.y & ~0xFFFu)};
	}
};

template <typename T> struct record_of {
	using type = full_record;
};
template <> struct record_of<__half> {
	using type = half_record;
};
template <typename T> using record = typename record_of<T>::type;

/* ---- where they lie ---- */

/* The second pass gathers dY as it is, or a copy that the pass over nodes writes. Behind each row
 * of a copy, records are found together with the row: device memory, which has what is not in the
 * second-level cache, then opens one place and not two. Where rows do not fit in half of that
 * cache, there is a copy
 *
 * - of padded rows (padded_pitch), with the records in the padding if it holds them;
 * - or of rows and records that are whole units of 64 bytes, which is what device memory reads.
 *   Measured on an H200, products-like, 8 heads of 8 columns: 6.77 ms, and 7.41 with the records
 *   apart. With a prototype, one head, 8 bytes behind a row of 128: 6.72, and 4.41 apart. */
struct record_layout {
	uint32_t row_pitch; /* bytes from one row of the copy to the next; 0: no copy */
	uint32_t pitch;     /* bytes from the records of one row to those of the next */
	size_t first;       /* bytes from the first row of the copy to the records of the first row */
	size_t bytes;       /* of all */
};
static inline struct record_layout records_of(const hg_context *ctx,
                                              const struct hg__attention_back_args *a)
{
	struct record_layout l = {};
	if (!a->dk.data && !a->dv.data)
		return l;
	const bool half = a->of.v.dtype == HG_F16;
	const int64_t each = half ? sizeof(struct half_record) : sizeof(struct full_record),
	              records = a->of.heads * each, rows = a->dy.rows,
	              row = whole_packs(a->dy.cols) * static_cast<int64_t>(hg_dtype_size(a->dy.dtype)),
	              padded = padded_pitch(ctx, a->csr_t, a->dy);
	const bool in_padding = row + records <= padded,
	           whole_units = !in_padding && row % 64 == 0 && records % 64 == 0 &&
	                         passes_l1(ctx, rows, static_cast<uint32_t>(row)),
	           behind = in_padding || whole_units;
	l.row_pitch = static_cast<uint32_t>(whole_units ? row + records : padded);
	l.pitch = behind ? l.row_pitch : static_cast<uint32_t>(records);
	const size_t copy = hg__aligned(static_cast<size_t>(rows) * l.row_pitch);
	l.first = behind ? static_cast<size_t>(row) : copy;
	l.bytes = behind ? copy : copy + hg__aligned(static_cast<size_t>(rows * records));
	return l;
}

#endif
