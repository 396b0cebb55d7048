/* Attention with scores from whole rows, DOT, COSINE and ADD_V2, a pack of 8 columns in each
 * lane (attention_packs.cuh):
 *
 *     Y[i, c] = sum over the edges (i, j) of mask p V[j, c],  p = exp(s) / sum exp(s)
 *
 * Q_i stays in registers for a part; K_j and V_j are gathered, once if they are the same row. A
 * part keeps a running maximum `most` and sums relative to it. The first step sets it exactly. A
 * later step raises it only if a score exceeds it by more than RISE, which is one vote for most
 * steps. Every term is then at most e^RISE, and the sum of a part at least 1. Parts of split rows
 * leave their maximum and both sums in staging slots, which the fold combines in slot order. */

#include "kernels/cuda/attention_epilogue.cuh"
#include "kernels/cuda/attention_packs_vector.cuh"

namespace
{

/* e^8 < 2^12, so a sum of 2^31 values of f16 stays below 2^59. A larger one would fit, too; others
 * were not measured. */
constexpr float RISE = 8.0f;

/* A staging slot: the sum of each column, then the maximum and the sum of each head. */
struct forward_problem : packs_problem {
	struct pack_rows q, k, v;
	const float *inverse_k; /* COSINE: [cols, heads] */
	void *y;
	float *log_sum;
	int64_t ldy, ld_log_sum;
	struct guard guard;
	struct attention_epilogue epilogue;
};

template <typename T>
__device__ inline void put_row(const struct forward_problem &p, const struct pack_lane &at,
                               int32_t row, float (&acc)[8], const struct running_sum &sum)
{
	const float share = shared_out(1.0f, sum.sum);
#pragma unroll
	for (int i = 0; i < 8; i++)
		acc[i] *= share;
	if (p.y) {
		p.guard.check(at.column, acc);
		store<8>(static_cast<T *>(p.y) + row * p.ldy + at.column, acc);
	}
	if (p.epilogue.to)
		p.epilogue.put<T>(row, at.column, acc, p.guard);
	if (at.first)
		p.log_sum[row * p.ld_log_sum + at.head] = log_sum_of(sum);
}

/* ---- pass 1: parts ---- */

template <typename T, int SCORE, bool SAME, int SPREAD> struct forward_lane {
	static constexpr int E = PACK_EDGES<T, SAME, SPREAD>, H = HELD<E, SPREAD>;
	static constexpr bool COSINE = SCORE == HG_SCORE_COSINE, MULTIPLY = SPREAD >= EIGHT_LANES,
	                      VECTOR = MULTIPLY && SCORE == HG_SCORE_ADD_V2;

	const struct forward_problem &p;
	const struct pack_lane at;
	const std::conditional_t<VECTOR, no_vector, struct pack_score<SCORE>> score;
	const char *k_rows, *v_rows;
	int32_t row = -1;
	float q[MULTIPLY ? 1 : 8];
	std::conditional_t<MULTIPLY && !VECTOR, own_operand, no_operand> own_q;
	/* ADD_V2 with tensor cores */
	std::conditional_t<VECTOR, raw<T, 8>, no_pack> own_row;
	std::conditional_t<VECTOR, vector_score<false>, no_vector> products;
	float acc[8] = {}, inverse_q = 1.0f, inverse_k[COSINE ? H : 1];
	struct running_sum sum = empty_sum();
	raw<T, 8> k[E], v[SAME ? 1 : E];

	__device__ explicit forward_lane(const struct forward_problem &problem)
	    : p(problem), at(problem), score(problem, at), k_rows(at.of<T>(problem.k)),
	      v_rows(at.of<T>(problem.v)), products(problem, at)
	{
	}
	__device__ void open(int32_t own)
	{
		row = own;
		const raw<T, 8> bits = own_bits<T>(at, p.q, row);
		if constexpr (VECTOR) {
			own_row = bits;
			products.open(bits, p.slope);
		} else if constexpr (MULTIPLY) {
			if constexpr (SAME)
				own_q.set(bits.q[0]);
			else /* with two gathered rows, there is no room for a copy */
				own_q.set(bits.q[0], bits.q[0]);
		} else {
			unpack(bits, q);
		}
		if constexpr (COSINE) {
			float x[8];
			unpack(bits, x);
			inverse_q = head_inverse_norm(x, p.lanes);
		}
	}
	__device__ float inverse_of(int32_t id) const
	{
		return __ldg(p.inverse_k + static_cast<int64_t>(id) * p.heads + at.head);
	}
	__device__ void look_up(bool live, int32_t id)
	{
		if constexpr (COSINE && SPREAD != FEW_LANES)
			inverse_k[0] = live ? inverse_of(id) : 0.0f;
	}
	__device__ void load(int u, int32_t j)
	{
		k[u] = pack_at<T>(k_rows, p.k.pitch, j);
		if constexpr (!SAME)
			v[u] = pack_at<T>(v_rows, p.v.pitch, j);
		if constexpr (COSINE && SPREAD == FEW_LANES)
			inverse_k[u] = inverse_of(j);
	}
	__device__ void load_if(bool live, int u, int32_t j)
	{
		k[u] = {};
		if constexpr (!SAME)
			v[u] = {};
		if constexpr (COSINE && SPREAD == FEW_LANES)
			inverse_k[u] = 0.0f;
		if (live)
			load(u, j);
	}
	/* Raises the maximum of a head to `top`, if that is far above it. Other heads of the warp,
	 * which come along, do not change. */
	__device__ void raise(float top)
	{
		top = over_edges<E, SPREAD>(top, [](float a, float b) { return fmaxf(a, b); });
		if (!(top > sum.most + RISE))
			return;
		const float factor = moved(sum.most, top);
#pragma unroll
		for (int i = 0; i < 8; i++)
			acc[i] *= factor;
		sum.sum *= factor;
		sum.most = top;
	}
	/* The sums over the columns, of the edges that this lane holds. */
	__device__ void sums(float (&s)[H])
	{
		if constexpr (VECTOR) {
			s[0] = products.of(k, own_row, p.slope);
		} else if constexpr (MULTIPLY) {
			s[0] = eight_lanes_dot<false>(k, own_q);
		} else {
			float part[E];
#pragma unroll
			for (int u = 0; u < E; u++) {
				float y[8];
				unpack(k[u], y);
				part[u] = score.part(q, y);
			}
			head_sums<E, SPREAD>(part, p.lanes, s);
		}
	}
	__device__ void step(int32_t id, int left)
	{
		float s[H], mask[H];
		sums(s);
		float top = -INFINITY;
#pragma unroll
		for (int h = 0; h < H; h++) {
			if constexpr (!VECTOR)
				s[h] = score.of(s[h], inverse_q, inverse_k[COSINE ? h : 0]);
			s[h] = held_edge<E, SPREAD>(h) < left ? s[h] : -INFINITY;
			top = fmaxf(top, s[h]);
		}
		if (__any_sync(WHOLE_WARP, top > sum.most + RISE))
			raise(top);
		held_masks<E, SPREAD>(p.mask, row, id, at.head, mask);
#pragma unroll
		for (int h = 0; h < H; h++) {
			s[h] = pack_exp<T>(s[h], sum.most);
			sum.sum += s[h];
			s[h] *= mask[h];
		}
#pragma unroll
		for (int u = 0; u < E; u++) {
			const float w = given<E, SPREAD>(s, u);
			float y[8];
			unpack(SAME ? k[u] : v[SAME ? 0 : u], y);
#pragma unroll
			for (int i = 0; i < 8; i++)
				acc[i] = fmaf(w, y[i], acc[i]);
		}
	}
	__device__ void put(int32_t own, int64_t slot)
	{
		sum.sum = part_total<E, SPREAD>(sum.sum);
		if (own < 0 || !at.live)
			return;
		if (slot < 0) {
			put_row<T>(p, at, own, acc, sum);
			return;
		}
		float *to = slot_at(p, slot);
		store<8>(to + at.column, acc);
		if (at.first) {
			to[p.cols + at.head] = sum.most;
			to[p.cols + p.heads + at.head] = sum.sum;
		}
	}
	__device__ void zero(int32_t own)
	{
		if (own >= 0 && at.live)
			put_row<T>(p, at, own, acc, sum);
	}
};

/* The packs of a step take 32 registers. Where V is K, the compiler keeps them unpacked in as many.
 * ADD_V2 also has its vector and, without SPREAD, a lane has four scores. The results of tensor
 * cores take four registers for each edge. Steps of 2 edges leave room for more threads. */
template <typename T, int SCORE, bool SAME, int SPREAD>
constexpr int FORWARD_BLOCKS = PACK_EDGES<T, SAME, SPREAD> == 8 ? 4
                               : SPREAD == SPREAD_SHORT ? (SAME &&SCORE == HG_SCORE_ADD_V2 ? 7 : 8)
                               : SPREAD == EIGHT_LANES &&SCORE == HG_SCORE_COSINE ? (SAME ? 4 : 5)
                               : SAME || sizeof(T) == sizeof(float)               ? 5
                               : SCORE == HG_SCORE_ADD_V2                         ? (SPREAD ? 5 : 4)
                                                                                  : 6;

template <typename T, int SCORE, bool SAME, int SPREAD>
__global__ void __launch_bounds__(PACK_BLOCK, FORWARD_BLOCKS<T, SCORE, SAME, SPREAD>)
    forward_parts(const __grid_constant__ struct forward_problem p)
{
	constexpr int E = PACK_EDGES<T, SAME, SPREAD>;
	const struct part_start start = start_of<E>(p);
	after_previous();
	struct forward_lane<T, SCORE, SAME, SPREAD> lane(p);
	walk_parts<E>(p, start, lane);
}

/* ---- pass 2: rows that lie in several items ---- */

/* Slots whose loads are in flight together. */
constexpr int SLOTS = 4;

/* The largest of one number of all slots. The loads of eight slots are in flight together. */
__device__ inline float largest_of(const struct row_slots &slots, int64_t lead, int64_t number)
{
	const float *most = slots.first + number;
	float top = -INFINITY;
#pragma unroll 8
	for (int64_t i = 0; i < slots.count; i++)
		top = fmaxf(top, most[i * lead]);
	return top;
}

template <typename T>
__global__ void __launch_bounds__(PACK_BLOCK)
    forward_fold(const __grid_constant__ struct forward_problem p)
{
	after_previous();
	const int64_t s = own_piece();
	const struct pack_lane at(p);
	if (s >= p.plan.splits || !at.live)
		return;
	const struct row_slots slots = slots_of(p, s);
	struct running_sum sum = {largest_of(slots, p.lead, p.cols + at.head), 0.0f, 0.0f};
	float acc[8] = {};
	for (int64_t first = 0; first < slots.count; first += SLOTS) {
		float part[SLOTS][8] = {}, most[SLOTS], own[SLOTS];
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			most[u] = -INFINITY;
			own[u] = 0.0f;
			if (first + u < slots.count) {
				const float *from = slots.first + (first + u) * p.lead;
				load<8>(from + at.column, part[u]);
				most[u] = from[p.cols + at.head];
				own[u] = from[p.cols + p.heads + at.head];
			}
		}
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			const float factor = moved(most[u], sum.most);
			sum.sum = fmaf(factor, own[u], sum.sum);
#pragma unroll
			for (int i = 0; i < 8; i++)
				acc[i] = fmaf(factor, part[u][i], acc[i]);
		}
	}
	put_row<T>(p, at, p.plan.split_row[s], acc, sum);
}

