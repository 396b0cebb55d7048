/* The gradients of attention for any score and any shape (kernels/attention.h). The order of the
 * kernels:
 *
 *     D[i, k] = <dY_i, Y_i>                     by row, no edges
 *     dK, dV                                    by column, over the transposed graph
 *     dQ, dbias, and dc in parts                by row; not dQ of ADD
 *     dq of ADD                                 by row, no edges
 *     dc                                        the sum of the parts
 *
 * The kernels by row and by column are one: both have a matrix on their own end of the edges and
 * one on the other end, for the scores and for the product <dY_i, V_j>. Split rows and columns
 * stage their sums, and a fold adds them in slot order.
 *
 * Where dQ is dK or dV, the columns leave their sums in f32, and the rows add them before the one
 * rounding. */

#include "kernels/cuda/attention_any.cuh"
#include "kernels/cuda/rows.cuh"

namespace
{

/* A gradient as kernels write it. */
struct gradient {
	void *to; /* NULL: absent */
	int64_t ld;
	float *carry; /* f32 [rows, carry_ld] with the sum of earlier kernels; NULL: none */
	int64_t carry_ld;
	bool keeps; /* the sum goes to `carry`, for a later kernel */

	template <typename T> __device__ void put(int64_t row, int64_t col, float x) const
	{
		if (keeps)
			carry[row * carry_ld + col] = x;
		else
			static_cast<T *>(to)[row * ld + col] =
			    narrow<T>(carry ? x + carry[row * carry_ld + col] : x);
	}
};

struct back_problem {
	struct attention_operands of;
	const void *dy;
	int64_t ld_dy;
	const float *log_sum, *d; /* d: [rows, heads] */
	int64_t ld_log_sum;
	struct gradient score, value; /* dQ by row, or dK by column; dV by column */
	bool one;                     /* dK is dV: their sum goes to `value` */
	struct floats dbias;
	float *dc; /* [items, dc_cols] */
	int64_t dc_cols;
	float *staging; /* [2 * items, lead]: sums of ds t of heads, columns of `score`, of `value` */
	int64_t lead;
};

/* The sums of a part, or of a row: columns of the gradient before the factors that the part has in
 * common; and turned: with COSINE the sum of ds t, for the term -t q' of the gradient. */
struct back_sums {
	float score[LANE_COLUMNS] = {}, value[LANE_COLUMNS] = {}, turned = 0.0f;
};

/* What each edge of a step gives: mask p, and ds, with ADD f' ds. */
struct edge_gradients {
	float part[STEP], ds[STEP];
};

template <typename T, int SCORE, bool BY_ROW> struct back_lanes {
	const struct back_problem &p;
	const struct sub_warp &w;
	any_scores<T, SCORE, BY_ROW> scores;
	head_columns<T> own, other; /* dY and V */
	struct back_sums sums;
	float dc[LANE_COLUMNS] = {}, dc_turned = 0.0f; /* the terms of dc of the whole item */

	__device__ back_lanes(const struct back_problem &problem, const struct sub_warp &lanes)
	    : p(problem), w(lanes), scores(p.of, w),
	      own(BY_ROW ? p.dy : p.of.v, BY_ROW ? p.ld_dy : p.of.ldv, p.of.v_cols, w.head),
	      other(BY_ROW ? p.of.v : p.dy, BY_ROW ? p.of.ldv : p.ld_dy, p.of.v_cols, w.head)
	{
	}

	/* ---- edges ---- */

	__device__ void differentiate(const struct any_step &e, struct edge_gradients &g) const
	{
		float product[STEP] = {};
		any_dots(w, own, scores.row, other, e, product);
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			const int32_t i = scores.i_of(e, u), j = scores.j_of(e, u);
			g.part[u] = g.ds[u] = 0.0f;
			if (u >= e.n)
				continue;
			const float mask = p.of.mask.of(i, j, w.head),
			            weight = attention_p(scores.s[u], p.log_sum[i * p.ld_log_sum + w.head],
			                                 e.weight[u]);
			g.part[u] = mask * weight;
			g.ds[u] =
			    weight * (mask * product[u] - p.d[static_cast<int64_t>(i) * p.of.heads + w.head]);
			if (SCORE == HG_SCORE_ADD)
				g.ds[u] *= leaky_slope(scores.before[u], p.of.slope);
		}
	}
	__device__ void put_bias(const struct any_step &e, const struct edge_gradients &g) const
	{
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			const float ds[1] = {g.ds[u]};
			if (u < e.n && w.block == 0 && w.lane == u % w.lanes)
				p.dbias.put<1>(e.edge[u], w.head, ds);
		}
	}
	/* Adds the edges of a step to column c of `score`. */
	__device__ void add_column(int n, int64_t c, const struct any_step &e,
	                           const struct edge_gradients &g)
	{
		const float x = SCORE == HG_SCORE_ADD_V2 ? scores.own.at(scores.row, c) : 0.0f;
#pragma unroll
		for (int u = 0; u < STEP; u++) {
			if (u >= e.n)
				continue;
			const float y = SCORE == HG_SCORE_ADD ? 1.0f : scores.other.at(e.id[u], c);
			if (SCORE == HG_SCORE_COSINE)
				sums.score[n] = fmaf(g.ds[u], y * scores.inverse[u], sums.score[n]);
			else if (SCORE == HG_SCORE_ADD_V2)
				sums.score[n] = fmaf(g.ds[u], leaky_slope(x + y, p.of.slope), sums.score[n]);
			else
				sums.score[n] = fmaf(g.ds[u], y, sums.score[n]);
			if (BY_ROW && SCORE == HG_SCORE_ADD_V2)
				dc[n] = fmaf(g.ds[u], leaky(x + y, p.of.slope), dc[n]);
		}
	}
	__device__ void add(const struct any_step &e, const struct edge_gradients &g)
	{
		if (SCORE == HG_SCORE_COSINE)
#pragma unroll
			for (int u = 0; u < STEP; u++)
				sums.turned = u < e.n ? fmaf(g.ds[u], scores.before[u], sums.turned) : sums.turned;
#pragma unroll
		for (int n = 0; n < LANE_COLUMNS; n++) {
			const int64_t c = w.column(n);
			if (c < p.of.q_cols)
				add_column(n, c, e, g);
			if (!BY_ROW && c < p.of.v_cols)
#pragma unroll
				for (int u = 0; u < STEP; u++)
					if (u < e.n)
						sums.value[n] = fmaf(g.part[u], other.at(e.id[u], c), sums.value[n]);
		}
	}
	__device__ void step(const struct cursor &at)
	{
		const struct any_step e(p.of, at, w.head);
		struct edge_gradients g;
		scores.compute(e);
		differentiate(e, g);
		if (BY_ROW && p.dbias.data)
			put_bias(e, g);
		add(e, g);
	}

	/* ---- parts and rows ---- */

	__device__ void open(int32_t row, bool none)
	{
		sums = back_sums();
		scores.open(row, none);
	}
	/* Column c of `score` with the factors of the row. */
	__device__ float finished(int n, int64_t c) const
	{
		if constexpr (SCORE == HG_SCORE_ADD) {
			return sums.score[n];
		} else if constexpr (SCORE == HG_SCORE_ADD_V2) {
			return scores.c_at(c) * sums.score[n];
		} else if constexpr (SCORE == HG_SCORE_COSINE) {
			const float inverse = inverse_norm(scores.own_squares),
			            unit = scores.own.at(scores.row, c) * inverse, turned = sums.turned * unit;
			return scores.factor * inverse * (sums.score[n] - turned);
		} else {
			return scores.factor * sums.score[n];
		}
	}
	__device__ void put_row() const
	{
#pragma unroll
		for (int n = 0; n < LANE_COLUMNS; n++) {
			const int64_t c = w.column(n);
			float score = 0.0f;
			if (c < p.of.q_cols && (p.score.to || p.one))
				score = finished(n, c);
			if (c < p.of.q_cols && p.score.to)
				p.score.put<T>(scores.row, w.head * p.of.q_cols + c, score);
			if (!BY_ROW && c < p.of.v_cols && p.value.to)
				p.value.put<T>(scores.row, w.head * p.of.v_cols + c,
				               p.one ? score + sums.value[n] : sums.value[n]);
		}
	}

	/* ---- staging ---- */

	/* Calls f(element of the slot, sum) for each sum of this lane. */
	template <typename F> __device__ void each_staged(int64_t slot, F f)
	{
		float *turned = p.staging + slot * p.lead, *score = turned + p.of.heads,
		      *value = score + p.of.heads * p.of.q_cols;
		f(turned[w.head], sums.turned, w.first());
#pragma unroll
		for (int n = 0; n < LANE_COLUMNS; n++) {
			const int64_t c = w.column(n);
			if (c < p.of.q_cols)
				f(score[w.head * p.of.q_cols + c], sums.score[n], true);
			if (!BY_ROW && c < p.of.v_cols)
				f(value[w.head * p.of.v_cols + c], sums.value[n], true);
		}
	}
	__device__ void stage(int64_t slot)
	{
		each_staged(slot, [](float &to, float sum, bool own) {
			if (own)
				to = sum;
		});
	}
	__device__ void unstage(int64_t slot)
	{
		each_staged(slot, [](float &from, float &sum, bool) { sum += from; });
	}

	/* ---- dc ---- */

	__device__ void put_vector(int64_t item) const
	{
		float *to = p.dc + item * p.dc_cols;
		if (SCORE == HG_SCORE_COSINE && w.first())
			to[w.head] = dc_turned;
#pragma unroll
		for (int n = 0; SCORE == HG_SCORE_ADD_V2 && n < LANE_COLUMNS; n++)
			if (w.column(n) < p.of.q_cols)
				to[w.head * p.of.q_cols + w.column(n)] = dc[n];
	}
};

