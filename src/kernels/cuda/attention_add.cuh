/* What the fast kernels of attention with additive scores share (kernels/attention.h), in both
 * passes: an aggregation with two sums for each column, whose weights are computed on the way,
 *
 *     all[r, c]  = sum over entries e of row r of w[e, head of c] X[col e, c]
 *     plus[r, c] = the same over the entries with q + k > 0
 *
 * The iteration is that of by_length.cuh. A lane has a pack: 8 neighbouring columns of a row. Heads
 * lie in one of two ways:
 *
 * - ONE: all columns of a sub-warp belong to one head. The lane that holds an entry computes its
 *   weight, and gives it to the other lanes with the sign of q + k, so that one shuffle carries
 *   both.
 * - Otherwise all columns of a lane belong to one head, and each lane computes the weight of its
 *   head.
 *
 * The sign of q + k must be the same in the forward pass and in both directions of the backward
 * pass: it is one addition in f32 of the same two numbers everywhere. */
#ifndef HG_KERNELS_CUDA_ATTENTION_ADD_CUH
#define HG_KERNELS_CUDA_ATTENTION_ADD_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/by_length.cuh"

/* One orientation of the graph, and the rows that are gathered. */
struct add_edges {
	struct part_list parts;
	struct item_plan plan; /* used by the fold of split rows */
	const int32_t *col;
	const void *x;
	uint32_t pitch; /* bytes from one row of X to the next */
	int cols, head_cols, heads;
	float slope;
	struct attention_mask mask;
	const int32_t *item_slot;
	/* [slots, lead] in the numbering of item_slot (core/csr.h): the sums of all columns, the sums
	 * `plus`, and what each head has, which begins at column `numbers` */
	float *staging;
	int64_t lead, numbers;
};

constexpr int ADD_PACK = 8;
constexpr unsigned ADD_LEAST_LANES = 4, ADD_LANES = 8; /* of a sub-warp */

static __host__ __device__ inline int64_t whole_packs(int64_t cols)
{
	return (cols + ADD_PACK - 1) / ADD_PACK * ADD_PACK;
}
/* The columns of a staging slot, with `each` numbers for each head. */
static inline int64_t add_lead(int64_t cols, int heads, int each)
{
	return 2 * whole_packs(cols) + whole_packs(static_cast<int64_t>(heads) * each);
}

/* Whether all lanes of a sub-warp have the same head. */
static inline bool one_head(int64_t head_cols, int heads, unsigned lanes)
{
	return heads == 1 || head_cols % (ADD_PACK * static_cast<int64_t>(lanes)) == 0;
}

/* Whether a matrix can be written in packs: the last pack of a row must not reach into columns that
 * belong to another matrix. */
static inline bool holds_packs(const struct hg__mat &m)
{
	return wide(m) && (m.cols % ADD_PACK == 0 || m.ld == hg__leading(m.cols));
}

/* The shapes and types that these kernels take, in both passes. x: the rows that are gathered. */
static inline bool add_takes(const struct hg__attention &of, const struct hg__csr &csr,
                             const struct hg__mat &x)
{
	const int64_t head_cols = of.heads > 0 ? of.v.cols / of.heads : 0;
	return of.score == HG_SCORE_ADD && !of.bias.data && !of.weight && csr.plan && csr.plan->part &&
	       is_float(of.v) && x.dtype == of.v.dtype && of.q.dtype == of.v.dtype &&
	       of.k.dtype == of.v.dtype && wide(of.v) && wide(x) && head_cols > 1 &&
	       (of.heads == 1 || head_cols % ADD_PACK == 0) && of.v.cols <= MOST_EDGE_COLUMNS;
}

/* A grid of sub-warps of at most `most` lanes, and of 4 for up to 32 columns. */
static inline struct edge_grid add_grid_of(int64_t pieces, int64_t cols, unsigned most)
{
	const int64_t packs = whole_packs(cols) / ADD_PACK;
	return edge_grid_of(pieces, packs < ADD_LEAST_LANES ? ADD_LEAST_LANES : packs, most);
}

