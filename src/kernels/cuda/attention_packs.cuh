/* What the fast kernels of attention with scores from whole rows (DOT, COSINE and ADD_V2) share.
 *
 * A lane has a pack, which is 8 neighbouring columns of a row (16 bytes in f16). So a head has 1 to
 * 32 neighbouring lanes, a power of two. A sub-warp of one or more whole heads takes a part of the
 * plan, by length (by_length.cuh). It keeps the rows of the part's own node in registers and
 * gathers those of the neighbours, E edges a step. All gathers of a step are issued before any
 * arithmetic.
 *
 * Where a head has at least 4 lanes (SPREAD), the scores of a step end in different lanes: lane l
 * has that of edge l % E. So exp and the mask are computed once for an edge and head (twice with 8
 * lanes), and the weights are shuffled back. A head of 1 or 2 lanes computes all E scores in each
 * of its lanes. */
#ifndef HG_KERNELS_CUDA_ATTENTION_PACKS_CUH
#define HG_KERNELS_CUDA_ATTENTION_PACKS_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/by_length.cuh"

constexpr unsigned WHOLE_WARP = 0xffffffffu;

/* Threads of a block. Small blocks let registers decide more finely how many threads are resident:
 * 6 blocks leave 80 registers a thread, 5 leave 96 and 4 leave 128. */
constexpr int PACK_BLOCK = 128;

/* Edges of a step: with two operands of 16 bytes, 8 loads of a lane are in flight; in f32, where a
 * pack takes 8 registers, as many bytes. */
template <typename T> constexpr int PACK_EDGES = sizeof(T) == sizeof(__half) ? 4 : 2;

/* The number of registers in which a lane holds values of which there is one for each edge of a
 * step and head. */
template <int E, bool SPREAD> constexpr int HELD = SPREAD ? 1 : E;

/* What every pass reads. */
struct packs_problem {
	struct part_list parts;
	struct item_plan plan; /* used by the fold of split rows */
	const int32_t *col;
	int heads, lanes; /* lanes of a head */
	int cols;         /* of all heads */
	int beta_step;
	float scale, slope, plain, folded; /* f(x) = plain x + folded |x| */
	struct floats c;
	struct attention_mask mask;
	float *staging; /* [2 * items, lead] */
	int64_t lead;
};

/* Rows from which a lane loads packs. */
struct pack_rows {
	const void *data;
	uint32_t pitch; /* bytes from row to row */
};

/* ---- the position of a lane ---- */

/* Lanes after the last column compute the last head once more, so that all lanes of a warp take
 * part in shuffles and read valid memory. They store nothing. */
struct pack_lane {
	int column, head;
	bool live, first; /* first: the first lane of a head, which stores what it has once */

	__device__ explicit pack_lane(const struct packs_problem &p)
	{
		const int unit = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x),
		          seat = unit & (p.lanes - 1);
		live = 8 * unit < p.cols;
		first = live && seat == 0;
		head = live ? unit / p.lanes : p.heads - 1;
		column = 8 * (head * p.lanes + seat);
	}
	template <typename T> __device__ const char *of(const struct pack_rows &rows) const
	{
		return reinterpret_cast<const char *>(static_cast<const T *>(rows.data) + column);
	}
};

/* The pack of row j. data: the lane's pack of row 0. */
template <typename T>
static __device__ inline raw<T, 8> pack_at(const char *data, uint32_t pitch, int32_t j)
{
	return fetch<8>(reinterpret_cast<const T *>(
	    data + static_cast<uint64_t>(static_cast<uint32_t>(j)) * pitch));
}
/* The pack of the own row of a part; zeros if there is no part. */
template <typename T>
static __device__ inline void own_pack(const struct pack_lane &at, const struct pack_rows &rows,
                                       int32_t row, float (&x)[8])
{
	raw<T, 8> bits = {};
	if (row >= 0)
		bits = pack_at<T>(at.of<T>(rows), rows.pitch, row);
	unpack(bits, x);
}

/* ---- sums over the lanes of a head. All lanes of a warp must take part ---- */

