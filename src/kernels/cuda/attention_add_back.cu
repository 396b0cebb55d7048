/* The gradients of attention with additive scores (kernels/attention.h), with one gather for each
 * edge. G = dY. A pass over nodes comes first:
 *
 *     D[i, k] = <G_i, Y_i>,  dq[i, k] = (1 - slope) (<G_i, plus_i> - D[i, k] log_sum[i, h + k])
 *
 * because the derivatives of a row's scores before f sum to 0 (attention_add_nodes.cuh). It also
 * leaves what the second pass needs of a row, a record {q, log_sum, D} for each head. That pass is
 * over the columns of the graph, which are the rows of the transpose:
 *
 *     Z[j, c] = sum over the edges (i, j) of mask p G[i, c],  Z_plus the same where q + k > 0
 *     dV = Z,  dk[j, k] = <V_j, slope Z_j + (1 - slope) Z_plus_j> - sum of f' p D[i, k]
 *
 * so the products with V_j are one for each column and not for each edge. */

#include "kernels/cuda/attention_add_nodes.cuh"

namespace
{

/* ---- pass 2: columns ---- */

template <typename T>
__device__ void put_dk(const struct backward &p, int64_t j, int head, float dk)
{
	if (p.dk)
		static_cast<T *>(p.dk)[j * p.lddk + head] =
		    narrow<T>(p.dq_first ? dk + p.dq_first[j * p.e.heads + head] : dk);
}
/* Stores the columns of a lane of dV_j, from column c, and returns their share of the product with
 * V_j. */
template <typename T>
__device__ float put_dv(const struct backward &p, int64_t j, int c, const float (&z)[ADD_PACK],
                        const float (&z_plus)[ADD_PACK])
{
	if (c >= p.e.cols)
		return 0.0f;
	float v[ADD_PACK], dot = 0.0f;
	load<ADD_PACK>(static_cast<const T *>(p.v) + j * p.ldv + c, v);
#pragma unroll
	for (int i = 0; i < ADD_PACK; i++) {
		const float by = __fmaf_rn(1.0f - p.e.slope, z_plus[i], p.e.slope * z[i]);
		dot = c + i < p.e.cols ? __fmaf_rn(v[i], by, dot) : dot;
	}
	if (p.dv)
		store<ADD_PACK>(static_cast<T *>(p.dv) + j * p.lddv + c, z);
	return dot;
}

/* Gathers that a lane has in flight: 8, or 4 where each takes 6 or more registers, which are those
 * of a pack and, with several heads, of a record. */
template <typename T, bool ONE> constexpr int UNROLL = sizeof(T) == sizeof(float) || !ONE ? 4 : 8;
/* Blocks on a multiprocessor: as many as leave enough registers for these. */
template <typename T, bool ONE> constexpr int RESIDENT = sizeof(T) == sizeof(float) && !ONE ? 2 : 3;

/* The lanes of a sub-warp that have the columns of one head. */
template <bool ONE> __device__ unsigned lanes_of_head(const struct add_edges &e)
{
	return ONE ? blockDim.x : static_cast<unsigned>(e.head_cols) / ADD_PACK;
}

template <typename T, bool FEW, bool ONE, bool PASS_L1>
struct backward_lane : add_lane<T, UNROLL<T, ONE>, FEW, ONE, PASS_L1> {
	using lane = add_lane<T, UNROLL<T, ONE>, FEW, ONE, PASS_L1>;
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
	static constexpr int STEP = lane::STEP, W = lane::W;
	/* k and the records: of the entries that this lane holds, or of all entries of the step */
	static constexpr int RECORDS = ONE ? step::held : STEP;

	const struct backward &p;
	const T *k_of_head;
	const char *record_of_head;
	T k[RECORDS];
	record<T> numbers[RECORDS];
	float sum = 0.0f;              /* of f' p D: with ONE, of the entries that this lane holds */
	float sum_of_part[step::held]; /* ONE, where parts share the step */

	__device__ explicit backward_lane(const struct backward &problem)
	    : lane(problem.e), p(problem), k_of_head(static_cast<const T *>(problem.k) + head),
	      record_of_head(reinterpret_cast<const char *>(
	          static_cast<const record<T> *>(problem.records) + head))
	{
	}
	__device__ record<T> record_at(int32_t i) const
	{
		const uint64_t at = static_cast<uint64_t>(static_cast<uint32_t>(i)) * p.record_pitch;
		return {__ldg(&reinterpret_cast<const record<T> *>(record_of_head + at)->v)};
	}

