/* The gradients of attention with scores from whole rows (attention_packs.cuh): what the two passes
 * over the edges share.
 *
 *     columns (csr_t)   K_j and V_j stay in registers; Q_i, dY_i and the record of row i are
 *                       gathered: dV_j and dK_j
 *     rows (csr)        Q_i, dY_i and the record stay; K_j and V_j are gathered: dQ_i
 *
 * Both compute the same ds = p (mask <dY_i, V_j> - D_i), and sum over the part
 *
 *     DOT       g = sum of ds y                     with y the neighbour's row of the score
 *     COSINE    g = sum of ds y / |y|
 *     ADD_V2    g = sum of ds f'(x + y)             with x the own row
 *
 * (and the columns also the sum of mask p dY_i). These sums are linear in the edges, so parts of
 * split rows add. What remains is computed once for a row:
 *
 *     DOT       d = scale g
 *     COSINE    d = beta / |x| (g - x' <x', g>)     with x' = x / |x|:  <x', g> = sum of ds t
 *     ADD_V2    d = c g
 *
 * and so is dc. For COSINE it is the sum of <x', g> over the rows. For ADD_V2, f(x) = x f'(x) gives
 *
 *     dc = sum over edges of ds f(Q_i + K_j) = sum over i of Q_i g_i + sum over j of K_j g_j */
#ifndef HG_KERNELS_CUDA_ATTENTION_PACKS_BACK_CUH
#define HG_KERNELS_CUDA_ATTENTION_PACKS_BACK_CUH

#include <type_traits>

#include "kernels/cuda/attention_packs.cuh"

/* What the passes need of a row and head: the softmax output, D and, for COSINE, the inverse norm
 * of Q. */
template <int SCORE> struct alignas(8) back_record {
	float softmax, d;
};
template <> struct alignas(16) back_record<HG_SCORE_COSINE> {
	float softmax, d, inverse_q, padding;
};

struct back_problem : packs_problem {
	/* x: the rows of the score, y: those that the dot product with ds is made of. Columns: own K
	 * and V, Q and dY gathered; rows: own Q and dY, K and V gathered. */
	struct pack_rows own_x, own_y, x, y;
	const void *record;     /* back_record [rows, heads] */
	const float *inverse_k; /* COSINE: [cols, heads] */
	void *dx, *dy;          /* dK and dV; dQ and nothing. NULL: not stored */
	int64_t ld_dx, ld_dy;
	bool together; /* columns: dV is dK, which receives the sum */
	/* f32 [rows, cols], or NULL: what the columns compute of dQ's matrix, which rows add to dQ
	 * before it is narrowed. That is dV if carries_dy, otherwise dK, or both together. */
	float *carry;
	bool carries_dy;
	float *dc; /* a row of partial sums for each block, or NULL */
};

/* The own row of a part as the derivative of ADD_V2 reads it: x + y > 0 is y > -x, in f16 two
 * comparisons at once. */
template <typename T> struct negative_pack {
	float x[8];
	__device__ void set(const float (&own)[8])
	{
#pragma unroll
		for (int i = 0; i < 8; i++)
			x[i] = -own[i];
	}
	/* sum[i] += ds where x[i] + y[i] > 0 */
	__device__ void add_where(const raw<T, 8> &bits, float ds, float (&sum)[8]) const
	{
		float y[8];
		unpack(bits, y);
#pragma unroll
		for (int i = 0; i < 8; i++)
			if (y[i] > x[i])
				sum[i] += ds;
	}
};
template <> struct negative_pack<__half> {
	unsigned x[4];
	__device__ void set(const float (&own)[8])
	{
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const __half2 pair = __floats2half2_rn(-own[2 * i], -own[2 * i + 1]);
			memcpy(&x[i], &pair, sizeof pair);
		}
	}
	__device__ void add_where(const raw<__half, 8> &bits, float ds, float (&sum)[8]) const
	{
		const unsigned y[4] = {bits.q[0].x, bits.q[0].y, bits.q[0].z, bits.q[0].w};
#pragma unroll
		for (int i = 0; i < 4; i++)
			asm("{\n"
			    ".reg .pred low, high;\n"
			    "setp.gt.f16x2 low|high, %2, %3;\n"
			    "@low add.rn.f32 %0, %0, %4;\n"
			    "@high add.rn.f32 %1, %1, %4;\n"
			    "}"
			    : "+f"(sum[2 * i]), "+f"(sum[2 * i + 1])
			    : "r"(y[i]), "r"(x[i]), "f"(ds));
	}
};
struct no_pack {
};

