/* Maximum aggregation and its gradient:
 *
 *     Y[i, c] = max over entries of row i of X[col, c]; a NaN wins; 0 for an empty row
 *     arg[i, c] = index within the row of the first entry that attains the maximum, or -1
 *
 * Parts of a split row stage only indices (one i32 per column and slot). The fold reads the values
 * again. Slots are in CSR order, so the first of equal values wins. */

#include "kernels/cuda/parts.cuh"

struct max_problem {
	struct item_plan plan;
	const int32_t *col;
	const void *x;
	void *y;
	int32_t *arg; /* NULL: not needed */
	int64_t ldx, ldy, ldarg, cols;
	int32_t *staging; /* [2 * items, lead] */
	int64_t lead;
};

/* Whether x replaces the best value so far, whose index is `where` (-1: there is none). */
static __device__ inline bool displaces(float x, float best, int where)
{
	return where < 0 || x > best || (x != x && best == best);
}

template <int W> static __device__ inline void store_indices(int32_t *p, const int (&x)[W])
{
	if constexpr (W == 1) {
		*p = x[0];
	} else {
		reinterpret_cast<int4 *>(p)[0] = make_int4(x[0], x[1], x[2], x[3]);
		reinterpret_cast<int4 *>(p)[1] = make_int4(x[4], x[5], x[6], x[7]);
	}
}

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) max_items(const struct max_problem p)
{
	after_previous();
	const int64_t c = own_unit() * W;
	struct cursor at;
	if (own_piece() >= p.plan.items || c >= p.cols || !at.open(p.plan, own_piece()))
		return;
	const T *x = static_cast<const T *>(p.x) + c;
	/* edges of the part's row in earlier items */
	int before = static_cast<int>(at.base - p.plan.rowptr[at.row]);
	float best[W] = {};
	int where[W];
#pragma unroll
	for (int i = 0; i < W; i++)
		where[i] = -1;
	const auto load_term = [&](int64_t, int32_t j) { return fetch<W>(x + j * p.ldx); };
	const auto add_term = [&](const raw<T, W> &g, bool live, int index) {
		float v[W];
		unpack(g, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (live && displaces(v[i], best[i], where[i])) {
				best[i] = v[i];
				where[i] = before + index;
			}
	};
	const auto after = [&](bool done) {
		if (!done)
			return;
		const int64_t slot = at.slot();
		if (slot < 0) {
			store<W>(static_cast<T *>(p.y) + at.row * p.ldy + c, best);
			if (p.arg)
				store_indices<W>(p.arg + at.row * p.ldarg + c, where);
		} else {
			store_indices<W>(p.staging + slot * p.lead + c, where);
		}
		before = 0;
#pragma unroll
		for (int i = 0; i < W; i++) {
			best[i] = 0.0f;
			where[i] = -1;
		}
	};
	walk_item<GATHERS<T, W>>(p.plan, p.col, at, load_term, add_term, after);
}

/* One column of a split row. The values of 16 slots are read together. */
template <typename T>
static __global__ void __launch_bounds__(BLOCK) max_fold(const struct max_problem p)
{
	after_previous();
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	const int64_t first = p.plan.split_first[s], last = p.plan.split_last[s];
	const int32_t row = p.plan.split_row[s];
	const int32_t *col = p.col + p.plan.rowptr[row];
	float best = 0.0f;
	int where = -1;
	for (int64_t k = first; k <= last; k += FOLD_UNROLL) {
		int index[FOLD_UNROLL];
		float value[FOLD_UNROLL];
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			index[u] = k + u <= last ? p.staging[slot_of(k + u, last) * p.lead + c] : -1;
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			value[u] =
			    index[u] < 0 ? 0.0f : widen(static_cast<const T *>(p.x)[col[index[u]] * p.ldx + c]);
#pragma unroll
		for (int u = 0; u < FOLD_UNROLL; u++)
			if (index[u] >= 0 && displaces(value[u], best, where)) {
				best = value[u];
				where = index[u];
			}
	}
	static_cast<T *>(p.y)[row * p.ldy + c] = narrow<T>(best);
	if (p.arg)
		p.arg[row * p.ldarg + c] = where;
}

size_t hg__cuda_spmm_max_workspace(const hg_context *, const struct hg__spmm_max_args *a)
{
	return hg__staging_bytes(&a->csr, a->y.cols);
}

hg_status hg__cuda_spmm_max(hg_context *ctx, const struct hg__spmm_max_args *a)
{
	if (a->y.rows == 0 || a->y.cols == 0)
		return HG_OK;
	if (a->arg.data)
		HG__TRY(hg__has_type(ctx, "spmm_max", "places", a->arg.dtype, HG_I32));
	if (a->x.dtype != a->y.dtype || a->x.cols != a->y.cols)
		return misfit(ctx, "spmm_max", HG__ONE_FLOAT, a->x, a->y);
	if (!a->csr.plan || a->y.rows != a->csr.rows)
		return hg__fail(ctx, HG_ERR_INTERNAL, "spmm_max: Y has %lld rows, the graph has %lld",
		                static_cast<long long>(a->y.rows), static_cast<long long>(a->csr.rows));
	HG__TRY(edge_columns_fit(ctx, "spmm_max", a->y.cols));
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__staging_bytes(&a->csr, a->y.cols), &staging));
	const struct max_problem p = {plan_of(a->csr),
	                              a->csr.col,
	                              a->x.data,
	                              a->y.data,
	                              data_of<int32_t>(a->arg),
	                              a->x.ld,
	                              a->y.ld,
	                              a->arg.ld,
	                              a->y.cols,
	                              static_cast<int32_t *>(staging),
	                              hg__leading(a->y.cols)};
	return with_float(ctx, "spmm_max", a->x.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(a->x) && wide(a->y) && wide(a->arg), [&](auto width) {
			constexpr int W = decltype(width)::value;
			const struct edge_grid items = edge_grid_of(p.plan.items, (p.cols + W - 1) / W);
			HG__TRY(launch(ctx, "spmm_max", max_items<T, W>, items.grid, items.block, p));
			if (p.plan.splits == 0)
				return HG_OK;
			const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
			return launch(ctx, "spmm_max: fold", max_fold<T>, splits.grid, splits.block, p);
		});
	});
}