/* ---- norms ---- */

template <typename T>
__global__ void __launch_bounds__(PACK_BLOCK)
    norms_kernel(const struct packs_problem p, struct pack_rows x, int64_t rows, float *inverse)
{
	after_previous();
	const struct pack_lane at(p);
	const int64_t row = own_piece();
	float own[8];
	own_pack<T>(at, x, row < rows ? static_cast<int32_t>(row) : -1, own);
	const float result = head_inverse_norm(own, p.lanes);
	if (row < rows && at.first)
		inverse[row * p.heads + at.head] = result;
}

/* ---- launch ---- */

bool fits_packs(const struct hg__mat &m, const struct hg__mat &like)
{
	return m.dtype == like.dtype && m.cols == like.cols && wide(m) &&
	       m.ld <= static_cast<int64_t>(UINT32_MAX / sizeof(float));
}

bool lists_parts(const struct hg__csr &csr)
{
	return csr.rows == 0 || (csr.plan && csr.plan->part);
}

/* A row of staging: see forward_problem. */
int64_t lead_of(const struct hg__attention &of)
{
	return hg__leading(of.v.cols + 2 * of.heads);
}

/* Workspace: the inverse norms of K, which are padded to whole lines, then the staging rows. */
size_t norm_bytes(const struct hg__attention &of)
{
	const size_t bytes =
	    static_cast<size_t>(of.k.rows) * static_cast<size_t>(of.heads) * sizeof(float);
	return gathers_norms(of) ? (bytes + 255) / 256 * 256 : 0;
}