	/* ---- loads ---- */

	__device__ void alone(const struct own_part &own)
	{
		shares = false;
#pragma unroll
		for (int n = 0; n < step::held; n++)
			lane::belongs(n, own);
		const T of_row = own.row < 0 ? T(0.0f) : __ldg(k_of_head + own.row * p.ldk);
#pragma unroll
		for (int n = 0; n < RECORDS; n++)
			k[n] = of_row;
	}
	__device__ void together(int n, const struct own_part &own, int entries)
	{
		shares = true;
		shift = entries;
		lane::belongs(n, own);
		if (ONE)
			k[n] = own.row < 0 ? T(0.0f) : __ldg(k_of_head + own.row * p.ldk);
	}
	__device__ void look_up(bool exists, int n, int32_t i)
	{
		live[n] = exists;
		lane::neighbour[n] = i;
		if (!lane::DRAWS_LATE)
			draw(n);
		if (ONE) {
			numbers[n] = {};
			if (exists)
				numbers[n] = record_at(i);
		}
	}
	__device__ void load(int u, int64_t, int32_t i)
	{
		lane::fetch_row(u, i);
		if (!ONE)
			numbers[u] = record_at(i);
	}
	__device__ void load_if(bool exists, int u, int64_t entry, int32_t i)
	{
		lane::bits[u] = {};
		if (!ONE)
			numbers[u].set(T(0.0f), {0.0f, INFINITY, 0.0f}); /* p = 0 */
		if (!ONE && shares) {
			const int32_t j = step::given(row, u);
			k[u] = T(0.0f);
			if (exists)
				k[u] = __ldg(k_of_head + j * p.ldk);
		}
		if (exists)
			load(u, entry, i);
	}

	__device__ void draw(int n)
	{
		lane::draw(n, lane::neighbour[n], row[n]);
	}

	/* ---- weights ---- */

	/* p of entry n, and f' p D. Rounding may put p above 1, and gradients that are bounded by a
	 * proof need p <= 1. */
	__device__ float weight(int n, bool &in_plus, float &term) const
	{
		const struct row_numbers r = numbers[n].get();
		const float x = r.q + widen(k[n]), w = exp_for<T>(fmaxf(x, e.slope * x) - r.log_sum),
		            at_most_1 = w > 1.0f ? 1.0f : w;
		in_plus = x > 0.0f;
		term = (in_plus ? at_most_1 : e.slope * at_most_1) * r.d;
		return at_most_1;
	}
	__device__ void weigh()
	{
		if (lane::DRAWS_LATE && e.mask.step)
#pragma unroll
			for (int n = 0; n < step::held; n++)
				draw(n);
		if constexpr (ONE) {
#pragma unroll
			for (int n = 0; n < step::held; n++) {
				bool in_plus = false;
				float term = 0.0f, w = weight(n, in_plus, term);
				w = lane::masked_own(live[n] ? w : 0.0f, n);
				sum_of_part[n] = live[n] ? term : 0.0f;
				sum += sum_of_part[n];
				lane::given_weight[n] = in_plus ? w : -w;
			}
			if (shares)
				lane::sum_over_part(sum_of_part);
		}
	}

	/* ---- sums ---- */

	__device__ float factor(int u)
	{
		return ONE ? step::given(lane::given_weight, u) : 0.0f;
	}
	__device__ void add(int u, float given)
	{
		if constexpr (ONE) {
			lane::add_row(u, fabsf(given), positive(given));
			if (shares)
				sum = step::given(sum_of_part, u);
		} else {
			bool in_plus = false;
			float term = 0.0f;
			const float w = lane::masked(weight(u, in_plus, term), u);
			sum += term;
			lane::add_row(u, w, in_plus ? w : 0.0f);
		}
	}

	/* ---- the end of a part ---- */