/* ---- the end of a row ---- */

/* d from g. All lanes of a warp must take part. */
template <int SCORE>
static __device__ inline void finish_gradient(const struct packs_problem &p,
                                              const struct pack_score<SCORE> &score,
                                              const float (&own)[8], float (&g)[8])
{
	if constexpr (SCORE == HG_SCORE_COSINE) {
		const float squares = head_total(pack_dot(own, own), p.lanes),
		            inverse = inverse_norm(squares),
		            t = head_total(pack_dot(own, g), p.lanes) * inverse * inverse,
		            factor = score.c[0] * inverse;
#pragma unroll
		for (int i = 0; i < 8; i++)
			g[i] = factor * (g[i] - own[i] * t);
	} else {
#pragma unroll
		for (int i = 0; i < 8; i++)
			g[i] *=
			    SCORE == HG_SCORE_ADD_V2 ? score.c[i % (sizeof score.c / sizeof(float))] : p.scale;
	}
}

/* Stores a finished row. b: dV, of columns. */
template <typename T, bool COLUMNS>
static __device__ inline void put_gradient(const struct back_problem &p, const struct pack_lane &at,
                                           int32_t row, float (&d)[8], const float (&b)[8])
{
	float *carry = p.carry + static_cast<int64_t>(row) * p.cols + at.column;
	float other[8] = {};
	if (!COLUMNS && p.carry)
		load<8>(carry, other);
#pragma unroll
	for (int i = 0; i < 8; i++)
		d[i] += COLUMNS ? (p.together ? b[i] : 0.0f) : other[i];
	if (COLUMNS && p.carry && p.carries_dy)
		store<8>(carry, b);
	else if (COLUMNS && p.carry)
		store<8>(carry, d);
	if (p.dx)
		store<8>(static_cast<T *>(p.dx) + row * p.ld_dx + at.column, d);
	if (COLUMNS && p.dy)
		store<8>(static_cast<T *>(p.dy) + row * p.ld_dy + at.column, b);
}

/* ---- pass 1: parts ---- */