/* The same bits in every lane. */
static __device__ inline float head_total(float x, int lanes)
{
#pragma unroll
	for (int step = 1; step < 32; step *= 2)
		if (step < lanes)
			x += __shfl_xor_sync(WHOLE_WARP, x, step);
	return x;
}

/* Sums of E values, one for each edge of a step. With SPREAD, each exchange halves the number of
 * edges that a lane still has, so E - 1 + log2(lanes / E) shuffles do. */
template <int E, bool SPREAD>
static __device__ inline void head_sums(float (&x)[E], int lanes, float (&held)[HELD<E, SPREAD>])
{
	if constexpr (SPREAD) {
#pragma unroll
		for (int half = E / 2; half > 0; half /= 2) {
			const bool high = threadIdx.x & half;
#pragma unroll
			for (int i = 0; i < half; i++) {
				const float keep = high ? x[i + half] : x[i], give = high ? x[i] : x[i + half];
				x[i] = keep + __shfl_xor_sync(WHOLE_WARP, give, half);
			}
		}
#pragma unroll
		for (int step = E; step < 32; step *= 2)
			if (step < lanes)
				x[0] += __shfl_xor_sync(WHOLE_WARP, x[0], step);
		held[0] = x[0];
	} else {
#pragma unroll
		for (int u = 0; u < E; u++)
			held[u] = lanes > 1 ? x[u] + __shfl_xor_sync(WHOLE_WARP, x[u], 1) : x[u];
	}
}

/* The edge of a step that this lane has in register h. */
template <int E, bool SPREAD> static __device__ inline int held_edge(int h)
{
	return SPREAD ? static_cast<int>(threadIdx.x) % E : h;
}
/* The value of edge u. */
template <int E, bool SPREAD>
static __device__ inline float given(const float (&held)[HELD<E, SPREAD>], int u)
{
	if constexpr (SPREAD)
		return __shfl_sync(WHOLE_WARP, held[0], u, E);
	else
		return held[u];
}
/* The sum, over all edges of a part, of values that lanes summed for the edges that they had. */
template <int E, bool SPREAD> static __device__ inline float part_total(float x)
{
	return SPREAD ? lanes_sum<E>(x) : x;
}

/* ---- scores ---- */

static __device__ inline float pack_dot(const float (&x)[8], const float (&y)[8])
{
	float sum = 0.0f;
#pragma unroll
	for (int i = 0; i < 8; i++)
		sum = fmaf(x[i], y[i], sum);
	return sum;
}

/* The inverse norm of a head of a row. */
static __device__ inline float head_inverse_norm(const float (&x)[8], int lanes)
{
	return inverse_norm(head_total(pack_dot(x, x), lanes));
}

/* The constants of a lane's head and columns, and the score of an edge. */
template <int SCORE> struct pack_score {
	static constexpr bool V2 = SCORE == HG_SCORE_ADD_V2, COSINE = SCORE == HG_SCORE_COSINE;
	const struct packs_problem &p;
	float c[V2 ? 8 : 1]; /* ADD_V2: the vector; COSINE: beta */

	__device__ pack_score(const struct packs_problem &problem, const struct pack_lane &at)
	    : p(problem)
	{
		if constexpr (V2)
			p.c.get<8>(at.column, c);
		else if constexpr (COSINE)
			p.c.get<1>(at.head * p.beta_step, c);
	}
	/* The lane's part of the sum over the columns of a head, from the own row and a neighbour's.
	 * The result does not depend on which of them is Q and which is K. For ADD_V2,
	 *
	 *     f(x) = (1 + slope) / 2 x + (1 - slope) / 2 |x|
	 *
	 * takes two FMAs for each column, and no comparison. */
	__device__ float part(const float (&own)[8], const float (&y)[8]) const
	{
		if constexpr (V2) {
			float plain = 0.0f, folded = 0.0f;
#pragma unroll
			for (int i = 0; i < 8; i++) {
				const float x = own[i] + y[i];
				plain = fmaf(c[i], x, plain);
				folded = fmaf(c[i], fabsf(x), folded);
			}
			return fmaf(p.plain, plain, p.folded * folded);
		} else {
			return pack_dot(own, y);
		}
	}
	/* The score from the sum. The inverse norms are read for COSINE alone. */
	__device__ float of(float sum, float inverse_q, float inverse_k) const
	{
		if constexpr (COSINE)
			return score_of(c[0], cosine(sum, inverse_q, inverse_k), 0.0f);
		else
			return V2 ? sum : score_of(p.scale, sum, 0.0f);
	}
};