	__device__ bool first_of_head() const
	{
		return lane::starts_head && (!ONE || threadIdx.x == 0);
	}
	__device__ void put(int32_t j, int64_t to, float)
	{
		if (ONE && !shares)
			sum = sum_in_sub_warp(sum, step::span);
		const bool first = first_of_head();
		if (to < 0) {
			const float dot =
			    sum_in_sub_warp(put_dv<T>(p, j, own_column(), all, plus), lanes_of_head<ONE>(e));
			if (first)
				put_dk<T>(p, j, static_cast<int>(head), dot - sum);
		} else {
			if (own_column() < e.cols)
				lane::stage_sums(to);
			if (first)
				lane::stage_number(to, 0, sum);
		}
		lane::restart();
		sum = 0.0f;
	}
	__device__ void zero(int32_t j)
	{
		if (own_column() < e.cols && p.dv)
			store<W>(static_cast<T *>(p.dv) + j * p.lddv + own_column(), all);
		if (first_of_head())
			put_dk<T>(p, j, static_cast<int>(head), 0.0f);
	}
};

template <typename T, bool FEW, bool ONE, bool PASS_L1>
__global__ void __launch_bounds__(BLOCK, (RESIDENT<T, ONE>))
    backward_parts(const __grid_constant__ struct backward p)
{
	after_previous();
	using lane = backward_lane<T, FEW, ONE, PASS_L1>;
	lane own(p);
	walk_by_length<lane::STEP, FEW, false>(p.e.parts, p.e.col, own);
}

/* ---- pass 3: columns that lie in several items ---- */

/* Slots whose loads are in flight together. */
constexpr int SLOTS = 4;

/* Adds the slots of a split column: columns c .. c + 7, and the sum of a head. */
__device__ void add_slots(const struct add_edges &e, const struct row_slots &slots, int c, int head,
                          float (&z)[ADD_PACK], float (&z_plus)[ADD_PACK], float &sum)
{
	for (int64_t first = 0; first < slots.count; first += SLOTS) {
		float a[SLOTS][ADD_PACK], b[SLOTS][ADD_PACK], n[SLOTS];
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			const float *slot = slots.first + min(first + u, slots.count - 1) * e.lead;
			load<ADD_PACK>(slot + c, a[u]);
			load<ADD_PACK>(slot + e.numbers / 2 + c, b[u]);
			n[u] = slot[e.numbers + head];
		}
#pragma unroll
		for (int u = 0; u < SLOTS; u++) {
			if (first + u >= slots.count)
				break;
			sum += n[u];
#pragma unroll
			for (int i = 0; i < ADD_PACK; i++) {
				z[i] += a[u][i];
				z_plus[i] += b[u][i];
			}
		}
	}
}

/* Lanes beyond the last column add their head again, so that all lanes of a sub-warp stay together
 * up to the sum over the columns of a head. */
template <typename T, bool ONE>
__global__ void __launch_bounds__(BLOCK) backward_fold(const __grid_constant__ struct backward p)
{
	after_previous();
	const struct add_edges &e = p.e;
	const int64_t s = own_piece();
	if (s >= e.plan.splits)
		return;
	using lane = add_lane<T, UNROLL<T, ONE>, false, ONE, false>;
	const lane own(e);
	float z[ADD_PACK] = {}, z_plus[ADD_PACK] = {}, sum = 0.0f;
	const int c = lane::own_column(), last = (e.cols - 1) / ADD_PACK * ADD_PACK;
	const int head = static_cast<int>(own.head);
	add_slots(e, slots_of(e, s), c < last ? c : last, head, z, z_plus, sum);
	const int32_t j = e.plan.split_row[s];
	const float dot = sum_in_sub_warp(put_dv<T>(p, j, c, z, z_plus), lanes_of_head<ONE>(e));
	if (own.starts_head && (!ONE || threadIdx.x == 0))
		put_dk<T>(p, j, head, dot - sum);
}

/* ---- launch ---- */

struct backward backward_of(const struct hg__attention_back_args *a)
{
	struct backward p = {};
	p.e = add_edges_of(a->csr_t, a->of, a->dy);
	p.e.lead = add_lead(p.e.cols, p.e.heads, 1);
	p.rows = a->y.rows;
	p.q = a->of.q.data, p.ldq = a->of.q.ld;
	p.k = a->of.k.data, p.ldk = a->of.k.ld;
	p.v = a->of.v.data, p.ldv = a->of.v.ld;
	p.y = a->y.data, p.ldy = a->y.ld;
	p.plus = a->plus.data, p.ldplus = a->plus.ld;
	p.g = a->dy.data, p.ldg = a->dy.ld;
	p.log_sum = static_cast<const float *>(a->log_sum.data), p.ld_log_sum = a->log_sum.ld;
	p.dq = a->dq.data, p.lddq = a->dq.ld;
	p.dk = a->dk.data, p.lddk = a->dk.ld;
	p.dv = a->dv.data, p.lddv = a->dv.ld;
	while (p.lanes_shift < 5 && (ADD_PACK << p.lanes_shift) < p.e.head_cols)
		p.lanes_shift++;
	p.lanes = 1 << p.lanes_shift;
	while (1 << p.heads_shift < p.e.heads)
		p.heads_shift++;
	if (1 << p.heads_shift != p.e.heads)
		p.heads_shift = -1;
	return p;
}

