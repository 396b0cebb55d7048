/* What the fast kernels of attention with scores from whole rows (DOT, COSINE and ADD_V2) share.
 *
 * A lane has a pack, which is 8 neighbouring columns of a row (16 bytes in f16). So a head has 1 to
 * 32 neighbouring lanes, a power of two. A sub-warp of one or more whole heads takes a part of the
 * plan, by length (by_length.cuh). It keeps the rows of the part's own node in registers and
 * gathers those of the neighbours, E edges a step. All gathers of a step are issued before any
 * arithmetic.
 *
 * Where a head has at least 4 lanes (SPREAD), the scores of a step end in different lanes, one in
 * each of E lanes (held_edge). So exp and the mask are computed once for an edge and head (twice
 * with 8 lanes and 4 edges), and the weights are shuffled back. A head of 1 or 2 lanes computes all
 * E scores in each of its lanes. Heads of 8 lanes and halves take their dot products from tensor
 * cores (attention_packs_dots.cuh), and their scores of ADD_V2 (attention_packs_vector.cuh). */
#ifndef HG_KERNELS_CUDA_ATTENTION_PACKS_CUH
#define HG_KERNELS_CUDA_ATTENTION_PACKS_CUH

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/by_length.cuh"
#include "kernels/cuda/tensor_core.cuh"

/* Threads of a block. Small blocks let registers decide more finely how many threads are resident:
 * 6 blocks leave 80 registers a thread, 5 leave 96 and 4 leave 128. */
constexpr int PACK_BLOCK = 128;

/* SPREAD: how the scores of a step are shared. */
enum {
	FEW_LANES,       /* heads of 1 or 2 lanes: not at all */
	SPREAD_SCORES,   /* heads of at least 4 lanes */
	SPREAD_SHORT,    /* the same for short rows of halves: 2 edges a step */
	EIGHT_LANES,     /* heads of 8 lanes, halves: as above, with tensor cores */
	EIGHT_LANES_LONG /* the same for long rows: 8 edges a step where one operand is gathered */
};

/* Edges of a step. With two operands of 16 bytes, 8 loads of a lane are in flight; in f32, where a
 * pack takes 8 registers, as many bytes. ONE: only one operand is gathered. */
template <typename T, bool ONE, int SPREAD>
constexpr int PACK_EDGES = sizeof(T) != sizeof(__half)        ? 2
                           : SPREAD == SPREAD_SHORT           ? 2
                           : ONE &&SPREAD == EIGHT_LANES_LONG ? 8
                                                              : 4;

/* Empty rows that a sub-warp takes. It does not depend on the number of edges of a step, and so
 * neither does the number of blocks. */
constexpr int EMPTY_AT_ONCE = 4;

/* The number of registers in which a lane holds values of which there is one for each edge of a
 * step and head. */