/* The masks of the edges that a lane holds, edge (i, j) of register 0. Without SPREAD, a lane draws
 * for one edge, for all heads of its octet at once, and the lanes exchange the answers. */
template <int E, bool SPREAD>
static __device__ inline void held_masks(const struct attention_mask &mask, int32_t i, int32_t j,
                                         int head, float (&held)[HELD<E, SPREAD>])
{
#pragma unroll
	for (int h = 0; h < HELD<E, SPREAD>; h++)
		held[h] = 1.0f;
	if (!mask.step)
		return;
	if constexpr (SPREAD) {
		held[0] = mask.of(i, j, head);
	} else {
		const struct hg__rng4 words = mask.words(i, j, head / 8);
		unsigned dropped = 0;
#pragma unroll
		for (int b = 0; b < 8; b++)
			dropped |= (mask.of_words(words, b) == 0.0f ? 1u : 0u) << b;
#pragma unroll
		for (int u = 0; u < E; u++)
			held[u] = __shfl_sync(WHOLE_WARP, dropped, u, E) >> head % 8 & 1 ? 0.0f : mask.kept;
	}
}

/* ---- the iteration over parts ---- */

/* What a lane does with a part. All lanes of a warp call these together; only load and load_if
 * differ between the sub-warps.
 *
 *     lane.open(row)             the part belongs to `row`; -1: the sub-warp has no part
 *     lane.look_up(live, id)     start the loads for the edge that this lane holds, to column `id`
 *     lane.load(u, id)           start the gathers of edge u of the step
 *     lane.load_if(live, u, id)  the same if the edge exists; otherwise its rows are 0
 *     lane.step(id, left)        compute the step, of which `left` edges exist (or E, if more)
 *     lane.put(row, slot)        the part is complete
 *     lane.zero(row)             the row is empty */
template <int E, typename C>
static __device__ inline void walk_part(const struct part_list &list, int64_t part,
                                        const int32_t *cols, C &lane)
{
	const struct own_part own = part_at(list, part, list.first[EMPTY_CLASS]);
	const int mine = static_cast<int>(threadIdx.x) % E;
	const int32_t *col = cols + own.begin + mine;
	int left = own.count; /* edges from this step on */
	int32_t next = mine < left ? __ldg(col) : 0;
	lane.open(own.row);
	for (int more = __reduce_max_sync(WHOLE_WARP, left); more > 0; more -= E) {
		const int32_t id = next;
		/* before the gathers: behind them, it would not be issued until they complete */
		col += E;
		next = E + mine < left ? __ldg(col) : 0;
		lane.look_up(mine < left, id);
		if (__all_sync(WHOLE_WARP, left >= E)) {
#pragma unroll
			for (int u = 0; u < E; u++)
				lane.load(u, __shfl_sync(WHOLE_WARP, id, u, E));
		} else { /* the last step of a part, or of the longest parts of the warp */
#pragma unroll
			for (int u = 0; u < E; u++) {
				const int32_t j = __shfl_sync(WHOLE_WARP, id, u, E);
				lane.load_if(u < left, u, j);
			}
		}
		lane.step(id, left);
		left -= E;
	}
	/* part_at is called a second time, because keeping its result would take registers */
	const struct own_part done = part_at(list, part, list.first[EMPTY_CLASS]);
	lane.put(done.row, done.slot);
}