template <typename T> hg_status launch_nodes(hg_context *ctx, const struct backward &p)
{
	if (p.rows == 0 || (!p.dq && !p.records))
		return HG_OK;
	return launch(ctx, "attention_back: nodes", backward_nodes<T>,
	              grid_for(p.rows * p.e.heads, BLOCK / p.lanes), BLOCK, p);
}

/* The same with the gradient of an epilogue. partial: for the sums of columns. */
template <typename E>
hg_status launch_ended(hg_context *ctx, const struct hg__attention_back_args *a,
                       const struct backward &p, float *partial)
{
	struct column_layout l;
	HG__TRY(lay_columns(ctx, p.rows, p.e.cols, ADD_PACK, 1, ALONE_THREADS, &l));
	l.of.partial = partial;
	using nodes = ended_nodes<__half, E>;
	const nodes f = {p,
	                 data_of<const __half>(a->ended),
	                 data_of<const __half>(a->dended),
	                 a->ended.ld,
	                 a->dended.ld,
	                 a->dy.data == a->dended.data ? nullptr : data_of<__half>(a->dy),
	                 data_of<float>(a->db),
	                 hg__attention_means(&a->y, &a->dended) != 0,
	                 act_drop_of<E>(a->act_drop)};
	return launch(ctx, "attention_back: nodes", columns_kernel<ADD_PACK, 1, nodes>, l.grid, l.block,
	              p.rows, p.e.cols, l.of, f);
}

/* [no f, then each f of an epilogue in the order of hg__act][without dropout, with dropout]. */
constexpr hg_status (*ended[1 + HG__ACT_SUM_EPILOGUES][2])(hg_context *,
                                                           const struct hg__attention_back_args *,
                                                           const struct backward &, float *) = {
    {launch_ended<act_drop<identity, false>>, launch_ended<act_drop<identity, true>>},
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(...)
#define HG_SUM_EPILOGUE_FUNCTION(name, ...) \
	{launch_ended<act_drop<acts::name, false>>, launch_ended<act_drop<acts::name, true>>},
#include "kernels/functions.def"
};
static_assert(every(ended, [](const auto &row) { return row[0] && row[1]; }), "a hole");

/* Lanes of a sub-warp: 8, or 16 or 32 where a head has so many packs, because the products of V_j
 * are summed over the columns of a head. */
unsigned most_lanes(int64_t head_cols)
{
	unsigned lanes = ADD_LANES;
	while (lanes < 32 && static_cast<int64_t>(lanes) * ADD_PACK < head_cols)
		lanes *= 2;
	return lanes;
}

template <typename T>
hg_status launch_columns(hg_context *ctx, const struct hg__csr &csr_t, struct backward &p)
{
	const unsigned most = most_lanes(p.e.head_cols);
	struct edge_grid shape = add_grid_of(1, p.e.cols, most);
	const bool few = shape.block.x == ADD_LEAST_LANES,
	           one = one_head(p.e.head_cols, p.e.heads, shape.block.x);
	p.e.parts = part_list_of(csr_t, nullptr, true, one ? UNROLL<T, true> : UNROLL<T, false>, true,
	                         shape.block.y);
	if (p.e.parts.blocks == 0)
		return HG_OK;
	shape.grid.x = p.e.parts.blocks;
	return with_flag(one, [&](auto one_head) {
		constexpr bool ONE = one_head.value;
		HG__TRY(with_flag(few, [&](auto few_lanes) {
			return with_flag(passes_l1(ctx, p.rows, p.e.pitch), [&](auto pass_l1) {
				return launch(ctx, "attention_back",
				              backward_parts<T, few_lanes.value, ONE, pass_l1.value>, shape.grid,
				              shape.block, p);
			});
		}));
		if (p.e.plan.splits == 0)
			return HG_OK;
		const struct edge_grid splits = add_grid_of(p.e.plan.splits, p.e.cols, most);
		return launch(ctx, "attention_back: fold", backward_fold<T, ONE>, splits.grid, splits.block,
		              p);
	});
}