template <typename T, int SCORE, bool BY_ROW>
__global__ void __launch_bounds__(BLOCK, 2)
    back_items(const __grid_constant__ struct back_problem p)
{
	after_previous();
	const struct sub_warp w(p.of.heads);
	struct cursor at;
	if (own_piece() >= p.of.plan.items || !at.open(p.of.plan, own_piece()))
		return;
	back_lanes<T, SCORE, BY_ROW> lane(p, w);
	do {
		lane.open(at.row, at.e == at.end);
		for (; at.e < at.end; at.e += STEP)
			lane.step(at);
		lane.dc_turned += lane.sums.turned;
		if (at.slot() < 0)
			lane.put_row();
		else
			lane.stage(at.slot());
	} while (at.next(p.of.plan));
	if (BY_ROW && p.dc)
		lane.put_vector(at.item);
}

template <typename T, int SCORE, bool BY_ROW>
__global__ void __launch_bounds__(BLOCK) back_fold(const __grid_constant__ struct back_problem p)
{
	after_previous();
	const int64_t s = own_piece();
	if (s >= p.of.plan.splits)
		return;
	const struct sub_warp w(p.of.heads);
	back_lanes<T, SCORE, BY_ROW> lane(p, w);
	lane.open(p.of.plan.split_row[s], false);
	const int64_t last = p.of.plan.split_last[s];
	for (int64_t item = p.of.plan.split_first[s]; item <= last; item++)
		lane.unstage(slot_of(item, last));
	lane.put_row();
}

