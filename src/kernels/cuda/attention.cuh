/* What the CUDA implementations of attention (kernels/attention.h) share: how an implementation is
 * chosen, the operands as kernels read them, and the parts of the equations that must have the same
 * bits wherever they are computed.
 *
 *     attention.cu, attention_back.cu    the rows of the backend, and which implementation runs
 *     attention_graphs*.cu               batches of small graphs with dense counts, DOT and ADD
 *     attention_mixed.cu                 batches in which some graphs have dense counts
 *     attention_tiles*.cu                ADD on graphs with tiles, by tensor cores
 *     attention_add*.cu                  additive scores, with one gather for each edge
 *     attention_packs*.cu                scores from whole rows, heads of 8 to 256 columns
 *     attention_any*.cu                  any score and any shape
 *     attention_weights.cu               P, for users who look at the weights */
#ifndef HG_KERNELS_CUDA_ATTENTION_CUH
#define HG_KERNELS_CUDA_ATTENTION_CUH

#include "core/rng.h"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/parts.cuh"
#include "kernels/workspace.h"

constexpr unsigned WHOLE_WARP = 0xffffffffu;

/* ---- implementations ---- */

/* One implementation of attention, or of its gradient. A table lists them, the fastest first, and
 * the first that takes a call computes it. Before any is asked, the operands have been checked
 * (attention_check.h), and calls without results have returned. `takes` depends on types, shapes,
 * what is present and the limits of the context's device, which is the current device then, and not
 * on where data lies, because the answer while a tape is planned is the answer when it runs. */
template <typename A> struct attention_row {
	bool (*takes)(const A *a);
	hg_status (*run)(hg_context *ctx, const A *a);
	size_t (*workspace)(const hg_context *ctx, const A *a);
};
template <typename A, size_t N>
static inline const struct attention_row<A> &
attention_row_for(const hg_context *ctx, const attention_row<A> (&table)[N], const A *a) {
	/* makes the context's device the current one, whose limits an implementation may ask for */
	(void)stream_of(ctx);
	size_t i = 0;
	while (i + 1 < N && !table[i].takes(a))
		i++;
	return table[i];
}
/* Declares the functions of an implementation, and names them as a row of its table:
 * HG__ATTENTION(attention, add) stands for hg__cuda_attention_add, hg__cuda_attention_add_takes and
 * hg__cuda_attention_add_workspace. Tests in C ask what a kernel takes, and run it. */
#define HG__ATTENTION(kernel, name)                                      \
	extern "C" HG_NODISCARD bool hg__cuda_##kernel##_##name##_takes(     \
	    const struct hg__##kernel##_args *a);                            \
	extern "C" HG_NODISCARD hg_status hg__cuda_##kernel##_##name(        \
	    hg_context *ctx, const struct hg__##kernel##_args *a);           \
	size_t hg__cuda_##kernel##_##name##_workspace(const hg_context *ctx, \
	                                              const struct hg__##kernel##_args *a)
#define HG__ATTENTION_ROW(kernel, name)                                 \
	{                                                                   \
		hg__cuda_##kernel##_##name##_takes, hg__cuda_##kernel##_##name, \
		    hg__cuda_##kernel##_##name##_workspace                      \
	}

HG__ATTENTION(attention, graphs);
HG__ATTENTION(attention_back, graphs);
HG__ATTENTION(attention, mixed);
HG__ATTENTION(attention_back, mixed);
HG__ATTENTION(attention, tiles);
HG__ATTENTION(attention, add);
HG__ATTENTION(attention_back, tiles);
HG__ATTENTION(attention_back, add);
HG__ATTENTION(attention, packs);
HG__ATTENTION(attention_back, packs);
HG__ATTENTION(attention, any);
HG__ATTENTION(attention_back, any);

/* Whether attention_back by `add` takes a call with an epilogue (`dended`). No other implementation
 * does. */
extern "C" bool hg__cuda_attention_back_add_ends(const struct hg__attention_back_args *a);

/* Whether the graph has the plan that kernels follow, and a grid holds the columns of q and of v:
 * HG_OK, or a status with a message. */
