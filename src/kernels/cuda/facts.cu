/* Everything about a graph that the range proofs need. The bits are always the same: sums are
 * computed in an order fixed by the graph, or in integers, for which the order does not matter.
 *
 * With p = |w_ij| and the factors r, c of a normalisation (graph.h), rounded to f32 as kernels use
 * them:
 *
 *     rows       sum over j of p r_i c_j in f64. A warp takes a row; a block takes a row of more
 *                than LONG_ROW edges. Also t = max over edges of p r_i.
 *     columns    c_j * sum over i of p r_i. There is no transpose here, so each edge adds to its
 *                column, in fixed point: x = p r_i / 2^k <= 1, with 2^k >= t, as the integer
 *                x 2^62 in two halves of 31 bits. No sum of up to 2^32 edges overflows. The error
 *                is below 2^-62 2^k per edge, while the largest sum is at least 2^(k-1) c_j.
 *     symmetry   the twin of entry (i, j), the d-th of its kind in row i, is the d-th (j, i) in
 *                row j. Distinct entries have distinct twins, so the pattern is symmetric if every
 *                entry has one.
 *
 * LEFT, 1/d'(j), has r = 1, so its column sums are those of NONE times c_j. IN has the r of BOTH,
 * and c_j from the degree of row j. */

#include <cmath>

#include "kernels/cuda/build.cuh"
#include "kernels/cuda/search.cuh"

using count_t = unsigned long long;

constexpr int WARPS = BLOCK / 32;
/* a warp takes 128 rounds; longer rows are shared by 8 warps */
constexpr int64_t LONG_ROW = 4096;
constexpr double FIXED_ONE = 0x1p62;     /* 1 in fixed point */
constexpr count_t LOW_HALF = 0x7fffffff; /* 31 bits */

/* The results of the kernels, maxima and counts only. Doubles that are not negative compare like
 * their bits. */
struct found {
	count_t row_sum[HG_NORMS], col_sum[HG_NORMS], term[HG_NORMS]; /* f64 bits, by hg_norm */
	count_t row_degree, col_degree, empty_rows, empty_cols, self_loops;
	/* entries without a twin; entries whose twin has another weight */
	count_t not_pattern, not_values;
};

struct view {
	int64_t rows, cols, m;
	const int64_t *rowptr, *colptr;
	const int32_t *col;
	const float *weight; /* NULL: all 1 */
};

/* Raises a maximum. The value only grows, so a thread that reads a larger one has nothing to do. */
static __device__ inline void raise(count_t *most, count_t x)
{
	if (x > *static_cast<volatile count_t *>(most))
		atomicMax(most, x);
}
static __device__ inline void raise(count_t *most, double x)
{
	raise(most, static_cast<count_t>(__double_as_longlong(x)));
}

static __device__ inline double most_found(const count_t *most)
{
	return __longlong_as_double(static_cast<long long>(*most));
}

static __device__ inline double inverse(double degree)
{
	return static_cast<double>(inverse_of_degree(degree));
}
static __device__ inline double root(double degree)
{
	return static_cast<double>(root_of_degree(degree));
}

static __device__ inline double magnitude(const struct view &g, int64_t e)
{
	return g.weight ? fabs(static_cast<double>(g.weight[e])) : 1.0;
}

/* r_i and c_j of a normalisation. IN takes both from the degrees of rows. */
static __device__ inline double row_factor(int norm, double degree)
{
	return norm == HG_NORM_RIGHT                        ? inverse(degree)
	       : norm == HG_NORM_BOTH || norm == HG_NORM_IN ? root(degree)
	                                                    : 1.0;
}
static __device__ inline double col_factor(int norm, double degree)
{
	return norm == HG_NORM_LEFT                         ? inverse(degree)
	       : norm == HG_NORM_BOTH || norm == HG_NORM_IN ? root(degree)
	                                                    : 1.0;
}

/* ---- degrees ---- */

static __global__ void find_degrees(int64_t n, const int64_t *ptr, count_t *most, count_t *empty)
{
	count_t longest = 0, none = 0;
	for (int64_t i = global_thread(); i < n; i += global_threads()) {
		const count_t d = static_cast<count_t>(ptr[i + 1] - ptr[i]);
		longest = d > longest ? d : longest;
		none += d == 0;
	}
	raise(most, longest);
	if (none)
		atomicAdd(empty, none);
}