/* ---- rows without edges ---- */

/* <dY_i, X_i> over a head, and what becomes of it. item = row * heads + head, as in rows.cuh. */
template <typename T> struct head_product {
	const T *dy, *x;
	int64_t ld_dy, ldx, cols;
	int heads;

	__device__ float of(int64_t item, bool live) const
	{
		const int64_t i = item / heads, first = item % heads * cols;
		float sum = 0.0f;
		for (int64_t c = first + threadIdx.x; live && c < first + cols; c += blockDim.x)
			sum = fmaf(widen(dy[i * ld_dy + c]), widen(x[i * ldx + c]), sum);
		return row_sum(sum);
	}
};
template <typename T> struct put_d {
	struct head_product<T> product;
	float *d;

	template <int W> __device__ void row(int64_t item, bool live) const
	{
		const float sum = product.of(item, live);
		if (live && threadIdx.x == 0)
			d[item] = sum;
	}
};
template <typename T> struct put_dq {
	struct head_product<T> product; /* with plus */
	const float *d, *log_sum;
	int64_t ld_log_sum;
	float slope;
	struct gradient dq;

	template <int W> __device__ void row(int64_t item, bool live) const
	{
		const float sum = product.of(item, live);
		const int heads = product.heads;
		const int64_t i = item / heads, head = item % heads;
		if (live && threadIdx.x == 0)
			dq.put<T>(i, head,
			          (1.0f - slope) * (sum - d[item] * log_sum[i * ld_log_sum + heads + head]));
	}
};

/* ---- dc ---- */

/* Sums of the columns of a dense matrix: 32 threads a column, which take rows in turn, and then one
 * adds the 32. */