template <typename T, int SCORE, bool SAME, bool SPREAD, bool COLUMNS> struct back_lane {
	static constexpr int E = PACK_EDGES<T>, H = HELD<E, SPREAD>;
	static constexpr bool COSINE = SCORE == HG_SCORE_COSINE, V2 = SCORE == HG_SCORE_ADD_V2;
	/* V is K: in columns the own rows are one, in rows the gathered ones. */
	static constexpr bool ONE_OWN = SAME && COLUMNS, ONE_GATHER = SAME && !COLUMNS;
	using record = back_record<SCORE>;
	using negative = std::conditional_t<V2, negative_pack<T>, no_pack>;

	const struct back_problem &p;
	const struct pack_lane at;
	const struct pack_score<SCORE> score;
	const char *x_rows, *y_rows;
	int32_t row = -1;
	float own_x[8], own_y[ONE_OWN ? 1 : 8], g[8] = {}, b[COLUMNS ? 8 : 1] = {};
	negative turn;      /* ADD_V2: minus the own row of the score */
	float total = 0.0f; /* ADD_V2: the sum of ds over the edges that this lane has held */
	/* Of the own row in rows, of the edges in columns; the inverse norm of K the other way. */
	record of_row[COLUMNS ? H : 1];
	float inverse_k[COSINE && !COLUMNS ? H : 1];
	raw<T, 8> x[E], y[ONE_GATHER ? 1 : E];

	__device__ explicit back_lane(const struct back_problem &problem)
	    : p(problem), at(problem), score(problem, at), x_rows(at.of<T>(problem.x)),
	      y_rows(at.of<T>(problem.y))
	{
	}
	__device__ record record_of(int32_t i) const
	{
		return static_cast<const record *>(p.record)[static_cast<int64_t>(i) * p.heads + at.head];
	}
	__device__ float inverse_of(int32_t j) const
	{
		return __ldg(p.inverse_k + static_cast<int64_t>(j) * p.heads + at.head);
	}
	__device__ void open(int32_t own)
	{
		row = own;
		own_pack<T>(at, p.own_x, row, own_x);
		if constexpr (!ONE_OWN)
			own_pack<T>(at, p.own_y, row, own_y);
		if constexpr (V2)
			turn.set(own_x);
		if constexpr (!COLUMNS)
			of_row[0] = row >= 0 ? record_of(row) : record{};
		else if constexpr (COSINE)
			inverse_k[0] = head_inverse_norm(own_x, p.lanes);
	}
	/* What register h holds of node `id`. */
	__device__ void look_up_held(int h, bool live, int32_t id)
	{
		if constexpr (COLUMNS)
			of_row[h] = live ? record_of(id) : record{};
		else if constexpr (COSINE)
			inverse_k[h] = live ? inverse_of(id) : 0.0f;
	}
	__device__ void look_up(bool live, int32_t id)
	{
		if constexpr (SPREAD)
			look_up_held(0, live, id);
	}
	__device__ void load(int u, int32_t j)
	{
		x[u] = pack_at<T>(x_rows, p.x.pitch, j);
		if constexpr (!ONE_GATHER)
			y[u] = pack_at<T>(y_rows, p.y.pitch, j);
		if constexpr (!SPREAD)
			look_up_held(u, true, j);
	}
	__device__ void load_if(bool live, int u, int32_t j)
	{
		x[u] = {};
		if constexpr (!ONE_GATHER)
			y[u] = {};
		if constexpr (!SPREAD)
			look_up_held(u, false, j);
		if (live)
			load(u, j);
	}
	/* The score of the edge in register h from the sum over the columns. */
	__device__ float score_of_held(int h, float sum) const
	{
		if constexpr (COSINE)
			return score.of(sum, of_row[COLUMNS ? h : 0].inverse_q, inverse_k[COLUMNS ? 0 : h]);
		else
			return score.of(sum, 1.0f, 1.0f);
	}
	/* The lane's part of both sums over the columns, for every edge of the step. */
	__device__ void products(float (&s)[E], float (&t)[E]) const
	{
#pragma unroll
		for (int u = 0; u < E; u++) {
			float v[8];
			unpack(x[u], v);
			s[u] = score.part(own_x, v);
			if constexpr (!ONE_GATHER)
				unpack(y[u], v);
			if constexpr (ONE_OWN)
				t[u] = pack_dot(own_x, v);
			else
				t[u] = pack_dot(own_y, v);
		}
	}
	/* From the sums of the edges that a lane holds, their factors: s becomes mask p, and t becomes
	 * ds (over the norm of the gathered row, for COSINE). */
	__device__ void factors(int32_t id, int left, float (&s)[H], float (&t)[H])
	{
		float mask[H];
		held_masks<E, SPREAD>(p.mask, COLUMNS ? id : row, COLUMNS ? row : id, at.head, mask);
#pragma unroll
		for (int h = 0; h < H; h++) {
			const record r = of_row[COLUMNS ? h : 0];
			const bool live = held_edge<E, SPREAD>(h) < left;
			const float weight =
			                attention_p(live ? score_of_held(h, s[h]) : -INFINITY, r.softmax, 1.0f),
			            ds = weight * (mask[h] * t[h] - r.d);
			s[h] = weight * mask[h];
			t[h] = ds;
			if constexpr (V2)
				total += ds;
			if constexpr (COSINE)
				t[h] = ds * (COLUMNS ? r.inverse_q : inverse_k[COLUMNS ? 0 : h]);
		}
	}
	__device__ void step(int32_t id, int left)
	{
		float s[E], t[E], weight[H], ds[H];
		products(s, t);
		head_sums<E, SPREAD>(s, p.lanes, weight);
		head_sums<E, SPREAD>(t, p.lanes, ds);
		factors(id, left, weight, ds);
#pragma unroll
		for (int u = 0; u < E; u++) {
			const float d = given<E, SPREAD>(ds, u);
			float v[8];
			if constexpr (V2) {
				turn.add_where(x[u], d, g);
			} else {
				unpack(x[u], v);
#pragma unroll
				for (int i = 0; i < 8; i++)
					g[i] = fmaf(d, v[i], g[i]);
			}
			if constexpr (COLUMNS) {
				const float w = given<E, SPREAD>(weight, u);
				unpack(y[u], v);
#pragma unroll
				for (int i = 0; i < 8; i++)
					b[i] = fmaf(w, v[i], b[i]);
			}
		}
	}
	__device__ void put(int32_t own, int64_t slot)
	{
		if constexpr (V2) {
			total = part_total<E, SPREAD>(total);
#pragma unroll
			for (int i = 0; i < 8; i++)
				g[i] = fmaf(1.0f - p.slope, g[i], p.slope * total);
		}
		float d[8];
#pragma unroll
		for (int i = 0; i < 8; i++)
			d[i] = g[i];
		finish_gradient<SCORE>(p, score, own_x, d);
		if (own < 0 || !at.live)
			return;
		if (slot < 0) {
			if constexpr (COLUMNS)
				put_gradient<T, true>(p, at, own, d, b);
			else
				put_gradient<T, false>(p, at, own, d, d);
			return;
		}
		float *to = p.staging + slot * p.lead + at.column;
		store<8>(to, g);
		if constexpr (COLUMNS)
			store<8>(to + p.cols, b);
	}
	__device__ void zero(int32_t own)
	{
		float d[8] = {};
		if (own >= 0 && at.live)
			put_gradient<T, COLUMNS>(p, at, own, d, d);
	}
	/* The part of dc that this lane has: for each column with ADD_V2, for the head with COSINE. */
	__device__ void share_of_dc(float (&dc)[V2 ? 8 : 1]) const
	{
		if constexpr (V2)
#pragma unroll
			for (int i = 0; i < 8; i++)
				dc[i] = row >= 0 ? own_x[i] * g[i] : 0.0f;
		else
			dc[0] = row >= 0 ? of_row[0].inverse_q * pack_dot(own_x, g) : 0.0f;
	}
};