/* Sets *differ if a node's row and column differ in length, because the pattern is then not
 * symmetric. */
static __global__ void compare_degrees(int64_t n, const int64_t *rowptr, const int64_t *colptr,
                                       count_t *differ)
{
	for (int64_t i = global_thread(); i < n; i += global_threads())
		if (rowptr[i + 1] != colptr[i + 1])
			*differ = 1;
}

/* ---- rows ---- */

struct row_sums {
	double sum[HG_NORMS], largest, loops; /* largest |w| */
};

static __device__ inline void add_edges(const struct view &g, int64_t row, int64_t first,
                                        int64_t step, struct row_sums *s)
{
	for (int64_t e = g.rowptr[row] + first; e < g.rowptr[row + 1]; e += step) {
		const int64_t j = g.col[e];
		const double p = magnitude(g, e), d = degree(g.colptr, j);
		s->sum[HG_NORM_NONE] += p;
		s->sum[HG_NORM_LEFT] += p * inverse(d);
		s->sum[HG_NORM_BOTH] += p * root(d);
		if (g.rows == g.cols)
			s->sum[HG_NORM_IN] += p * root(degree(g.rowptr, j));
		s->largest = fmax(s->largest, p);
		s->loops += j == row;
	}
}

/* Adds the sums of a row to the results; r_i is a common factor. One thread calls it. */
static __device__ inline void record_row(const struct view &g, int64_t row,
                                         const struct row_sums &s, struct found *f)
{
	const double d = degree(g.rowptr, row);
	raise(&f->row_sum[HG_NORM_NONE], s.sum[HG_NORM_NONE]);
	raise(&f->row_sum[HG_NORM_LEFT], s.sum[HG_NORM_LEFT]);
	raise(&f->row_sum[HG_NORM_RIGHT], s.sum[HG_NORM_NONE] * inverse(d));
	raise(&f->row_sum[HG_NORM_BOTH], s.sum[HG_NORM_BOTH] * root(d));
	raise(&f->row_sum[HG_NORM_IN], s.sum[HG_NORM_IN] * root(d));
	for (int norm = 0; norm < HG_NORMS; norm++)
		raise(&f->term[norm], s.largest * row_factor(norm, d));
	if (s.loops > 0.0)
		atomicAdd(&f->self_loops, static_cast<count_t>(s.loops));
}

static __device__ inline double lanes_most(double x)
{
	for (int step = 16; step > 0; step /= 2)
		x = fmax(x, __shfl_xor_sync(0xffffffffu, x, step));
	return x;
}

/* A block takes eight rows: each warp takes one, and then all warps share each long one. */
static __global__ void sum_rows(struct view g, struct found *f)
{
	const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
	for (int64_t base = static_cast<int64_t>(blockIdx.x) * WARPS; base < g.rows;
	     base += static_cast<int64_t>(gridDim.x) * WARPS) {
		const int64_t own = base + warp;
		if (own < g.rows && g.rowptr[own + 1] - g.rowptr[own] <= LONG_ROW) {
			struct row_sums s = {};
			add_edges(g, own, lane, 32, &s);
			for (int i = 0; i < HG_NORMS; i++)
				s.sum[i] = lanes_sum<32>(s.sum[i]);
			s.largest = lanes_most(s.largest);
			s.loops = lanes_sum<32>(s.loops);
			if (lane == 0)
				record_row(g, own, s, f);
		}
		for (int64_t row = base; row < base + WARPS && row < g.rows; row++) {
			if (g.rowptr[row + 1] - g.rowptr[row] <= LONG_ROW)
				continue; /* uniform over the block */
			struct row_sums s = {};
			add_edges(g, row, threadIdx.x, BLOCK, &s);
			for (int i = 0; i < HG_NORMS; i++)
				s.sum[i] = block_sum(s.sum[i]);
			s.loops = block_sum(s.loops);
			s.largest = lanes_most(s.largest);
			if (threadIdx.x == 0)
				record_row(g, row, s, f);
			else if (lane == 0)
				for (int norm = 0; norm < HG_NORMS; norm++)
					raise(&f->term[norm], s.largest * row_factor(norm, degree(g.rowptr, row)));
		}
	}
}

/* ---- columns ---- */