/* Whether the columns of each head are those of 1, 2, 4, .. or 32 lanes of one sub-warp. */
bool heads_fit(const struct hg__attention &of)
{
	const int64_t packs = whole_packs(of.v.cols / of.heads) / ADD_PACK;
	return packs <= 32 && (of.heads == 1 || (packs & (packs - 1)) == 0);
}

/* Whether the gradients of q and k go to one matrix, as far as shapes tell. */
bool may_be_shared(const struct hg__attention_back_args *a)
{
	return a->dq.data && a->dk.data && a->dq.rows == a->dk.rows;
}

size_t shared_bytes(const struct hg__attention_back_args *a)
{
	return may_be_shared(a)
	           ? hg__aligned(static_cast<size_t>(a->y.rows * a->of.heads) * sizeof(float))
	           : 0;
}

/* The sums of columns of the pass over nodes. */
size_t ended_bytes(const struct hg__attention_back_args *a)
{
	return a->dended.data ? hg__aligned(hg__reduction_bytes(a->y.rows, a->y.cols)) : 0;
}

} // namespace

bool hg__cuda_attention_back_add_takes(const struct hg__attention_back_args *a)
{
	const hg_dtype type = a->of.v.dtype;
	const auto fits = [&](const struct hg__mat &m) { return !m.data || m.dtype == type; };
	return add_takes(a->of, a->csr_t, a->dy) && heads_fit(a->of) && a->y.dtype == type &&
	       wide(a->y) &&
	       (!a->dq.data || (a->plus.data && a->plus.dtype == type && wide(a->plus))) &&
	       !a->dbias.data && fits(a->dq) && fits(a->dk) && fits(a->dv) &&
	       (!a->dv.data || holds_packs(a->dv));
}

/* Halves whose rows are packs of one warp. Below a mean over heads no pack has two heads. */
bool hg__cuda_attention_back_add_ends(const struct hg__attention_back_args *a)
{
	return a->of.v.dtype == HG_F16 && whole_packs(a->y.cols) <= 32 * ADD_PACK && wide(a->dended) &&
	       wide(a->ended) && holds_packs(a->dy) &&
	       (!hg__attention_means(&a->y, &a->dended) || a->dended.cols % ADD_PACK == 0);
}

size_t hg__cuda_attention_back_add_workspace(const hg_context *ctx,
                                             const struct hg__attention_back_args *a)
{
	return records_of(ctx, a).bytes + shared_bytes(a) + ended_bytes(a) +
	       slots_bytes(a->csr_t, add_lead(a->of.v.cols, a->of.heads, 1));
}

hg_status hg__cuda_attention_back_add(hg_context *ctx, const struct hg__attention_back_args *a)
{
	if (a->y.cols == 0)
		return HG_OK;
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_back_add_workspace(ctx, a), &memory));
	struct backward p = backward_of(a);
	char *at = static_cast<char *>(memory);
	const bool columns = p.dk || p.dv;
	const struct record_layout l = records_of(ctx, a);
	p.records = columns ? at + l.first : nullptr;
	p.record_pitch = l.pitch;
	if (l.row_pitch) {
		p.e.x = p.copy = at;
		p.e.pitch = l.row_pitch;
	}
	if (may_be_shared(a) && p.dk == p.dq)
		p.dq_first = reinterpret_cast<float *>(at + l.bytes);
	at += l.bytes + shared_bytes(a);
	p.e.staging = reinterpret_cast<float *>(at + ended_bytes(a));
	if (a->dended.data) {
		HG__TRY(
		    ended[a->act_drop.act][a->act_drop.p > 0.0f](ctx, a, p, reinterpret_cast<float *>(at)));
		return columns ? launch_columns<__half>(ctx, a->csr_t, p) : HG_OK;
	}
	return with_float(ctx, "attention_back", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		HG__TRY(launch_nodes<T>(ctx, p));
		return columns ? launch_columns<T>(ctx, a->csr_t, p) : HG_OK;
	});
}
