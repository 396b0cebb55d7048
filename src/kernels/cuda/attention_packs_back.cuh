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

#include "kernels/cuda/attention_packs_vector.cuh"

/* What the passes need of a row and head: the log sum, D and, for COSINE, the inverse norm
 * of Q. */
template <int SCORE> struct alignas(8) back_record {
	float log_sum, d;
};
template <> struct alignas(16) back_record<HG_SCORE_COSINE> {
	float log_sum, d, inverse_q, padding;
};

/* The record of a row and of the head of this lane; zeros if row is -1. All lanes of a warp must
 * take part. */
template <typename T, int SCORE>
static __device__ inline back_record<SCORE>
row_record(const struct packs_problem &p, const struct pack_lane &at, int32_t row,
           const raw<T, 8> &q, const raw<T, 8> &dy, const struct pack_rows &y, const float *log_sum,
           int64_t ld_log_sum)
{
	back_record<SCORE> record{};
	float a[8], b[8];
	own_pack<T>(at, y, row, a);
	unpack(dy, b);
	record.d = head_total(pack_dot(b, a), p.lanes);
	if constexpr (SCORE == HG_SCORE_COSINE) {
		unpack(q, a);
		record.inverse_q = head_inverse_norm(a, p.lanes);
	}
	if (row >= 0)
		record.log_sum = log_sum[row * ld_log_sum + at.head];
	return record;
}