/* 2^-k with 2^k >= t, from the largest term; 1 if all weights are 0. Products with it are exact,
 * except for values too small to count. */
static __device__ inline double unit_of(const count_t *term)
{
	int exponent = 0;
	(void)frexp(most_found(term), &exponent); /* t = f 2^exponent, f < 1 */
	return exp2(static_cast<double>(-exponent));
}

/* high, low [cols]: the two halves of each column's sum. */
static __global__ void add_to_columns(struct view g, int norm, const struct found *f, count_t *high,
                                      count_t *low)
{
	const double unit = unit_of(&f->term[norm]);
	for (int64_t e = global_thread(); e < g.m; e += global_threads()) {
		const int64_t i = row_of(g.rowptr, 0, g.rows, e);
		const double x = magnitude(g, e) * row_factor(norm, degree(g.rowptr, i)) * unit;
		const count_t fixed = static_cast<count_t>(x * FIXED_ONE);
		atomicAdd(high + g.col[e], fixed >> 31);
		atomicAdd(low + g.col[e], fixed & LOW_HALF);
	}
}

static __global__ void find_col_sum(struct view g, int norm, int scaled_by, const count_t *high,
                                    const count_t *low, struct found *f)
{
	const double unit = unit_of(&f->term[norm]);
	double most = 0.0;
	for (int64_t j = global_thread(); j < g.cols; j += global_threads()) {
		const double sum = (static_cast<double>(high[j]) * 0x1p31 + static_cast<double>(low[j])) /
		                   FIXED_ONE / unit;
		most =
		    fmax(most, sum * col_factor(scaled_by,
		                                degree(scaled_by == HG_NORM_IN ? g.rowptr : g.colptr, j)));
	}
	raise(&f->col_sum[scaled_by], most);
}

/* ---- symmetry ---- */

static __global__ void find_twins(struct view g, struct found *f)
{
	for (int64_t e = global_thread(); e < g.m; e += global_threads()) {
		const int64_t i = row_of(g.rowptr, 0, g.rows, e), j = g.col[e];
		const int64_t kind = e - first_at_least(g.col, g.rowptr[i], e, static_cast<int32_t>(j));
		const int64_t twin =
		    first_at_least(g.col, g.rowptr[j], g.rowptr[j + 1], static_cast<int32_t>(i)) + kind;
		if (twin >= g.rowptr[j + 1] || g.col[twin] != i)
			f->not_pattern = 1;
		else if (g.weight && g.weight[twin] != g.weight[e])
			f->not_values = 1;
	}
}

/* ---- launches ---- */

/* Column sums of NONE (which also gives LEFT), RIGHT and BOTH (which also gives IN), one after the
 * other in the same two arrays. */
static hg_status sum_columns(hg_context *ctx, const struct view &g, count_t *halves,
                             struct found *f)
{
	static const struct {
		int norm, scaled_by[2]; /* -1: none */
	} pass[] = {{HG_NORM_NONE, {HG_NORM_NONE, HG_NORM_LEFT}},
	            {HG_NORM_RIGHT, {HG_NORM_RIGHT, -1}},
	            {HG_NORM_BOTH, {HG_NORM_BOTH, HG_NORM_IN}}};
	const cudaStream_t stream = stream_of(ctx);
	count_t *low = halves + g.cols;
	for (size_t k = 0; k < sizeof pass / sizeof pass[0]; k++) {
		HG__CUDA(
		    ctx, "graph facts",
		    cudaMemsetAsync(halves, 0, 2 * static_cast<size_t>(g.cols) * sizeof *halves, stream));
		add_to_columns<<<grid_for(g.m, BLOCK), BLOCK, 0, stream>>>(g, pass[k].norm, f, halves, low);
		HG__TRY(launched(ctx, "graph facts: column sums"));
		for (int by : pass[k].scaled_by) {
			if (by < 0 || (by == HG_NORM_IN && g.rows != g.cols))
				continue;
			find_col_sum<<<few_blocks(g.cols), BLOCK, 0, stream>>>(g, pass[k].norm, by, halves, low,
			                                                       f);
			HG__TRY(launched(ctx, "graph facts: column sums"));
		}
	}
	return HG_OK;
}