struct forward_problem forward_problem_of(const struct hg__attention_args *a, void *memory)
{
	struct forward_problem p = {};
	describe(&p, a->csr, a->of);
	p.q = pack_rows_of(a->of.q);
	p.k = pack_rows_of(a->of.k);
	p.v = pack_rows_of(a->of.v);
	p.inverse_k = static_cast<float *>(memory);
	p.staging = reinterpret_cast<float *>(static_cast<char *>(memory) + norm_bytes(a->of));
	p.lead = lead_of(a->of);
	p.y = a->y.data;
	p.ldy = a->y.ld;
	p.log_sum = data_of<float>(a->log_sum);
	p.ld_log_sum = a->log_sum.ld;
	p.guard = guard_of(a->overflow, a->y.cols);
	p.epilogue = attention_epilogue_of(*a);
	return p;
}

template <typename T, int SCORE, bool SAME, int SPREAD>
hg_status run_forward(hg_context *ctx, const struct hg__attention_args *a,
                      struct forward_problem &p)
{
	const struct packs_shape shape = packs_shape_of(a->of);
	p.parts = packs_parts(a->csr, shape.block);
	HG__TRY(launch(ctx, "attention", forward_parts<T, SCORE, SAME, SPREAD>,
	               dim3(p.parts.blocks, shape.passes), shape.block, p));
	if (p.plan.splits == 0)
		return HG_OK;
	return launch(ctx, "attention: fold", forward_fold<T>,
	              dim3(grid_for(p.plan.splits, shape.block.y), shape.passes), shape.block, p);
}

} // namespace