/* Whether the gathered rows shall not stay in L1, so that more of it is left for the numbers of
 * each head. It pays only where X does not fit in half of the second-level cache. Measured with
 * a prototype on an H200, F = 64, one head, backward: products-like 5.03 ms with rows in L1, 4.41
 * without; reddit-like 1.96 and 2.29, because the loads then hit the second-level cache half as
 * often. */
static inline bool passes_l1(const hg_context *ctx, int64_t rows, uint32_t pitch)
{
	return rows * static_cast<int64_t>(pitch) >
	       static_cast<const hg__cuda_state *>(ctx->state)->l2_bytes / 2;
}

/* The lines of 128 bytes in which 8 rows of `bytes` lie; bytes and pitch are multiples of 16. */
static inline int64_t lines_of_8_rows(int64_t bytes, int64_t pitch)
{
	int64_t lines = 0;
	for (int64_t row = 0; row < 8; row++)
		lines += (row * pitch % 128 + bytes + 127) / 128;
	return lines;
}

/* The pitch in bytes of a copy of `x` whose rows cross as few lines of 128 bytes as possible, or 0
 * if x is to be gathered as it is. A copy pays where rows do not fit in half of the second-level
 * cache, because device memory opens each line for itself, and where a copy saves each edge a
 * quarter of its lines or more: it reads and writes two lines for each row, and x has 16 edges for
 * each row. Measured on an H200 with 47 columns (96 or 128 bytes), products-like: forward
 * 5.00 ms without a copy and 4.47 with it, backward 5.45 and 4.87. */
static inline uint32_t padded_pitch(const hg_context *ctx, const struct hg__csr &csr,
                                    const struct hg__mat &x)
{
	const int64_t element = static_cast<int64_t>(hg_dtype_size(x.dtype)), pitch = x.ld * element,
	              cols = whole_packs(x.cols), bytes = cols * element,
	              padded = hg__scaled_lead(cols, x.dtype) * element;
	const bool pays = 4 * lines_of_8_rows(bytes, pitch) >= 5 * lines_of_8_rows(bytes, padded) &&
	                  csr.m / 16 >= x.rows;
	return pays && passes_l1(ctx, x.rows, static_cast<uint32_t>(bytes))
	           ? static_cast<uint32_t>(padded)
	           : 0;
}

/* Calls f(C) with C the integral constant 1 or 0. */
template <typename F> static inline hg_status with_flag(bool flag, F f)
{
	return flag ? f(int_constant<1>{}) : f(int_constant<0>{});
}

static inline struct add_edges add_edges_of(const struct hg__csr &csr,
                                            const struct hg__attention &of, const struct hg__mat &x)
{
	struct add_edges e = {};
	e.plan = plan_of(csr);
	e.item_slot = csr.plan->item_slot;
	e.col = csr.col;
	e.x = x.data;
	e.pitch = static_cast<uint32_t>(x.ld * static_cast<int64_t>(hg_dtype_size(x.dtype)));
	e.cols = static_cast<int>(of.v.cols);
	e.head_cols = e.cols / of.heads;
	e.heads = of.heads;
	e.slope = of.slope;
	e.mask = mask_of(of.dropout);
	e.numbers = 2 * whole_packs(e.cols);
	return e;
}

/* ---- device side ---- */

/* max(w, 0), and NaN for NaN. */
static __device__ inline float positive(float w)
{
	float x;
	asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(x) : "f"(w));
	return x;
}

/* exp(x). For halves in two instructions, with a relative error of at most 2^-22 + 2^-23 |x|, and 0
 * below 2^-126, which changes no half. With several heads each lane needs it for each edge, and
 * expf has eight instructions: measured on an H200, reddit-like, 8 heads of 8 columns, forward
 * 2.14 ms with expf and 2.05 without. NaN stays NaN. */
template <typename T> static __device__ inline float exp_for(float x)
{
	if constexpr (sizeof(T) == sizeof(float)) {
		return expf(x);
	} else {
		float y;
		asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
		return y;
	}
}