static hg_status launch_facts(hg_context *ctx, const struct view &g, count_t *halves,
                              struct found *f)
{
	const cudaStream_t stream = stream_of(ctx);
	HG__CUDA(ctx, "graph facts", cudaMemsetAsync(f, 0, sizeof *f, stream));
	find_degrees<<<few_blocks(g.rows), BLOCK, 0, stream>>>(g.rows, g.rowptr, &f->row_degree,
	                                                       &f->empty_rows);
	HG__TRY(launched(ctx, "graph facts: degrees"));
	find_degrees<<<few_blocks(g.cols), BLOCK, 0, stream>>>(g.cols, g.colptr, &f->col_degree,
	                                                       &f->empty_cols);
	HG__TRY(launched(ctx, "graph facts: degrees"));
	if (g.m == 0)
		return HG_OK;
	sum_rows<<<grid_for(g.rows, WARPS), BLOCK, 0, stream>>>(g, f);
	HG__TRY(launched(ctx, "graph facts: row sums"));
	return sum_columns(ctx, g, halves, f);
}

/* Searches for twins only if all degrees agree, which they do not on most graphs that are not
 * symmetric. */
static hg_status check_symmetry(hg_context *ctx, const struct view &g, struct found *f,
                                struct found *host)
{
	const cudaStream_t stream = stream_of(ctx);
	if (g.rows != g.cols)
		return ctx->backend->copy_out(ctx, host, f, sizeof *f);
	compare_degrees<<<few_blocks(g.rows), BLOCK, 0, stream>>>(g.rows, g.rowptr, g.colptr,
	                                                          &f->not_pattern);
	HG__TRY(launched(ctx, "graph facts: degrees"));
	HG__TRY(ctx->backend->copy_out(ctx, host, f, sizeof *f));
	if (host->not_pattern || g.m == 0)
		return HG_OK;
	find_twins<<<grid_for(g.m, BLOCK), BLOCK, 0, stream>>>(g, f);
	HG__TRY(launched(ctx, "graph facts: symmetry"));
	return ctx->backend->copy_out(ctx, host, f, sizeof *f);
}

static double double_of(count_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static void write_facts(const struct view &g, const struct found &found, hg_graph_facts *f,
                        int *pattern)
{
	f->max_row_degree = static_cast<int64_t>(found.row_degree);
	f->max_col_degree = static_cast<int64_t>(found.col_degree);
	f->empty_rows = static_cast<int64_t>(found.empty_rows);
	f->empty_cols = static_cast<int64_t>(found.empty_cols);
	f->self_loops = static_cast<int64_t>(found.self_loops);
	for (int norm = 0; norm < HG_NORMS; norm++) {
		f->norm_row_sum[norm] = double_of(found.row_sum[norm]);
		f->norm_col_sum[norm] = double_of(found.col_sum[norm]);
	}
	f->max_row_sum = f->norm_row_sum[HG_NORM_NONE];
	f->max_col_sum = f->norm_col_sum[HG_NORM_NONE];
	*pattern = g.rows == g.cols && !found.not_pattern;
	f->symmetric = *pattern && !found.not_values;
}

/* Memory beside the graph: 24 bytes a column. */
hg_status hg__cuda_survey(hg_context *ctx, const struct hg__csr *csr, const float *weight,
                          hg_graph_facts *facts, int *pattern)
{
	const hg_graph_facts none = HG_GRAPH_FACTS_INIT;
	const size_t columns = hg__aligned(static_cast<size_t>(csr->cols + 1) * sizeof(int64_t));
	const size_t bytes = 3 * columns + hg__aligned(sizeof(struct found));
	void *memory = nullptr;
	*facts = none;
	HG__TRY(hg__device_alloc(ctx, bytes, "graph facts", &memory));
	char *at = static_cast<char *>(memory);
	int64_t *colptr = reinterpret_cast<int64_t *>(at);
	struct found *f = reinterpret_cast<struct found *>(at + 3 * columns), host = {};
	const struct view g = {csr->rows, csr->cols, csr->m, csr->rowptr, colptr, csr->col, weight};
	hg_status status = hg__cuda_column_ptr(ctx, csr, colptr);
	if (status >= 0)
		status = launch_facts(ctx, g, reinterpret_cast<count_t *>(at + columns), f);
	if (status >= 0)
		status = check_symmetry(ctx, g, f, &host);
	hg__device_free(ctx, memory, bytes);
	if (status >= 0)
		write_facts(g, host, facts, pattern);
	return status;
}