HG_NODISCARD hg_status attention_launchable(hg_context *ctx, const char *kernel,
                                            const struct hg__csr &csr, int64_t q_cols,
                                            int64_t v_cols);

/* ---- dropout ---- */

struct attention_mask {
	uint64_t key;
	const int64_t *step; /* NULL: no dropout */
	uint32_t threshold;
	float kept; /* 1 / keep */

	/* The four words of heads 8 * octet .. 8 * octet + 7 of edge (i, j). */
	__device__ struct hg__rng4 words(int32_t i, int32_t j, int octet) const
	{
		return hg__philox(key, static_cast<uint32_t>(i), static_cast<uint32_t>(j),
		                  static_cast<uint32_t>(octet), static_cast<uint32_t>(*step));
	}
	/* The mask of a head, from the words of its octet. */
	__device__ float of_words(const struct hg__rng4 &words, int head) const
	{
		/* an index would put the words into memory */
		const uint32_t word =
		    head & 4 ? (head & 2 ? words.w[3] : words.w[2]) : (head & 2 ? words.w[1] : words.w[0]);
		return hg__attention_mask_of(head % 2 ? word >> 16 : word & 0xFFFFu, threshold, kept);
	}
	/* The mask of edge (i, j) and a head. */
	__device__ float of(int32_t i, int32_t j, int head) const
	{
		return step ? of_words(words(i, j, head / 8), head) : 1.0f;
	}
};
static inline struct attention_mask mask_of(const struct hg__attention_dropout &d)
{
	return {d.key, d.p > 0.0f ? d.step : nullptr, hg__attention_threshold(d.p),
	        hg__attention_kept(d.p)};
}

/* ---- operands ---- */

/* The operands of the scores, and the values, with one orientation of the graph. T is the type of
 * q, k and v. */
struct attention_operands {
	struct item_plan plan;
	const int32_t *col;
	const uint32_t *edge;
	const void *q, *k, *v;
	int64_t ldq, ldk, ldv;
	int64_t q_cols, v_cols; /* of a head */
	int heads;
	int beta_step; /* COSINE: 1: each head has its beta; 0: all heads share one */
	struct floats c, bias;
	const float *weight;
	float slope, scale;
	struct attention_mask mask;
};
/* A plan without items, for an orientation without rows. */
static inline struct item_plan attention_plan_of(const struct hg__csr &csr)
{
	struct item_plan none = {};
	return csr.plan && csr.rows > 0 ? plan_of(csr) : none;
}
static inline struct attention_operands operands_of(const struct hg__csr &csr,
                                                    const struct hg__attention &of)
{
	struct attention_operands o = {};
	o.plan = attention_plan_of(csr);
	o.col = csr.col;
	o.edge = csr.edge;
	o.q = of.q.data, o.k = of.k.data, o.v = of.v.data;
	o.ldq = of.q.ld, o.ldk = of.k.ld, o.ldv = of.v.ld;
	o.q_cols = of.q.cols / of.heads, o.v_cols = of.v.cols / of.heads;
	o.heads = of.heads;
	o.beta_step = of.c.cols > 1;
	o.c = floats_of(of.c), o.bias = floats_of(of.bias);
	o.weight = of.weight;
	o.slope = of.slope, o.scale = of.scale;
	o.mask = mask_of(of.dropout);
	return o;
}

/* ---- staging slots that are used ----
 *
 * The sums of the parts of split rows. Here only slots that are used take memory, in the numbering
 * of item_slot (core/csr.h): few rows are split, and a slot for each item, head and tail, would be
 * the largest part of the workspace (reddit-like: 8,300 of 228,700 slots are used). A problem has
 *
 *     plan, item_slot    of the orientation
 *     staging            [slots, lead] */
static inline size_t slots_bytes(const struct hg__csr &csr, int64_t lead)
{
	return csr.plan ? static_cast<size_t>(csr.plan->slots * lead) * sizeof(float) : 0;
}