/* A pack of 8 elements; PASS_L1: without a place in L1. */
template <bool PASS_L1, typename T> static __device__ inline raw<T, ADD_PACK> fetch_pack(const T *p)
{
	if constexpr (!PASS_L1) {
		return fetch<ADD_PACK>(p);
	} else {
		raw<T, ADD_PACK> r;
#pragma unroll
		for (size_t i = 0; i < sizeof r.q / sizeof r.q[0]; i++)
			asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
			    : "=r"(r.q[i].x), "=r"(r.q[i].y), "=r"(r.q[i].z), "=r"(r.q[i].w)
			    : "l"(reinterpret_cast<const uint4 *>(p) + i));
		return r;
	}
}

/* The lanes of this thread's sub-warp. */
static __device__ inline unsigned own_sub_warp()
{
	const unsigned lane = (threadIdx.y * blockDim.x + threadIdx.x) % 32;
	return WHOLE_WARP >> (32 - blockDim.x) << (lane - threadIdx.x);
}

/* The sum over `lanes` neighbouring lanes of a sub-warp, all of whose lanes must call it. */
static __device__ inline float sum_in_sub_warp(float x, unsigned lanes)
{
	const unsigned mask = own_sub_warp();
	for (unsigned step = lanes / 2; step > 0; step /= 2)
		x += __shfl_xor_sync(mask, x, static_cast<int>(step));
	return x;
}

/* Bit n: whether the mask of head n of the octet of these words is not 0. */
static __device__ inline unsigned kept_heads(const struct attention_mask &mask,
                                             const struct hg__rng4 &words)
{
	unsigned kept = 0;
#pragma unroll
	for (int n = 0; n < 4; n++) {
		kept |= (words.w[n] & 0xFFFFu) < mask.threshold ? 0u : 1u << 2 * n;
		kept |= words.w[n] >> 16 < mask.threshold ? 0u : 2u << 2 * n;
	}
	return kept;
}

/* What a lane of either pass has: its columns and its head, the entries of the step that it holds,
 * the gathers of the step, and the sums. A lane beyond the last column takes part as well, because
 * it holds entries for the other lanes; its own sums are not stored. UNROLL: entries of a step, 8
 * or 4. */