struct back_problem : packs_problem {
	/* x: the rows of the score, y: those that the dot product with ds is made of. Columns: own K
	 * and V, Q and dY gathered; rows: own Q and dY, K and V gathered. */
	struct pack_rows own_x, own_y, x, y;
	void *record; /* back_record [rows, heads] */
	/* Rows: if y_saved.data is not NULL, they compute the records of their own rows, and store them
	 * for the columns. Every part of a split row stores the same bits. */
	struct pack_rows y_saved;
	const float *log_sum;
	int64_t ld_log_sum;
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

/* The largest record, in bytes, that the columns ask L2 to keep. */
constexpr size_t KEPT_RECORD = 8;

template <typename T, int SCORE, bool SAME, int SPREAD, bool COLUMNS> struct back_lane {
	/* V is K: in columns the own rows are one, in rows the gathered ones. */
	static constexpr bool ONE_OWN = SAME && COLUMNS, ONE_GATHER = SAME && !COLUMNS;
	static constexpr bool COSINE = SCORE == HG_SCORE_COSINE, V2 = SCORE == HG_SCORE_ADD_V2,
	                      MULTIPLY = SPREAD >= EIGHT_LANES, VECTOR = MULTIPLY && V2;
	/* With 8 edges and the operands of ADD_V2, registers would be kept in memory. */
	static constexpr int E = VECTOR ? 4 : PACK_EDGES<T, ONE_GATHER, SPREAD>, H = HELD<E, SPREAD>;
	/* Which own rows are held as numbers. The others are operands of tensor cores. */
	static constexpr bool PLAIN_X = !MULTIPLY, PLAIN_Y = !MULTIPLY && !ONE_OWN;
	/* The columns ask L2 to keep these records: they are gathered with rows that may be more than
	 * L2 holds, and a line of memory is read for each that is not there. The gradient of DOT took
	 * 17.51 ms instead of 17.83 on products-like, and that of ADD_V2 14.60 instead of 14.68 (H200,
	 * f16, F = 64). */
	using record = back_record<SCORE>;
	static constexpr bool KEEP_RECORDS = COLUMNS && sizeof(record) <= KEPT_RECORD;
	/* the own row of ADD_V2, where it is not an operand */
	using sign =
	    std::conditional_t<V2 && !VECTOR && sizeof(T) == sizeof(__half), raw<T, 8>, no_pack>;
	using vector = std::conditional_t<VECTOR, vector_score<COLUMNS>, no_vector>;

	const struct back_problem &p;
	const struct pack_lane at;
	const std::conditional_t<VECTOR, no_vector, struct pack_score<SCORE>> score;
	const char *x_rows, *y_rows;
	uint64_t keep = 0; /* the L2 policy of records */
	int32_t row = -1;
	float own_x[PLAIN_X ? 8 : 1], own_y[PLAIN_Y ? 8 : 1];
	std::conditional_t<MULTIPLY, own_operand, no_operand> own_rows; /* x and y */
	float g[8] = {}, b[COLUMNS ? 8 : 1] = {};
	sign own_sign;      /* ADD_V2: the own row of the score */
	vector products;    /* ADD_V2 with tensor cores */
	float total = 0.0f; /* ADD_V2: the sum of ds over the edges that this lane has held */
	/* Of the own row in rows, of the edges in columns; the inverse norm of K the other way. */
	record of_row[COLUMNS ? H : 1];
	float inverse_k[COSINE && !COLUMNS ? H : 1];
	raw<T, 8> x[E], y[ONE_GATHER ? 1 : E];

	__device__ explicit back_lane(const struct back_problem &problem)
	    : p(problem), at(problem), score(problem, at), x_rows(at.of<T>(problem.x)),
	      y_rows(at.of<T>(problem.y)), products(problem, at)
	{
		if constexpr (KEEP_RECORDS)
			asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
	}
	__device__ record record_of(int32_t i) const
	{
		const record *from =
		    static_cast<const record *>(p.record) + static_cast<int64_t>(i) * p.heads + at.head;
		if constexpr (KEEP_RECORDS) {
			static_assert(!COSINE, "a record of two numbers");
			record r;
			asm("ld.global.nc.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;"
			    : "=f"(r.log_sum), "=f"(r.d)
			    : "l"(from), "l"(keep));
			return r;
		} else {
			return *from;
		}
	}
	__device__ float inverse_of(int32_t j) const
	{
		return __ldg(p.inverse_k + static_cast<int64_t>(j) * p.heads + at.head);
	}
	__device__ void open(int32_t own)
	{
		row = own;
		const raw<T, 8> bits_x = own_bits<T>(at, p.own_x, row),
		                bits_y = ONE_OWN ? bits_x : own_bits<T>(at, p.own_y, row);
		if constexpr (PLAIN_X)
			unpack(bits_x, own_x);
		if constexpr (PLAIN_Y)
			unpack(bits_y, own_y);
		if constexpr (MULTIPLY && ONE_OWN)
			own_rows.set(bits_y.q[0]);
		else if constexpr (MULTIPLY)
			own_rows.set(bits_x.q[0], bits_y.q[0]);
		if constexpr (VECTOR) {
			products.open(bits_x, p.slope);
		} else if constexpr (V2 && sizeof(T) == sizeof(__half)) {
			own_sign = bits_x;
		}
		if constexpr (!COLUMNS) {
			if (p.y_saved.data)
				make_record(bits_x, bits_y);
			else
				of_row[0] = row >= 0 ? record_of(row) : record{};
		} else if constexpr (COSINE) {
			float x[8];
			unpack(bits_x, x);
			inverse_k[0] = head_inverse_norm(x, p.lanes);
		}
	}
	/* The record of the own row, from Q and dY; all lanes of a warp take part. */
	__device__ void make_record(const raw<T, 8> &q, const raw<T, 8> &dy)
	{
		of_row[0] = row_record<T, SCORE>(p, at, row, q, dy, p.y_saved, p.log_sum, p.ld_log_sum);
		if (row >= 0 && at.first)
			static_cast<record *>(p.record)[static_cast<int64_t>(row) * p.heads + at.head] =
			    of_row[0];
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
		if constexpr (SPREAD != FEW_LANES)
			look_up_held(0, live, id);
	}
	__device__ void load(int u, int32_t j)
	{
		x[u] = pack_at<T>(x_rows, p.x.pitch, j);
		if constexpr (!ONE_GATHER)
			y[u] = pack_at<T>(y_rows, p.y.pitch, j);
		if constexpr (SPREAD == FEW_LANES)
			look_up_held(u, true, j);
	}
	__device__ void load_if(bool live, int u, int32_t j)
	{
		x[u] = {};
		if constexpr (!ONE_GATHER)
			y[u] = {};
		if constexpr (SPREAD == FEW_LANES)
			look_up_held(u, false, j);
		if (live)
			load(u, j);
	}
	/* The score of the edge in register h from the sum over the columns. */
	__device__ float score_of_held(int h, float sum) const
	{
		if constexpr (VECTOR)
			return sum;
		else if constexpr (COSINE)
			return score.of(sum, of_row[COLUMNS ? h : 0].inverse_q, inverse_k[COLUMNS ? 0 : h]);
		else
			return score.of(sum, 1.0f, 1.0f);
	}
	/* Both sums over the columns, of the edges that this lane holds. */
	__device__ void sums(float (&s)[H], float (&t)[H])
	{
		if constexpr (MULTIPLY)
			multiplied_sums(s, t);
		else {
			score_sums(s);
			const auto part = [&](const float(&v)[8]) {
				return pack_dot(choose<ONE_OWN>(own_x, own_y), v);
			};
			plain_sums(t, part, choose<ONE_GATHER>(x, y));
		}
	}
	__device__ void multiplied_sums(float (&s)[H], float (&t)[H])
	{
		if constexpr (ONE_GATHER && !V2) {
			eight_lanes_dots(x, own_rows, s, t);
		} else {
			if constexpr (V2)
				s[0] = products.of(x, own_rows.first(), p.slope);
			else
				s[0] = eight_lanes_dot<false>(x, own_rows);
			t[0] = eight_lanes_dot<true>(choose<ONE_GATHER>(x, y), own_rows);
		}
	}
	__device__ void score_sums(float (&s)[H]) const
	{
		plain_sums(
		    s, [&](const float(&v)[8]) { return score.part(own_x, v); }, x);
	}
	template <bool FIRST, typename A, typename B>
	static __device__ const auto &choose(const A &a, const B &b)
	{
		if constexpr (FIRST)
			return a;
		else
			return b;
	}
	/* The own row of the score. */
	__device__ void own_score_row(float (&to)[8]) const
	{
		if constexpr (PLAIN_X) {
#pragma unroll
			for (int i = 0; i < 8; i++)
				to[i] = own_x[i];
		} else {
			unpack(own_rows.first(), to);
		}
	}
	/* ADD_V2: the own row, for comparisons. */
	__device__ sign_pack<T> signs() const
	{
		sign_pack<T> own;
		if constexpr (VECTOR)
			own.x = own_rows.first();
		else if constexpr (sizeof(T) == sizeof(__half))
			own.x = own_sign;
		else
			memcpy(own.x, own_x, sizeof own.x);
		return own;
	}
	template <typename F>
	__device__ void plain_sums(float (&held)[H], F part, const raw<T, 8> (&rows)[E]) const
	{
		float sum[E];
#pragma unroll
		for (int u = 0; u < E; u++) {
			float v[8];
			unpack(rows[u], v);
			sum[u] = part(v);
		}
		head_sums<E, SPREAD>(sum, p.lanes, held);
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
			const float p = pack_exp<T>(live ? score_of_held(h, s[h]) : -INFINITY, r.log_sum),
			            weight = p > 1.0f ? 1.0f : p, /* NaN stays NaN */
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
		float weight[H], ds[H];
		sums(weight, ds);
		factors(id, left, weight, ds);
#pragma unroll
		for (int u = 0; u < E; u++) {
			const float d = given<E, SPREAD>(ds, u);
			float v[8];
			if constexpr (V2) {
				signs().add_where(x[u], d, g);
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
		float d[8], own_row_x[8];
#pragma unroll
		for (int i = 0; i < 8; i++)
			d[i] = g[i];
		own_score_row(own_row_x);
		if constexpr (VECTOR) {
			/* the vector is read again, because keeping it would take registers */
			asm volatile("" ::: "memory");
			finish_gradient<SCORE>(p, pack_score<SCORE>(p, at), own_row_x, d);
		} else {
			finish_gradient<SCORE>(p, score, own_row_x, d);
		}
		if (own < 0 || !at.live)
			return;
		if (slot < 0) {
			if constexpr (COLUMNS)
				put_gradient<T, true>(p, at, own, d, b);
			else
				put_gradient<T, false>(p, at, own, d, d);
			return;
		}
		float *to = slot_at(p, slot) + at.column;
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
		float x[8];
		own_score_row(x);
		if constexpr (V2)
#pragma unroll
			for (int i = 0; i < 8; i++)
				dc[i] = row >= 0 ? x[i] * g[i] : 0.0f;
		else
			dc[0] = row >= 0 ? of_row[0].inverse_q * pack_dot(x, g) : 0.0f;
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

/* Blocks of a multiprocessor: the most with which no kernel keeps registers in memory (CUDA 13.0).
 * The compiler keeps both packs of a step unpacked, in 64 registers, and columns have two sums and
 * two own rows. Without SPREAD a lane has the scores and records of all edges of a step; COSINE
 * with separate values has the largest record. With 5 blocks, rows on tensor cores reload a few
 * registers in each step, and were not faster. Those of ADD_V2 have 4 edges a step, and fit;
 * separate values of ADD_V2 have three operands of tensor cores and two gathered rows. */
template <int SCORE, bool SAME, int SPREAD, bool COLUMNS>
constexpr int
    BACK_BLOCKS = SPREAD == SPREAD_SHORT
                      ? (COLUMNS ? 5 : 6) - (SCORE == HG_SCORE_ADD_V2 && SAME != COLUMNS)
                  : COLUMNS ? (SPREAD != FEW_LANES && (SAME || SCORE != HG_SCORE_COSINE) ? 4 : 3)
                  : SPREAD >= EIGHT_LANES &&SCORE == HG_SCORE_ADD_V2             ? (SAME ? 5 : 3)
                  : SPREAD == SPREAD_SCORES && !SAME && SCORE != HG_SCORE_COSINE ? 5
                                                                                 : 4;

template <typename T, int SCORE, bool SAME, int SPREAD, bool COLUMNS>
static __global__ void __launch_bounds__(PACK_BLOCK, BACK_BLOCKS<SCORE, SAME, SPREAD, COLUMNS>)
    back_parts(const __grid_constant__ struct back_problem p)
{
	constexpr bool V2 = SCORE == HG_SCORE_ADD_V2;
	using lane_of = back_lane<T, SCORE, SAME, SPREAD, COLUMNS>;
	const struct part_start start = start_of<lane_of::E>(p);
	after_previous();
	lane_of lane(p);
	walk_parts<lane_of::E>(p, start, lane);
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
	const struct row_slots slots = slots_of(p, s);
	for (int64_t first = 0; first < slots.count; first += SLOTS) {
		float part[SLOTS][8] = {};
#pragma unroll
		for (int u = 0; u < SLOTS; u++)
			if (first + u < slots.count)
				load<8>(slots.first + (first + u) * p.lead + column, part[u]);
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
template <typename T, int SCORE, bool SAME, int SPREAD, bool COLUMNS>
static hg_status run_back(hg_context *ctx, const char *what, const struct hg__csr &csr,
                          const struct hg__attention &of, struct back_problem p)
{
	const struct packs_shape shape = packs_shape_of(of);
	p.parts = packs_parts(csr, shape.block);
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
	return with_packs(of, csr, [&](auto zero, auto score, auto same, auto spread) {
		return run_back<decltype(zero), decltype(score)::value, decltype(same)::value != 0,
		                decltype(spread)::value, COLUMNS>(ctx, what, csr, of, p);
	});
}

HG_NODISCARD hg_status hg__attention_back_columns(hg_context *ctx, const struct hg__csr &csr_t,
                                                  const struct hg__attention &of,
                                                  const struct back_problem &p);
HG_NODISCARD hg_status hg__attention_back_rows(hg_context *ctx, const struct hg__csr &csr,
                                               const struct hg__attention &of,
                                               const struct back_problem &p);

#endif