/* Slot `to` of the plan: the head or the tail of an item. */
template <typename P> static __device__ inline float *slot_at(const P &p, int64_t to)
{
	const int64_t tail = to & 1;
	return p.staging + (__ldg(p.item_slot + to / 2 + tail) - tail) * p.lead;
}

/* The slots of split row s, which follow each other. */
struct row_slots {
	const float *first;
	int64_t count;
};
template <typename P> static __device__ inline struct row_slots slots_of(const P &p, int64_t s)
{
	const int64_t first = p.plan.split_first[s];
	return {p.staging + (p.item_slot[first + 1] - 1) * p.lead, p.plan.split_last[s] - first + 1};
}

/* ---- the equations. The compiler does not contract a product and a sum (-fmad=false) ---- */

/* f(x) and f'(x). */
static __device__ inline float leaky(float x, float slope)
{
	return x > 0.0f ? x : slope * x;
}
static __device__ inline float leaky_slope(float x, float slope)
{
	return x > 0.0f ? 1.0f : slope;
}

/* ADD: q + k + bias, before f. Its sign decides which terms belong to `plus`, and the derivative in
 * the backward pass, so it has the same bits everywhere. Without a bias, bias is 0. */
static __device__ inline float additive(float q, float k, float bias)
{
	return q + k + bias;
}

/* COSINE: t = <Q_i, K_j> / (|Q_i| |K_j|), with the inverses of the norms from the sums of squares;
 * 0 for a vector that is too short to have a direction (HG__ATTENTION_TINY, here in f32). */
static __device__ inline float inverse_norm(float squares)
{
	const float norm = sqrtf(squares);
	return norm < static_cast<float>(HG__ATTENTION_TINY) ? 0.0f : 1.0f / norm;
}
static __device__ inline float cosine(float dot, float inverse_q, float inverse_k)
{
	return dot * inverse_q * inverse_k;
}

/* The score from a factor (scale of DOT, beta of COSINE, 1 of ADD_V2) and the sum over columns. */
static __device__ inline float score_of(float factor, float sum, float bias)
{
	return factor * sum + bias;
}

/* exp(s - offset) of an edge that counts `weight` times, times weight; offset is at least s, or
 * close to it. An edge that counts 0 times, or whose score is -inf, has 0, whatever the offset.
 * expf is within 1 unit in the last place. */
static __device__ inline float weighted_exp(float s, float offset, float weight)
{
	return s == -INFINITY || weight == 0.0f ? 0.0f : weight * expf(s - offset);
}

/* p of an edge from the log of the sum of its row. Rounding may put it above 1, and a gradient that
 * is bounded by a proof needs p <= 1. NaN stays NaN. */
static __device__ inline float attention_p(float s, float log_sum, float weight)
{
	const float p = weighted_exp(s, log_sum, weight);
	return p > 1.0f ? 1.0f : p;
}

/* ---- running sums ---- */

/* A maximum before the first score, where scores are subtracted from it, or maxima from each other.
 * It is finite, so that exp of -inf less this number, and the factor by which sums of no terms are
 * rescaled, are 0 and not NaN. */
constexpr float LOWEST = -3.402823466e+38f;

/* The maximum of a part of a row so far, and the sum of weight exp(s - most); plus: the sum over
 * edges with a positive score before f. */
struct running_sum {
	float most, sum, plus;
};
static __device__ inline struct running_sum empty_sum()
{
	return {-INFINITY, 0.0f, 0.0f};
}
/* The factor exp(from - to) by which sums relative to the maximum `from` become relative to the
 * larger maximum `to`. A part without an edge that counts has from = -inf, and its sums are 0. */
static __device__ inline float moved(float from, float to)
{
	return from == -INFINITY ? 0.0f : expf(from - to);
}
/* The log of the sum of a row; -inf for a row without edges that count. */
static __device__ inline float log_sum_of(const struct running_sum &r)
{
	return r.sum == 0.0f ? -INFINITY : r.most + logf(r.sum);
}
/* x / sum; 0 for a row without edges that count. */
static __device__ inline float shared_out(float x, float sum)
{
	return sum == 0.0f ? 0.0f : x / sum;
}

#endif