/* Sums over the sub-warps of a block, in order, and stores the row of the block. */
template <int W>
static __device__ inline void put_block_dc(const struct back_problem &p, const float (&mine)[W])
{
	__shared__ float all[PACK_BLOCK * W];
	const int width = static_cast<int>(blockDim.x) * W;
#pragma unroll
	for (int i = 0; i < W; i++)
		all[(threadIdx.y * blockDim.x + threadIdx.x) * W + i] = mine[i];
	__syncthreads();
	const int total = p.cols / 8 * W;
	for (int c = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); c < width;
	     c += PACK_BLOCK) {
		const int at = static_cast<int>(blockIdx.y) * width + c;
		float sum = 0.0f;
		for (unsigned y = 0; y < blockDim.y; y++)
			sum += all[y * width + c];
		if (at < total)
			p.dc[static_cast<int64_t>(blockIdx.x) * total + at] = sum;
	}
}

/* Blocks of a multiprocessor. The compiler keeps both packs of a step unpacked, in 64 registers,
 * and columns have two sums and two own rows. Without SPREAD a lane has the scores and records of
 * all edges of a step; COSINE with separate values has the largest record. */
template <int SCORE, bool SAME, bool SPREAD, bool COLUMNS>
constexpr int BACK_BLOCKS =
    !COLUMNS ? (SPREAD ? 5 : 4) : (SPREAD && (SAME || SCORE != HG_SCORE_COSINE) ? 4 : 3);