bool hg__attention_packs_fit(const struct hg__csr &csr, const struct hg__attention &of)
{
	const int64_t lanes = of.heads > 0 ? of.q.cols / of.heads / 8 : 0;
	return of.score != HG_SCORE_ADD && !of.bias.data && !of.weight && is_float(of.q) &&
	       fits_packs(of.q, of.v) && fits_packs(of.k, of.v) && fits_packs(of.v, of.q) &&
	       lanes > 0 && lanes <= 32 && (lanes & (lanes - 1)) == 0 &&
	       of.q.cols == lanes * 8 * of.heads && lists_parts(csr);
}

hg_status hg__attention_norms(hg_context *ctx, const struct hg__attention &of,
                              const struct hg__mat &x, float *inverse)
{
	if (x.rows == 0)
		return HG_OK;
	const struct packs_shape shape = packs_shape_of(of);
	struct packs_problem p = {};
	const struct hg__csr none = {};
	describe(&p, none, of);
	return with_float(ctx, "attention: norms", x.dtype, [&](auto zero) {
		return launch(ctx, "attention: norms", norms_kernel<decltype(zero)>,
		              dim3(grid_for(x.rows, shape.block.y), shape.passes), shape.block, p,
		              pack_rows_of(x), x.rows, inverse);
	});
}

bool hg__cuda_attention_packs_takes(const struct hg__attention_args *a)
{
	return hg__attention_packs_fit(a->csr, a->of) && fits_packs(a->y, a->of.v);
}

size_t hg__cuda_attention_packs_workspace(const hg_context *, const struct hg__attention_args *a)
{
	return norm_bytes(a->of) + slots_bytes(a->csr, lead_of(a->of));
}

hg_status hg__cuda_attention_packs(hg_context *ctx, const struct hg__attention_args *a)
{
	if (a->csr.rows == 0)
		return HG_OK;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_packs_workspace(ctx, a), &memory));
	struct forward_problem p = forward_problem_of(a, memory);
	if (gathers_norms(a->of))
		HG__TRY(hg__attention_norms(ctx, a->of, a->of.k, static_cast<float *>(memory)));
	return with_packs(a->of, a->csr, [&](auto zero, auto score, auto same, auto spread) {
		return run_forward<decltype(zero), decltype(score)::value, decltype(same)::value != 0,
		                   decltype(spread)::value>(ctx, a, p);
	});
}