template <int E, int SPREAD> constexpr int HELD = SPREAD ? 1 : E;

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
	const int32_t *item_slot;
	float *staging; /* [slots, lead] in the numbering of item_slot (core/csr.h) */
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
		head = live ? unit >> (__ffs(p.lanes) - 1) : p.heads - 1;
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
static __device__ inline raw<T, 8> own_bits(const struct pack_lane &at,
                                            const struct pack_rows &rows, int32_t row)
{
	raw<T, 8> bits = {};
	if (row >= 0)
		bits = pack_at<T>(at.of<T>(rows), rows.pitch, row);
	return bits;
}
template <typename T>
static __device__ inline void own_pack(const struct pack_lane &at, const struct pack_rows &rows,
                                       int32_t row, float (&x)[8])
{
	unpack(own_bits<T>(at, rows, row), x);
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

/* Where several lanes hold one edge each: the edge of this lane, and the value of edge u. With 8
 * edges, lanes 0 to 3 have the even ones; with 2, two neighbouring lanes have the same. */
template <int E> static __device__ inline int own_edge()
{
	const int lane = static_cast<int>(threadIdx.x);
	return E == 8 ? 2 * (lane % 4) + lane / 4 % 2 : E == 2 ? lane / 2 % 2 : lane % E;
}
template <int E, typename V> static __device__ inline V from_edge(V x, int u)
{
	return __shfl_sync(WHOLE_WARP, x,
	                   E == 8   ? u / 2 + 4 * (u % 2)
	                   : E == 2 ? 2 * u
	                            : u,
	                   E == 8 ? 8 : 4);
}

/* Sums of E values, one for each edge of a step. With SPREAD, each exchange halves the number of
 * edges that a lane still has, so E - 1 + log2(lanes / E) shuffles do. The lanes are added in the
 * order 2, 1, 4, 8, 16 for any E, so that a score has the same bits in kernels with different E.
 */
template <int E, int SPREAD>
static __device__ inline void head_sums(float (&x)[E], int lanes, float (&held)[HELD<E, SPREAD>])
{
	if constexpr (SPREAD != FEW_LANES) {
		constexpr int STEP[3] = {2, 1, 4}, EXCHANGES = E == 8 ? 3 : E / 2;
#pragma unroll
		for (int level = 0; level < EXCHANGES; level++) {
			const int step = STEP[level], half = E / 2 >> level;
			const bool high = threadIdx.x & step;
#pragma unroll
			for (int i = 0; i < half; i++) {
				const float keep = high ? x[i + half] : x[i], give = high ? x[i] : x[i + half];
				x[i] = keep + __shfl_xor_sync(WHOLE_WARP, give, step);
			}
		}
		if constexpr (E == 2)
			x[0] += __shfl_xor_sync(WHOLE_WARP, x[0], 1);
#pragma unroll
		for (int step = E == 8 ? 8 : 4; step < 32; step *= 2)
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
template <int E, int SPREAD> static __device__ inline int held_edge(int h)
{
	return SPREAD ? own_edge<E>() : h;
}
/* The value of edge u. */
template <int E, int SPREAD>
static __device__ inline float given(const float (&held)[HELD<E, SPREAD>], int u)
{
	if constexpr (SPREAD != FEW_LANES)
		return from_edge<E>(held[0], u);
	else
		return held[u];
}
/* Over the lanes that hold different edges, if several do: x becomes of(x, x of another lane). */
template <int E, int SPREAD, typename F> static __device__ inline float over_edges(float x, F of)
{
	if constexpr (SPREAD != FEW_LANES)
#pragma unroll
		for (int step = E == 8 ? 4 : 2; step > (E == 2 ? 1 : 0); step /= 2)
			x = of(x, __shfl_xor_sync(WHOLE_WARP, x, step));
	return x;
}
/* The sum, over all edges of a part, of values that lanes summed for the edges that they had. */
template <int E, int SPREAD> static __device__ inline float part_total(float x)
{
	return over_edges<E, SPREAD>(x, [](float a, float b) { return a + b; });
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

/* exp(s - offset) as weighted_exp says, in fewer instructions where the state is f16: there is one
 * for every edge. ex2 is within 2 units in the last place, and 0 below 2^-126. */
template <typename T> static __device__ inline float pack_exp(float s, float offset)
{
	if constexpr (sizeof(T) == sizeof(float)) {
		return weighted_exp(s, offset, 1.0f);
	} else {
		float y;
		asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"((s - offset) * 1.4426950408889634f));
		return s == -INFINITY ? 0.0f : y;
	}
}

/* The masks of the edges that a lane holds, edge (i, j) of register 0. Without SPREAD, a lane draws
 * for one edge, for all heads of its octet at once, and the lanes exchange the answers. */
template <int E, int SPREAD>
static __device__ inline void held_masks(const struct attention_mask &mask, int32_t i, int32_t j,
                                         int head, float (&held)[HELD<E, SPREAD>])
{
#pragma unroll
	for (int h = 0; h < HELD<E, SPREAD>; h++)
		held[h] = 1.0f;
	if (!mask.step)
		return;
	if constexpr (SPREAD != FEW_LANES) {
		held[0] = mask.of(i, j, head);
	} else {
		const struct hg__rng4 words = mask.words(i, j, head / 8);
		unsigned dropped = 0;
#pragma unroll
		for (int b = 0; b < 8; b++)
			dropped |= (mask.of_words(words, b) == 0.0f ? 1u : 0u) << b;
#pragma unroll
		for (int u = 0; u < E; u++)
			held[u] = from_edge<E>(dropped, u) >> head % 8 & 1 ? 0.0f : mask.kept;
	}
}

/* ---- the iteration over parts ---- */

/* The part of a sub-warp, and the column of the edge that this lane holds first. They belong to the
 * graph, so they are read while the previous kernel still runs. */
struct part_start {
	struct block_share share;
	int64_t sub_warp; /* its number among those of long parts, or of empty rows */
	struct own_part own;
	int32_t id;
};
template <int E> static __device__ inline struct part_start start_of(const struct packs_problem &p)
{
	struct part_start start;
	start.share = share_of(p.parts, blockIdx.x);
	start.sub_warp = static_cast<int64_t>(start.share.block) * blockDim.y + threadIdx.y;
	start.own = {0, 0, -1, -1};
	if (start.share.part_class == 0)
		start.own = part_at(p.parts, start.sub_warp, p.parts.first[EMPTY_CLASS]);
	const int mine = own_edge<E>();
	start.id = mine < start.own.count ? __ldg(p.col + start.own.begin + mine) : 0;
	return start;
}

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
                                        const struct part_start &start, const int32_t *cols,
                                        C &lane)
{
	const struct own_part &own = start.own;
	const int mine = own_edge<E>();
	const int32_t *col = cols + own.begin + mine;
	int left = own.count; /* edges from this step on */
	int32_t next = start.id;
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
				lane.load(u, from_edge<E>(id, u));
		} else { /* the last step of a part, or of the longest parts of the warp */
#pragma unroll
			for (int u = 0; u < E; u++) {
				const int32_t j = from_edge<E>(id, u);
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
static __device__ inline void walk_parts(const struct packs_problem &p,
                                         const struct part_start &start, C &lane)
{
	if (start.share.part_class == 0) {
		walk_part<E>(p.parts, start.sub_warp, start, p.col, lane);
		return;
	}
	const int64_t i = p.parts.first[EMPTY_CLASS] + start.sub_warp * EMPTY_AT_ONCE,
	              end = p.parts.first[EMPTY_CLASS + 1];
	for (int64_t r = i; r < end && r < i + EMPTY_AT_ONCE; r++)
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

static inline struct part_list packs_parts(const struct hg__csr &csr, dim3 block)
{
	return part_list_of(csr, nullptr, true, EMPTY_AT_ONCE, false, block.y);
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
	p->item_slot = csr.plan ? csr.plan->item_slot : nullptr;
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

/* Whether heads have 8 lanes of halves, whose dot products tensor cores compute. */
static inline bool packs_multiply(const struct hg__attention &of)
{
	return of.v.dtype == HG_F16 && of.q.cols / of.heads == 8 * 8;
}

/* Whether inverse norms of K are computed first, and gathered. Tensor cores could compute them from
 * each gathered row; with that, the forward pass took 3.16 ms instead of 2.06 on reddit-like (H200,
 * f16, F = 64). */
static inline bool gathers_norms(const struct hg__attention &of)
{
	return of.score == HG_SCORE_COSINE;
}

/* Rows of more edges than this on average take 8 at a step where one operand is gathered. Two whole
 * steps; other limits were not measured. */
constexpr int64_t LONG_ROWS = 16;

/* Rows of at most as many edges on average take 2 at a step, where heads have 4 lanes or more. On
 * molecules, whose rows have 2.1, half of the places of 4 stayed empty: DOT with 128 columns took
 * 0.040 and 0.116 ms forward and backward on an H200, and takes 0.033 and 0.101 so and with the
 * records that rows write (attention_packs_back.cu). The limit lies between the 2 places and the 4;
 * other limits were not measured. */
constexpr int64_t SHORT_ROWS = 3;

/* Calls f(T{}, SCORE, SAME, SPREAD) with integral constants, for a call that fits. */
template <typename F>
static inline hg_status with_packs(const struct hg__attention &of, const struct hg__csr &csr, F f)
{
	const bool spread = of.q.cols / of.heads >= 8 * 4, same = packs_share(of);
	const auto of_half = [&](auto score, auto one) {
		using few = int_constant<FEW_LANES>;
		using some = int_constant<SPREAD_SCORES>;
		using some_short = int_constant<SPREAD_SHORT>;
		using eight = int_constant<EIGHT_LANES>;
		using eight_long = int_constant<EIGHT_LANES_LONG>;
		if (!packs_multiply(of) && spread && csr.m <= SHORT_ROWS * csr.rows)
			return f(__half{}, score, one, some_short{});
		if (!packs_multiply(of))
			return spread ? f(__half{}, score, one, some{}) : f(__half{}, score, one, few{});
		if constexpr (decltype(one)::value != 0)
			if (csr.m > LONG_ROWS * csr.rows)
				return f(__half{}, score, one, eight_long{});
		return f(__half{}, score, one, eight{});
	};
	const auto of_score = [&](auto score) {
		using no = int_constant<0>;
		using yes = int_constant<1>;
		if (of.v.dtype == HG_F32)
			return spread ? f(float{}, score, no{}, int_constant<SPREAD_SCORES>{})
			              : f(float{}, score, no{}, int_constant<FEW_LANES>{});
		return same ? of_half(score, yes{}) : of_half(score, no{});
	};
	return of.score == HG_SCORE_DOT      ? of_score(int_constant<HG_SCORE_DOT>{})
	       : of.score == HG_SCORE_COSINE ? of_score(int_constant<HG_SCORE_COSINE>{})
	                                     : of_score(int_constant<HG_SCORE_ADD_V2>{});
}

#endif