template <typename T, int SCORE, bool SAME, bool SPREAD, bool COLUMNS>
static __global__ void __launch_bounds__(PACK_BLOCK, BACK_BLOCKS<SCORE, SAME, SPREAD, COLUMNS>)
    back_parts(const __grid_constant__ struct back_problem p)
{
	constexpr bool V2 = SCORE == HG_SCORE_ADD_V2;
	after_previous();
	struct back_lane<T, SCORE, SAME, SPREAD, COLUMNS> lane(p);
	walk_parts<PACK_EDGES<T>>(p, lane);
	if constexpr (V2 || (SCORE == HG_SCORE_COSINE && !COLUMNS))
		if (p.dc) {
			float dc[V2 ? 8 : 1];
			lane.share_of_dc(dc);
			put_block_dc(p, dc);
		}
}

/* ---- pass 2: rows that lie in several items ---- */

/* Adds the slots of split row s, a pack of a lane, in slot order. */
static __device__ inline void add_slots(const struct back_problem &p, int64_t s, int column,
                                        float (&sum)[8])
{
	constexpr int SLOTS = 4; /* whose loads are in flight together */
	const int64_t first = p.plan.split_first[s], last = p.plan.split_last[s];
	for (int64_t item = first; item <= last; item += SLOTS) {
		float part[SLOTS][8] = {};
#pragma unroll
		for (int u = 0; u < SLOTS; u++)
			if (item + u <= last)
				load<8>(p.staging + slot_of(item + u, last) * p.lead + column, part[u]);
#pragma unroll
		for (int u = 0; u < SLOTS; u++)
#pragma unroll
			for (int i = 0; i < 8; i++)
				sum[i] += part[u][i];
	}
}

template <typename T, int SCORE, bool COLUMNS>
static __global__ void __launch_bounds__(PACK_BLOCK)
    back_fold(const __grid_constant__ struct back_problem p)
{
	after_previous();
	const int64_t s = own_piece();
	const struct pack_lane at(p);
	const struct pack_score<SCORE> score(p, at);
	const int32_t row = s < p.plan.splits ? p.plan.split_row[s] : -1;
	float own[8], g[8] = {}, b[8] = {};
	own_pack<T>(at, p.own_x, row, own);
	if (row >= 0) {
		add_slots(p, s, at.column, g);
		if (COLUMNS)
			add_slots(p, s, p.cols + at.column, b);
	}
	finish_gradient<SCORE>(p, score, own, g);
	if (row >= 0 && at.live)
		put_gradient<T, COLUMNS>(p, at, row, g, b);
}

/* ---- launch ---- */

/* Queues one pass. p: all but parts and plan are set. */
template <typename T, int SCORE, bool SAME, bool SPREAD, bool COLUMNS>
static hg_status run_back(hg_context *ctx, const char *what, const struct hg__csr &csr,
                          const struct hg__attention &of, struct back_problem p)
{
	const struct packs_shape shape = packs_shape_of(of);
	p.parts = packs_parts<T>(csr, shape.block);
	HG__TRY(launch(ctx, what, back_parts<T, SCORE, SAME, SPREAD, COLUMNS>,
	               dim3(p.parts.blocks, shape.passes), shape.block, p));
	if (p.plan.splits == 0)
		return HG_OK;
	return launch(ctx, what, back_fold<T, SCORE, COLUMNS>,
	              dim3(grid_for(p.plan.splits, shape.block.y), shape.passes), shape.block, p);
}
template <bool COLUMNS>
static hg_status run_back_pass(hg_context *ctx, const char *what, const struct hg__csr &csr,
                               const struct hg__attention &of, const struct back_problem &p)
{
	return with_packs(of, [&](auto zero, auto score, auto same, auto spread) {
		return run_back<decltype(zero), decltype(score)::value, decltype(same)::value != 0,
		                decltype(spread)::value != 0, COLUMNS>(ctx, what, csr, of, p);
	});
}

HG_NODISCARD hg_status hg__attention_back_columns(hg_context *ctx, const struct hg__csr &csr_t,
                                                  const struct hg__attention &of,
                                                  const struct back_problem &p);
HG_NODISCARD hg_status hg__attention_back_rows(hg_context *ctx, const struct hg__csr &csr,
                                               const struct hg__attention &of,
                                               const struct back_problem &p);

#endif