/* The parts of a block. Every part takes steps of its own. */
template <int E, typename C>
static __device__ inline void walk_parts(const struct packs_problem &p, C &lane)
{
	const struct block_share share = share_of(p.parts, blockIdx.x);
	const int64_t sub_warp = static_cast<int64_t>(share.block) * blockDim.y + threadIdx.y;
	if (share.part_class == 0) {
		walk_part<E>(p.parts, sub_warp, p.col, lane);
		return;
	}
	const int64_t i = p.parts.first[EMPTY_CLASS] + sub_warp * E,
	              end = p.parts.first[EMPTY_CLASS + 1];
	for (int64_t r = i; r < end && r < i + E; r++)
		lane.zero(part_at(p.parts, r, end).row);
}

/* ---- host ---- */

/* Blocks of sub-warps of x lanes, and the passes over the columns in y. A sub-warp has 8 lanes, as
 * in aggregation (spmm.cu), 4 if all heads together have no more, or one head if that has more. */
struct packs_shape {
	dim3 block;
	unsigned passes;
};
static inline struct packs_shape packs_shape_of(const struct hg__attention &of)
{
	const unsigned units = static_cast<unsigned>(of.q.cols / 8),
	               lanes = units / static_cast<unsigned>(of.heads);
	const unsigned least = units > 4 ? 8 : 4, x = lanes > least ? lanes : least;
	return {dim3(x, PACK_BLOCK / x), (units + x - 1) / x};
}

template <typename T>
static inline struct part_list packs_parts(const struct hg__csr &csr, dim3 block)
{
	return part_list_of(csr, nullptr, true, PACK_EDGES<T>, false, block.y);
}

static inline struct pack_rows pack_rows_of(const struct hg__mat &m)
{
	return {m.data, static_cast<uint32_t>(m.ld * static_cast<int64_t>(hg_dtype_size(m.dtype)))};
}

/* The part of a problem that does not depend on the pass. */
static inline void describe(struct packs_problem *p, const struct hg__csr &csr,
                            const struct hg__attention &of)
{
	p->plan = attention_plan_of(csr);
	p->col = csr.col;
	p->heads = of.heads;
	p->cols = static_cast<int>(of.q.cols);
	p->lanes = static_cast<int>(of.q.cols / of.heads / 8);
	p->beta_step = of.c.cols > 1;
	p->slope = of.slope;
	p->scale = of.scale;
	p->plain = 0.5f * (1.0f + of.slope);
	p->folded = 0.5f * (1.0f - of.slope);
	p->c = floats_of(of.c);
	p->mask = mask_of(of.dropout);
}

/* Whether the kernels can compute these scores and values on this orientation of the graph. */
HG_NODISCARD bool hg__attention_packs_fit(const struct hg__csr &csr,
                                          const struct hg__attention &of);

/* COSINE: inverse [x.rows, heads] = 1 / norm of the heads of X, or 0. */
HG_NODISCARD hg_status hg__attention_norms(hg_context *ctx, const struct hg__attention &of,
                                           const struct hg__mat &x, float *inverse);

/* Whether V is the matrix K, whose rows then are gathered once. f32 has no kernel for it. */
static inline bool packs_share(const struct hg__attention &of)
{
	return of.k.data == of.v.data && of.k.ld == of.v.ld && of.v.dtype == HG_F16;
}

/* Calls f(T{}, SCORE, SAME, SPREAD) with integral constants, for a call that fits. */
template <typename F> static inline hg_status with_packs(const struct hg__attention &of, F f)
{
	const bool spread = of.q.cols / of.heads >= 8 * 4, same = packs_share(of);
	const auto of_score = [&](auto score) {
		using no = int_constant<0>;
		using yes = int_constant<1>;
		if (of.v.dtype == HG_F32)
			return spread ? f(float{}, score, no{}, yes{}) : f(float{}, score, no{}, no{});
		if (same)
			return spread ? f(__half{}, score, yes{}, yes{}) : f(__half{}, score, yes{}, no{});
		return spread ? f(__half{}, score, no{}, yes{}) : f(__half{}, score, no{}, no{});
	};
	return of.score == HG_SCORE_DOT      ? of_score(int_constant<HG_SCORE_DOT>{})
	       : of.score == HG_SCORE_COSINE ? of_score(int_constant<HG_SCORE_COSINE>{})
	                                     : of_score(int_constant<HG_SCORE_ADD_V2>{});
}

#endif
