/* Attention with additive scores (kernels/attention.h), with one gather for each edge:
 *
 *     s = f(q[i, k] + k[j, k])
 *     p[e, k] = exp(s[e, k] - m) / l,   l = sum over the edges of row i of exp(s - m)
 *     Y[i, c] = sum over the edges of mask p V[j, c];  plus the same where q + k > 0
 *
 * m is near the maximum of the scores of a part so far: it is raised, and the sums are rescaled,
 * only where a score exceeds it by more than SLACK. A part has its first maximum from its first
 * step. Parts that share a step have all their scores at once, and take the exact maximum. The
 * parts of a split row are rescaled to their common maximum when they are folded, in slot order. */

#include "kernels/cuda/attention_add.cuh"

#include "kernels/cuda/attention_epilogue.cuh"

namespace
{

/* exp(SLACK) times the largest half times all entries of a part must fit in f32:
 * 2981 * 65504 * 2^40 = 2e20. A larger one would fit, too; others were not measured. */
constexpr float SLACK = 8.0f;

/* The numbers of a head in a staging slot. */
enum { MOST = 0, SUM = 1, SUM_PLUS = 2, NUMBERS = 3 };

struct forward {
	struct add_edges e;
	const void *q, *k;
	int64_t ldq;
	uint32_t k_pitch; /* bytes from one row of k to the next */
	void *y, *plus;
	int64_t ldy, ldplus;
	float *log_sum;
	int64_t ld_log_sum;
	struct guard guard;
};

/* ---- the end of a row ---- */

/* The sums of a row become results by a factor, 1 / l, or 0 if no edge of the row counts. */
__device__ float factor_of(const struct running_sum &r)
{
	return shared_out(1.0f, r.sum);
}
/* out: sums times `by`. */
__device__ void scale(const float (&sum)[ADD_PACK], float by, float (&out)[ADD_PACK])
{
#pragma unroll
	for (int i = 0; i < ADD_PACK; i++)
		out[i] = by == 0.0f ? 0.0f : sum[i] * by;
}
/* Stores sums of columns c .. c + 7, times `by`. */
template <typename T>
__device__ void put_columns(const struct forward &p, void *to, int64_t at, int64_t c,
                            const float (&sum)[ADD_PACK], float by)
{
	float out[ADD_PACK];
	scale(sum, by, out);
	p.guard.check(c, out);
	store<ADD_PACK>(static_cast<T *>(to) + at, out);
}
template <typename T, bool PLUS>
__device__ void put_sums(const struct forward &p, int64_t row, int64_t c,
                         const float (&all)[ADD_PACK], const float (&plus)[ADD_PACK], float by)
{
	if (c >= p.e.cols)
		return;
	put_columns<T>(p, p.y, row * p.ldy + c, c, all, by);
	if constexpr (PLUS)
		put_columns<T>(p, p.plus, row * p.ldplus + c, c, plus, by);
}
__device__ void put_numbers(const struct forward &p, int64_t row, int head,
                            const struct running_sum &r, float by)
{
	float *s = p.log_sum + row * p.ld_log_sum + head;
	s[0] = log_sum_of(r);
	s[p.e.heads] = r.plus * by;
}

/* ---- pass 1: parts ---- */

/* Gathers that a lane has in flight: 8, or 4 where each takes 8 registers. */
template <typename T> constexpr int UNROLL = sizeof(T) == sizeof(float) ? 4 : 8;

template <typename T, bool FEW, bool ONE, bool PLUS, bool PASS_L1>
struct forward_lane : add_lane<T, UNROLL<T>, FEW, ONE, PASS_L1> {
	using lane = add_lane<T, UNROLL<T>, FEW, ONE, PASS_L1>;
	using step = typename lane::step;
	using lane::all;
	using lane::e;
	using lane::head;
	using lane::live;
	using lane::own_column;
	using lane::plus;
	using lane::row;
	using lane::shares;
	using lane::shift;
	using lane::slot;
	static constexpr int STEP = lane::STEP, W = lane::W;
	/* q, k and the score: of the entries that this lane holds, or of all entries of the step */
	static constexpr int SCORES = ONE ? step::held : STEP;