/* ---- gradient ----
 *
 * dX[j, c] = sum of dY[i, c] over the entries (j, i) of the transpose with arg[i, c] == edge -
 * rowptr[i]. The sum is f32, in the order of the transpose, and is narrowed once. */

struct max_back_problem {
	struct item_plan plan; /* of the transpose */
	const int32_t *col;
	const uint32_t *edge;
	const int64_t *rowptr; /* of the forward orientation */
	const void *dy;
	const int32_t *arg;
	void *dx;
	int64_t lddy, ldarg, lddx, cols;
	float *staging;
	int64_t lead;
};

/* What a lane loads for one entry: the gradient, the winning indices of its row, and the index of
 * this entry (where they are equal, it won). */
template <typename T, int W> struct won {
	raw<T, W> dy;
	int arg[W], index;
};

template <typename T, int W>
static __global__ void __launch_bounds__(BLOCK) max_back_items(const struct max_back_problem p)
{
	after_previous();
	const int64_t c = own_unit() * W;
	struct cursor at;
	if (own_piece() >= p.plan.items || c >= p.cols || !at.open(p.plan, own_piece()))
		return;
	const T *dy = static_cast<const T *>(p.dy) + c;
	float sum[W] = {};
	const auto load_term = [&](int64_t e, int32_t i) {
		struct won<T, W> t = {
		};
		t.dy = fetch<W>(dy + i * p.lddy);
		t.index = static_cast<int>((p.edge ? p.edge[e] : e) - p.rowptr[i]);
		const int32_t *arg = p.arg + i * p.ldarg + c;
		if constexpr (W == 1) {
			t.arg[0] = *arg;
		} else {
			const int4 low = reinterpret_cast<const int4 *>(arg)[0],
			           high = reinterpret_cast<const int4 *>(arg)[1];
			t.arg[0] = low.x, t.arg[1] = low.y, t.arg[2] = low.z, t.arg[3] = low.w;
			t.arg[4] = high.x, t.arg[5] = high.y, t.arg[6] = high.z, t.arg[7] = high.w;
		}
		return t;
	};
	/* an unused slot adds +0 */
	const auto add_term = [&](const struct won<T, W> &t, bool, int) {
		float v[W];
		unpack(t.dy, v);
#pragma unroll
		for (int i = 0; i < W; i++)
			if (t.arg[i] == t.index)
				sum[i] += v[i];
	};
	const auto after = [&](bool done) {
		if (!done)
			return;
		const int64_t slot = at.slot();
		if (slot < 0)
			store<W>(static_cast<T *>(p.dx) + at.row * p.lddx + c, sum);
		else
			store<W>(p.staging + slot * p.lead + c, sum);
#pragma unroll
		for (int i = 0; i < W; i++)
			sum[i] = 0.0f;
	};
	walk_item<4>(p.plan, p.col, at, load_term, add_term, after);
}