__global__ void __launch_bounds__(1024)
    sum_parts(const float *parts, int64_t rows, int64_t cols, float *out)
{
	__shared__ float part[32][33];
	after_previous();
	const int64_t c = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
	float sum = 0.0f;
#pragma unroll 8
	for (int64_t row = threadIdx.y; row < rows; row += 32)
		sum += c < cols ? parts[row * cols + c] : 0.0f;
	part[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || c >= cols)
		return;
	for (int y = 1; y < 32; y++)
		sum += part[y][threadIdx.x];
	out[c] = sum;
}

/* ---- launch ---- */

bool same(const struct hg__mat &a, const struct hg__mat &b)
{
	return a.data && a.data == b.data;
}
bool carries(const struct hg__attention_back_args *a)
{
	return same(a->dq, a->dk) || same(a->dq, a->dv);
}
bool needs_columns(const struct hg__attention_back_args *a)
{
	return a->dk.data || a->dv.data;
}
bool needs_rows(const struct hg__attention_back_args *a)
{
	return (a->dq.data && a->of.score != HG_SCORE_ADD) || a->dc.data || a->dbias.data;
}

/* Columns of `dc` in parts, of the staging of columns and of that of rows. */
int64_t dc_columns(const struct hg__attention_back_args *a)
{
	return !a->dc.data ? 0 : a->of.score == HG_SCORE_COSINE ? a->of.heads : a->dc.cols;
}
int64_t row_columns(const struct hg__attention_back_args *a)
{
	return a->of.heads + a->of.q.cols;
}
int64_t column_columns(const struct hg__attention_back_args *a)
{
	return row_columns(a) + a->of.v.cols;
}

/* The workspace; without a base, its size alone. */
struct back_memory {
	float *d, *carry, *dc, *staging;
	size_t bytes;
};
struct back_memory memory_of(const struct hg__attention_back_args *a, void *base)
{
	size_t used = 0;
	const auto take = [&](size_t bytes) {
		char *const at = base ? static_cast<char *>(base) + used : nullptr;
		used += (bytes + 255) / 256 * 256;
		return reinterpret_cast<float *>(at);
	};
	const auto matrix = [](int64_t rows, int64_t cols) {
		return static_cast<size_t>(rows * cols) * sizeof(float);
	};
	struct back_memory m = {};
	m.d = take(matrix(a->csr.rows, a->of.heads));
	m.carry = take(carries(a) ? matrix(a->dq.rows, a->dq.cols) : 0);
	m.dc = take(matrix(a->csr.plan ? a->csr.plan->items : 0, dc_columns(a)));
	const size_t by_row = needs_rows(a) ? hg__staging_bytes(&a->csr, row_columns(a)) : 0,
	             by_column = needs_columns(a) ? hg__staging_bytes(&a->csr_t, column_columns(a)) : 0;
	m.staging = take(hg__larger(by_row, by_column));
	m.bytes = used;
	return m;
}

struct gradient gradient_of(const struct hg__mat &m)
{
	return {m.data, m.ld, nullptr, 0, false};
}
struct gradient gradient_with(const struct hg__mat &m, float *carry, bool keeps)
{
	return {m.data, m.ld, carry, m.cols, keeps};
}

struct back_problem problem_of(const struct hg__attention_back_args *a, const struct hg__csr &csr,
                               const struct back_memory &memory)
{
	struct back_problem p = {};
	p.of = operands_of(csr, a->of);
	p.dy = a->dy.data;
	p.ld_dy = a->dy.ld;
	p.log_sum = data_of<float>(a->log_sum);
	p.ld_log_sum = a->log_sum.ld;
	p.d = memory.d;
	p.staging = memory.staging;
	return p;
}

template <bool BY_ROW>
hg_status run_side(hg_context *ctx, const struct hg__attention_back_args *a,
                   const struct back_problem &p)
{
	const int64_t lanes = larger(p.of.q_cols, p.of.v_cols), width = BY_ROW ? p.of.q_cols : lanes;
	if (p.of.plan.items == 0)
		return HG_OK;
	return with_score(ctx, "attention_back", a->of, [&](auto zero, auto score) {
		using T = decltype(zero);
		constexpr int SCORE = decltype(score)::value;
		struct edge_grid g = any_grid(p.of.plan.items, p.of.heads, lanes, width);
		HG__TRY(launch(ctx, "attention_back", back_items<T, SCORE, BY_ROW>, g.grid, g.block, p));
		if (p.of.plan.splits == 0)
			return HG_OK;
		g = any_grid(p.of.plan.splits, p.of.heads, lanes, width);
		return launch(ctx, "attention_back: fold", back_fold<T, SCORE, BY_ROW>, g.grid, g.block, p);
	});
}