	const struct forward &p;
	const T *q_of_head;
	const char *k_of_head;
	T q[SCORES], k[SCORES];
	float s[SCORES];
	struct running_sum sum = {LOWEST, 0.0f, 0.0f};

	__device__ explicit forward_lane(const struct forward &problem)
	    : lane(problem.e), p(problem), q_of_head(static_cast<const T *>(problem.q) + head),
	      k_of_head(reinterpret_cast<const char *>(static_cast<const T *>(problem.k) + head))
	{
	}
	__device__ T q_at(int32_t i) const
	{
		return i < 0 ? T(0.0f) : __ldg(q_of_head + i * p.ldq);
	}
	__device__ T k_at(int32_t j) const
	{
		return __ldg(reinterpret_cast<const T *>(
		    k_of_head + static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.k_pitch));
	}

	/* ---- loads ---- */

	__device__ void alone(const struct own_part &own)
	{
		shares = false;
#pragma unroll
		for (int n = 0; n < step::held; n++)
			lane::belongs(n, own);
		const T of_row = q_at(own.row);
#pragma unroll
		for (int n = 0; n < SCORES; n++)
			q[n] = of_row;
	}
	__device__ void together(int n, const struct own_part &own, int entries)
	{
		shares = true;
		shift = entries;
		lane::belongs(n, own);
		if (ONE)
			q[n] = q_at(own.row);
	}
	__device__ void look_up(bool exists, int n, int32_t j)
	{
		live[n] = exists;
		lane::neighbour[n] = j;
		if (!lane::DRAWS_LATE)
			draw(n);
		if (ONE)
			k[n] = exists ? k_at(j) : T(0.0f);
	}
	__device__ void load(int u, int64_t, int32_t j)
	{
		lane::fetch_row(u, j);
		if (!ONE)
			k[u] = k_at(j);
	}
	__device__ void load_if(bool exists, int u, int64_t entry, int32_t j)
	{
		lane::bits[u] = {};
		if (!ONE)
			k[u] = T(-INFINITY); /* its score is -inf, also where slope is 0: see weigh */
		if (!ONE && shares) {
			const int32_t i = step::given(row, u);
			q[u] = T(0.0f);
			if (exists)
				q[u] = __ldg(q_of_head + i * p.ldq);
		}
		if (exists)
			load(u, entry, j);
	}

	__device__ void draw(int n)
	{
		lane::draw(n, row[n], lane::neighbour[n]);
	}

	/* ---- weights ---- */