template <typename T>
static __global__ void __launch_bounds__(BLOCK, 2) max_back_fold(const struct max_back_problem p)
{
	after_previous();
	const int64_t s = own_piece(), c = own_unit();
	if (s >= p.plan.splits || c >= p.cols)
		return;
	float sum = 0.0f;
	each_slot(p.plan, s, p.staging, p.lead, c, [&](float part) { sum += part; });
	static_cast<T *>(p.dx)[p.plan.split_row[s] * p.lddx + c] = narrow<T>(sum);
}

size_t hg__cuda_spmm_max_back_workspace(const hg_context *, const struct hg__spmm_max_back_args *a)
{
	return hg__staging_bytes(&a->csr_t, a->dx.cols);
}

hg_status hg__cuda_spmm_max_back(hg_context *ctx, const struct hg__spmm_max_back_args *a)
{
	if (a->dx.rows == 0 || a->dx.cols == 0)
		return HG_OK;
	HG__TRY(hg__has_type(ctx, "spmm_max_back", "places", a->arg.dtype, HG_I32));
	if (a->dy.dtype != a->dx.dtype)
		return misfit(ctx, "spmm_max_back", HG__ONE_FLOAT, a->dy, a->dx);
	if (!a->csr_t.plan || a->dx.rows != a->csr_t.rows)
		return hg__fail(ctx, HG_ERR_INTERNAL,
		                "spmm_max_back: dX has %lld rows, the transpose has %lld",
		                static_cast<long long>(a->dx.rows), static_cast<long long>(a->csr_t.rows));
	HG__TRY(edge_columns_fit(ctx, "spmm_max_back", a->dx.cols));
	void *staging = nullptr;
	HG__TRY(hg__workspace(ctx, hg__staging_bytes(&a->csr_t, a->dx.cols), &staging));
	const struct max_back_problem p = {plan_of(a->csr_t),
	                                   a->csr_t.col,
	                                   a->csr_t.edge,
	                                   a->csr.rowptr,
	                                   a->dy.data,
	                                   data_of<int32_t>(a->arg),
	                                   a->dx.data,
	                                   a->dy.ld,
	                                   a->arg.ld,
	                                   a->dx.ld,
	                                   a->dx.cols,
	                                   static_cast<float *>(staging),
	                                   hg__leading(a->dx.cols)};
	return with_float(ctx, "spmm_max_back", a->dx.dtype, [&](auto zero) {
		using T = decltype(zero);
		return with_width(wide(a->dy) && wide(a->dx) && wide(a->arg), [&](auto width) {
			constexpr int W = decltype(width)::value;
			const struct edge_grid items = edge_grid_of(p.plan.items, (p.cols + W - 1) / W);
			HG__TRY(launch(ctx, "spmm_max_back", max_back_items<T, W>, items.grid, items.block, p));
			if (p.plan.splits == 0)
				return HG_OK;
			const struct edge_grid splits = edge_grid_of(p.plan.splits, p.cols);
			return launch(ctx, "spmm_max_back: fold", max_back_fold<T>, splits.grid, splits.block,
			              p);
		});
	});
}