template <typename T, int UNROLL, bool FEW, bool ONE, bool PASS_L1> struct add_lane {
	static constexpr int W = ADD_PACK, STEP = UNROLL;
	static constexpr bool SHARES_STEPS = true;
	/* Whether masks are drawn while the gathers of a step are in flight. The random numbers take 10
	 * registers, which the other kernels do not have until the gathers are added.
	 * With a dropout of 0.6, reddit-like, 64 columns: 1.95 and 2.04 ms forward and backward on an
	 * H200 if they are drawn before, 1.93 and 2.00 so. */
	static constexpr bool DRAWS_LATE = ONE && !FEW && sizeof(T) == sizeof(__half);
	using step = step_of<STEP, FEW>;

	const struct add_edges &e;
	const char *x;
	unsigned head; /* as a signed number it would take a second register in addresses */
	/* Whether a head begins with the first column of this lane, or, with ONE, of the sub-warp. */
	bool starts_head;
	bool shares = false; /* whether the parts share the step, with 2^shift entries each */
	int shift;
	bool live[step::held];
	int32_t row[step::held], slot[step::held];
	int32_t neighbour[step::held]; /* the other end of the entries that this lane holds */
	raw<T, W> bits[STEP];
	/* ONE: the mask times the weight of the entries that this lane holds, with the sign of q + k */
	float given_weight[step::held];
	float mask[step::held];    /* ONE: the masks of the entries that this lane holds */
	unsigned kept[step::held]; /* otherwise: a bit for each head of an octet */
	float all[W] = {}, plus[W] = {};

	static __device__ int own_column()
	{
		return static_cast<int>(own_unit()) * W;
	}
	__device__ explicit add_lane(const struct add_edges &edges) : e(edges)
	{
		const int last = (e.cols - 1) / W * W, own = own_column(),
		          first = ONE ? own - static_cast<int>(threadIdx.x) * W : own;
		x = reinterpret_cast<const char *>(static_cast<const T *>(e.x) + min(own, last));
		const int own_head = min(first, last) / e.head_cols;
		head = static_cast<unsigned>(own_head);
		starts_head = first == own_head * e.head_cols;
	}
	/* by_length.cuh calls these four as well. They have nothing to do here, because look_up and
	 * load begin all loads, and no edge has a result of its own. */
	__device__ void ahead(int, int64_t)
	{
	}
	__device__ void nothing_ahead(int)
	{
	}
	__device__ void turn()
	{
	}
	__device__ void passed(int64_t, float)
	{
	}
	__device__ void belongs(int k, const struct own_part &own)
	{
		row[k] = own.row;
		slot[k] = own.slot;
	}
	__device__ void fetch_row(int u, int32_t j)
	{
		bits[u] = fetch_pack<PASS_L1>(reinterpret_cast<const T *>(
		    x + static_cast<uint64_t>(static_cast<uint32_t>(j)) * e.pitch));
	}
	__device__ void add_row(int u, float w, float w_plus)
	{
		float v[W];
		unpack(bits[u], v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			all[i] = __fmaf_rn(w, v[i], all[i]);
			plus[i] = __fmaf_rn(w_plus, v[i], plus[i]);
		}
	}
	__device__ void restart()
	{
#pragma unroll
		for (int i = 0; i < W; i++)
			all[i] = plus[i] = 0.0f;
	}

	/* ---- dropout ---- */

	/* Draws the masks of the entry in register k, in the lane that holds it; i, j: its destination
	 * and its source. The heads of a sub-warp are in one octet: its 32 or 64 columns do not cross a
	 * multiple of 8 head_cols, which is a multiple of 64 where there are several heads. */
	__device__ void draw(int k, int32_t i, int32_t j)
	{
		if (!e.mask.step)
			return;
		const struct hg__rng4 words = e.mask.words(i, j, static_cast<int>(head / 8));
		if (ONE)
			mask[k] = e.mask.of_words(words, static_cast<int>(head));
		else
			kept[k] = kept_heads(e.mask, words);
	}
	/* w times the mask of the entry in register k (ONE), or of entry u of the step. */
	__device__ float masked_own(float w, int k) const
	{
		return e.mask.step ? w * mask[k] : w;
	}
	__device__ float masked(float w, int u) const
	{
		if (!e.mask.step)
			return w;
		const unsigned heads = step::given(kept, u);
		return heads >> (head % 8) & 1u ? w * e.mask.kept : 0.0f;
	}

	/* ---- values of which each entry has one, in the lane that holds it: sums and maxima over the
	 * entries of a part, where parts share the step. All entries of the part receive the result
	 * ---- */

	template <typename F> __device__ void over_part(float (&v)[step::held], F f) const
	{
#pragma unroll
		for (int lanes = 1; lanes < step::span; lanes *= 2)
			if (lanes >> shift == 0)
#pragma unroll
				for (int k = 0; k < step::held; k++)
					v[k] = f(v[k], __shfl_xor_sync(WHOLE_WARP, v[k], lanes));
		if (step::held == 2 && step::span >> shift == 0)
			v[0] = v[step::held - 1] = f(v[0], v[step::held - 1]);
	}
	__device__ void sum_over_part(float (&v)[step::held]) const
	{
		over_part(v, [](float a, float b) { return a + b; });
	}
	/* Whether this lane holds the first entry of the part that the entry in register k belongs to.
	 * Only one lane does where several hold the same entry. */
	__device__ bool first_of_part(int k) const
	{
		return threadIdx.x < step::span && (step::own(k) & ((1 << shift) - 1)) == 0 && row[k] >= 0;
	}

	/* ---- staging slots ---- */

	__device__ void stage_sums(int64_t to) const
	{
		float *s = slot_at(e, to) + own_column();
		store<W>(s, all);
		store<W>(s + e.numbers / 2, plus);
	}
	/* Number n of a head. */
	__device__ void stage_number(int64_t to, int n, float value) const
	{
		slot_at(e, to)[e.numbers + static_cast<int64_t>(n) * e.heads + head] = value;
	}
};

#endif