hg_status run_columns(hg_context *ctx, const struct hg__attention_back_args *a,
                      const struct back_memory &memory)
{
	struct back_problem p = problem_of(a, a->csr_t, memory);
	p.one = same(a->dk, a->dv);
	p.score = same(a->dk, a->dq) ? gradient_with(a->dk, memory.carry, true) : gradient_of(a->dk);
	p.value = same(a->dv, a->dq) ? gradient_with(a->dv, memory.carry, true) : gradient_of(a->dv);
	if (p.one)
		p.score = {};
	p.lead = hg__leading(column_columns(a));
	return run_side<false>(ctx, a, p);
}

hg_status run_rows(hg_context *ctx, const struct hg__attention_back_args *a,
                   const struct back_memory &memory, const struct gradient &dq)
{
	struct back_problem p = problem_of(a, a->csr, memory);
	if (a->of.score != HG_SCORE_ADD)
		p.score = dq;
	p.dbias = floats_of(a->dbias);
	p.dc = a->dc.data ? memory.dc : nullptr;
	p.dc_cols = dc_columns(a);
	p.lead = hg__leading(row_columns(a));
	return run_side<true>(ctx, a, p);
}

/* With one beta for all heads, the heads count as further rows. */
hg_status sum_vector(hg_context *ctx, const struct hg__attention_back_args *a,
                     const struct back_memory &memory)
{
	const int64_t items = a->csr.rows > 0 ? a->csr.plan->items : 0, cols = a->dc.cols;
	if (cols == 0)
		return HG_OK;
	return launch(ctx, "attention_back: sum of dc", sum_parts, grid_for(cols, 32), dim3(32, 32),
	              memory.dc, items * dc_columns(a) / cols, cols, data_of<float>(a->dc));
}

template <typename T>
struct head_product<T> product_of(const struct hg__attention_back_args *a,
                                  const struct hg__mat &x) {
	return {data_of<const T>(a->dy), data_of<const T>(x), a->dy.ld, x.ld,
	        x.cols / a->of.heads,    a->of.heads};
}

/* Calls f.row for each row and head. */
template <typename F>
hg_status each_head(hg_context *ctx, const struct hg__attention_back_args *a, const F &f)
{
	const int64_t cols = a->y.cols / a->of.heads;
	return each_row(ctx, "attention_back: rows", a->csr.rows * a->of.heads, cols > 0 ? cols : 1,
	                false, f);
}

template <typename T>
hg_status run_all(hg_context *ctx, const struct hg__attention_back_args *a,
                  const struct back_memory &memory)
{
	const struct gradient dq = gradient_with(a->dq, carries(a) ? memory.carry : nullptr, false);
	const struct put_d<T> d = {
		product_of<T>(a, a->y), memory.d
	};
	HG__TRY(each_head(ctx, a, d));
	if (needs_columns(a))
		HG__TRY(run_columns(ctx, a, memory));
	if (needs_rows(a))
		HG__TRY(run_rows(ctx, a, memory, dq));
	if (a->dq.data && a->of.score == HG_SCORE_ADD) {
		const struct put_dq<T> f = {
			product_of<T>(a, a->plus), memory.d, data_of<const float>(a->log_sum), a->log_sum.ld,
			    a->of.slope, dq
		};
		HG__TRY(each_head(ctx, a, f));
	}
	return a->dc.data ? sum_vector(ctx, a, memory) : HG_OK;
}

} // namespace

bool hg__cuda_attention_back_any_takes(const struct hg__attention_back_args *)
{
	return true;
}

size_t hg__cuda_attention_back_any_workspace(const hg_context *,
                                             const struct hg__attention_back_args *a)
{
	return memory_of(a, nullptr).bytes;
}

hg_status hg__cuda_attention_back_any(hg_context *ctx, const struct hg__attention_back_args *a)
{
	void *base = nullptr;
	HG__TRY(hg__workspace(ctx, memory_of(a, nullptr).bytes, &base));
	const struct back_memory memory = memory_of(a, base);
	return with_float(ctx, "attention_back", a->of.q.dtype,
	                  [&](auto zero) { return run_all<decltype(zero)>(ctx, a, memory); });
}