	/* f as a maximum, which it is for 0 <= slope <= 1: it is -inf for -inf, whatever the slope. The
	 * sign of a score is the sign of q + k. */
	__device__ float score(int n) const
	{
		const float x = widen(q[n]) + widen(k[n]);
		return fmaxf(x, e.slope * x);
	}
	__device__ void weigh()
	{
		if (lane::DRAWS_LATE && e.mask.step)
#pragma unroll
			for (int n = 0; n < step::held; n++)
				draw(n);
#pragma unroll
		for (int n = 0; n < SCORES; n++)
			s[n] = ONE && !live[ONE ? n : 0] ? -INFINITY : score(n);
		if (!shares)
			follow();
		if constexpr (ONE) {
			if (!shares)
				weigh_alone();
			else
				weigh_together();
		}
	}
	/* Rescales the sums where a score exceeds the maximum by more than SLACK. Each sub-warp decides
	 * for itself; the vote only saves the work where no sub-warp of the warp has to rescale. */
	__device__ void follow()
	{
		float most = s[0];
#pragma unroll
		for (int n = 1; n < SCORES; n++)
			most = fmaxf(most, s[n]);
		if (!__any_sync(WHOLE_WARP, most > sum.most + SLACK))
			return;
#pragma unroll
		for (int lanes = 1; ONE && lanes < step::span; lanes *= 2)
			most = fmaxf(most, __shfl_xor_sync(WHOLE_WARP, most, lanes));
		const float to = most > sum.most + SLACK ? most : sum.most, by = expf(sum.most - to);
		sum = {to, sum.sum * by, sum.plus * by};
#pragma unroll
		for (int i = 0; i < W; i++) {
			all[i] *= by;
			plus[i] *= by;
		}
	}
	/* The weight of the entry in register n as the other lanes receive it: its sign is that of
	 * q + k. */
	__device__ void give(int n, float w)
	{
		const float masked = lane::masked_own(w, n);
		lane::given_weight[n] = s[n] > 0.0f ? masked : -masked;
	}
	__device__ void weigh_alone()
	{
#pragma unroll
		for (int n = 0; n < step::held; n++) {
			const float w = exp_for<T>(s[ONE ? n : 0] - sum.most);
			sum.sum += w;
			sum.plus += s[ONE ? n : 0] > 0.0f ? w : 0.0f;
			give(n, w);
		}
	}
	/* The weights of whole rows are divided by their sum here, and `put` has nothing to do. */
	__device__ void weigh_together()
	{
		float most[step::held], w[step::held], l[step::held], l_plus[step::held];
#pragma unroll
		for (int n = 0; n < step::held; n++)
			most[n] = fmaxf(s[ONE ? n : 0], LOWEST);
		lane::over_part(most, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
		for (int n = 0; n < step::held; n++) {
			l[n] = w[n] = exp_for<T>(s[ONE ? n : 0] - most[n]);
			l_plus[n] = s[ONE ? n : 0] > 0.0f ? w[n] : 0.0f;
		}
		lane::sum_over_part(l);
		lane::sum_over_part(l_plus);
#pragma unroll
		for (int n = 0; n < step::held; n++) {
			const struct running_sum r = {most[n], l[n], l_plus[n]};
			const float by = factor_of(r);
			give(n, slot[n] < 0 ? w[n] * by : w[n]);
			if (lane::first_of_part(n))
				put_head(row[n], slot[n], r, by);
		}
	}
	/* The maximum of the part that begins with entry u of the step. */
	__device__ float most_from(int u) const
	{
		float most = fmaxf(s[u], LOWEST);
#pragma unroll
		for (int n = 1; n < SCORES - u && (u & n) == 0; n++)
			if (n >> shift == 0)
				most = fmaxf(most, s[u + n]);
		return most;
	}

	/* ---- sums ---- */

	__device__ float factor(int u)
	{
		return ONE ? step::given(lane::given_weight, u) : 0.0f;
	}
	__device__ void add(int u, float given)
	{
		if constexpr (ONE) {
			lane::add_row(u, fabsf(given), PLUS ? positive(given) : 0.0f);
		} else {
			if (shares && (u & ((1 << shift) - 1)) == 0)
				sum.most = most_from(u);
			const float w = exp_for<T>(s[u] - sum.most), masked = lane::masked(w, u);
			sum.sum += w;
			sum.plus += s[u] > 0.0f ? w : 0.0f;
			lane::add_row(u, masked, PLUS && s[u] > 0.0f ? masked : 0.0f);
		}
	}

	/* ---- the end of a part ---- */

	__device__ void put_head(int32_t i, int64_t to, const struct running_sum &r, float by) const
	{
		if (!lane::starts_head)
			return;
		if (to < 0) {
			put_numbers(p, i, static_cast<int>(head), r, by);
			return;
		}
		lane::stage_number(to, MOST, r.most);
		lane::stage_number(to, SUM, r.sum);
		lane::stage_number(to, SUM_PLUS, r.plus);
	}
	__device__ void put(int32_t i, int64_t to, float)
	{
		const bool ready = ONE && shares; /* weigh_together has done what is left here */
		if (ONE && !ready) {
			sum.sum = sum_in_sub_warp(sum.sum, step::span);
			sum.plus = sum_in_sub_warp(sum.plus, step::span);
		}
		const float by = ready ? 1.0f : factor_of(sum);
		if (!ready && (!ONE || threadIdx.x == 0))
			put_head(i, to, sum, by);
		if (to < 0)
			put_sums<T, PLUS>(p, i, own_column(), all, plus, by);
		else if (own_column() < e.cols)
			lane::stage_sums(to);
		lane::restart();
		sum = {LOWEST, 0.0f, 0.0f};
	}
	__device__ void zero(int32_t i)
	{
		put_sums<T, PLUS>(p, i, own_column(), all, plus, 0.0f);
		if (!ONE || threadIdx.x == 0)
			put_head(i, -1, {LOWEST, 0.0f, 0.0f}, 0.0f);
	}
};

template <typename T, bool FEW, bool ONE, bool PLUS, bool PASS_L1>
__global__ void __launch_bounds__(BLOCK, 3) forward_parts(const __grid_constant__ struct forward p)
{
	after_previous();
	using lane = forward_lane<T, FEW, ONE, PLUS, PASS_L1>;
	lane own(p);
	walk_by_length<lane::STEP, FEW, false>(p.e.parts, p.e.col, own);
}

/* ---- pass 2: rows that lie in several items ---- */

/* Slots whose loads are in flight together. */
constexpr int SLOTS = 4;

/* Adds the slots of a split row, rescaled to the maximum r.most of the row, to columns
 * c .. c + 7. */
__device__ void add_slots(const struct add_edges &e, const struct row_slots &slots, int64_t c,
                          int head, float (&all)[ADD_PACK], float (&plus)[ADD_PACK],
                          struct running_sum &r)
{
	const int64_t h = e.heads;
	for (int64_t first = 0; first < slots.count; first += SLOTS) {
		float a[SLOTS][ADD_PACK], b[SLOTS][ADD_PACK];
		struct running_sum n[SLOTS];
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			const float *slot = slots.first + min(first + u, slots.count - 1) * e.lead;
			load<ADD_PACK>(slot + c, a[u]);
			load<ADD_PACK>(slot + e.numbers / 2 + c, b[u]);
			const float *number = slot + e.numbers + head;
			n[u] = {number[MOST * h], number[SUM * h], number[SUM_PLUS * h]};
		}
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			if (first + u >= slots.count)
				break;
			const float by = expf(n[u].most - r.most);
			r.sum += by * n[u].sum;
			r.plus += by * n[u].plus;
#pragma unroll
			for (int i = 0; i < ADD_PACK; i++) {
				all[i] = __fmaf_rn(by, a[u][i], all[i]);
				plus[i] = __fmaf_rn(by, b[u][i], plus[i]);
			}
		}
	}
}

template <typename T, bool PLUS>
__global__ void __launch_bounds__(BLOCK) forward_fold(const __grid_constant__ struct forward p)
{
	after_previous();
	const struct add_edges &e = p.e;
	const int64_t s = own_piece();
	const int c = static_cast<int>(own_unit()) * ADD_PACK;
	if (s >= e.plan.splits || c >= e.cols)
		return;
	const int head = c / e.head_cols;
	struct running_sum r = {LOWEST, 0.0f, 0.0f};
	const struct row_slots slots = slots_of(e, s);
	const float *most = slots.first + e.numbers + MOST * e.heads + head;
#pragma unroll 8
	for (int64_t i = 0; i < slots.count; i++)
		r.most = fmaxf(r.most, most[i * e.lead]);
	float all[ADD_PACK] = {}, plus[ADD_PACK] = {};
	add_slots(e, slots, c, head, all, plus, r);
	const int32_t row = e.plan.split_row[s];
	const float by = factor_of(r);
	if (c % e.head_cols == 0)
		put_numbers(p, row, head, r, by);
	put_sums<T, PLUS>(p, row, c, all, plus, by);
}

/* ---- launch ---- */

struct forward forward_of(const struct hg__attention_args *a)
{
	struct forward p = {};
	p.e = add_edges_of(a->csr, a->of, a->of.v);
	p.q = a->of.q.data;
	p.ldq = a->of.q.ld;
	p.k = a->of.k.data;
	p.k_pitch =
	    static_cast<uint32_t>(a->of.k.ld * static_cast<int64_t>(hg_dtype_size(a->of.k.dtype)));
	p.y = a->y.data;
	p.ldy = a->y.ld;
	p.plus = a->plus.data;
	p.ldplus = a->plus.ld;
	p.log_sum = static_cast<float *>(a->log_sum.data);
	p.ld_log_sum = a->log_sum.ld;
	p.guard = guard_of(a->overflow, a->y.cols);
	p.e.lead = add_lead(p.e.cols, p.e.heads, NUMBERS);
	return p;
}

template <typename T, bool PLUS>
hg_status launch_forward(hg_context *ctx, const struct hg__csr &csr, struct forward &p)
{
	struct edge_grid shape = add_grid_of(1, p.e.cols, ADD_LANES);
	const bool few = shape.block.x == ADD_LEAST_LANES,
	           one = one_head(p.e.head_cols, p.e.heads, shape.block.x);
	p.e.parts = part_list_of(csr, nullptr, true, UNROLL<T>, true, shape.block.y);
	if (p.e.parts.blocks == 0)
		return HG_OK;
	shape.grid.x = p.e.parts.blocks;
	HG__TRY(with_flag(few, [&](auto few_lanes) {
		return with_flag(one, [&](auto one_head) {
			return with_flag(passes_l1(ctx, csr.cols, p.e.pitch), [&](auto pass_l1) {
				constexpr bool PASS = decltype(pass_l1)::value;
				return launch(ctx, "attention",
				              forward_parts<T, few_lanes.value, one_head.value, PLUS, PASS>,
				              shape.grid, shape.block, p);
			});
		});
	}));
	if (p.e.plan.splits == 0)
		return HG_OK;
	const struct edge_grid splits = add_grid_of(p.e.plan.splits, p.e.cols, ADD_LANES);
	return launch(ctx, "attention: fold", forward_fold<T, PLUS>, splits.grid, splits.block, p);
}

/* A copy of V whose rows are padded (padded_pitch). */
size_t copy_bytes(const hg_context *ctx, const struct hg__attention_args *a)
{
	const struct hg__mat &v = a->of.v;
	return hg__aligned(static_cast<size_t>(v.rows) * padded_pitch(ctx, a->csr, v));
}
hg_status copy_values(hg_context *ctx, const struct hg__attention_args *a, void *memory,
                      struct add_edges &e)
{
	const struct hg__mat &v = a->of.v;
	const uint32_t pitch = padded_pitch(ctx, a->csr, v);
	if (pitch == 0)
		return HG_OK;
	const int64_t lead = pitch / static_cast<int64_t>(hg_dtype_size(v.dtype));
	const struct hg__copy_cols_args copy = {
	    v, {memory, v.rows, v.cols, lead, v.dtype}, 0, 0, v.cols};
	e.x = memory;
	e.pitch = pitch;
	return hg__cuda_copy_cols(ctx, &copy);
}

} // namespace

bool hg__cuda_attention_add_takes(const struct hg__attention_args *a)
{
	return add_takes(a->of, a->csr, a->of.v) && a->y.dtype == a->of.v.dtype && holds_packs(a->y) &&
	       (!a->plus.data || a->plus.dtype == a->y.dtype) &&
	       (!a->plus.data || holds_packs(a->plus));
}

size_t hg__cuda_attention_add_workspace(const hg_context *ctx, const struct hg__attention_args *a)
{
	return copy_bytes(ctx, a) +
	       slots_bytes(a->csr, add_lead(a->of.v.cols, a->of.heads, NUMBERS));
}

/* The epilogue takes registers that the sums need: beside it a multiprocessor has room for two
 * blocks instead of three. On Cora's shape one kernel took 14.8 us where two take 12.6 (H200). */
hg_status hg__cuda_attention_add(hg_context *ctx, const struct hg__attention_args *a)
{
	if (a->ended.data)
		return epilogue_apart(ctx, *a, [&](const struct hg__attention_args &first) {
			return hg__cuda_attention_add(ctx, &first);
		});
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_add_workspace(ctx, a), &memory));
	struct forward p = forward_of(a);
	HG__TRY(copy_values(ctx, a, memory, p.e));
	p.e.staging = reinterpret_cast<float *>(static_cast<char *>(memory) + copy_bytes(ctx, a));
	return with_float(ctx, "attention", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_flag(a->plus.data != nullptr,
		                 [&](auto plus) { return launch_forward<T, plus.value>(ctx, a->csr, p); });
	});
}
