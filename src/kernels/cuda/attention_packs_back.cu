/* The gradients of attention with scores from whole rows, DOT, COSINE and ADD_V2, a pack of 8
 * columns in each lane: what they need of every node, the two passes over the edges
 * (attention_packs_back.cuh), and dc.
 *
 *     D[i, k] = <dY_i, Y_i> over head k
 *
 * The rows come first, and compute these on the way. But where dQ is the same matrix as dK or dV,
 * the columns come first: they leave their sums in f32, and the rows add them before the one
 * narrowing. */

#include "kernels/cuda/attention_packs_back.cuh"

namespace
{

/* ---- nodes ---- */

struct node_problem : packs_problem {
	struct pack_rows y, dy, q;
	const float *log_sum;
	int64_t ld_log_sum, rows;
	void *record;
};

template <typename T, int SCORE>
__global__ void __launch_bounds__(PACK_BLOCK)
    back_nodes(const __grid_constant__ struct node_problem p)
{
	after_previous();
	const struct pack_lane at(p);
	const int64_t i = own_piece();
	const int32_t row = i < p.rows ? static_cast<int32_t>(i) : -1;
	const back_record<SCORE> record =
	    row_record<T, SCORE>(p, at, row, own_bits<T>(at, p.q, row), own_bits<T>(at, p.dy, row), p.y,
	                         p.log_sum, p.ld_log_sum);
	if (row < 0 || !at.first)
		return;
	static_cast<struct back_record<SCORE> *>(p.record)[i * p.heads + at.head] = record;
}

/* ---- dc ---- */

/* Rows of partial sums that a block adds: 64 for each of its 8 rows of threads. Not measured. */
constexpr int64_t DC_ROWS = 512;

/* out[b, c] = sum over rows DC_ROWS b .. of in[row, c]. A block has 32 columns and 8 rows. */
__global__ void __launch_bounds__(BLOCK)
    add_dc_rows(const float *in, int64_t rows, int64_t width, float *out)
{
	after_previous();
	__shared__ float part[8][32];
	const int64_t c = static_cast<int64_t>(blockIdx.y) * 32 + threadIdx.x,
	              first = blockIdx.x * DC_ROWS,
	              end = first + DC_ROWS < rows ? first + DC_ROWS : rows;
	float sum = 0.0f;
	for (int64_t row = first + threadIdx.y; c < width && row < end; row += 8)
		sum += in[row * width + c];
	part[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y > 0 || c >= width)
		return;
#pragma unroll
	for (int y = 1; y < 8; y++)
		sum += part[y][threadIdx.x];
	out[blockIdx.x * width + c] = sum;
}

/* dc[o] = sum over the rows and over columns o * group .. o * group + group - 1. A warp has an
 * element. */
__global__ void __launch_bounds__(32)
    finish_dc(const float *in, int64_t rows, int64_t width, int64_t group, float *dc)
{
	after_previous();
	float sum = 0.0f;
	for (int64_t i = threadIdx.x; i < rows * group; i += 32)
		sum += in[i / group * width + blockIdx.x * group + i % group];
	sum = lanes_sum<32>(sum);
	if (threadIdx.x == 0)
		dc[blockIdx.x] = sum;
}

/* ---- workspace ---- */

int64_t blocks_of(const struct hg__csr &csr, const struct hg__attention &of)
{
	if (csr.rows == 0)
		return 0;
	return packs_parts(csr, packs_shape_of(of).block).blocks;
}

/* What a call does, and where its workspace has what, in bytes. */
struct back_layout {
	bool columns, rows;               /* which passes run */
	bool rows_first;                  /* and compute the records */
	int64_t column_blocks, dc_blocks; /* partial sums of dc: of columns, and of both passes */
	int64_t dc_width;
	size_t record, inverse_k, carry, dc, dc_sums, staging, bytes;
};

bool is_one(const struct hg__mat &a, const struct hg__mat &b)
{
	return a.data && a.data == b.data;
}
/* Whether the rows add what the columns have computed. */
bool carries(const struct hg__attention_back_args *a)
{
	return is_one(a->dq, a->dk) || is_one(a->dq, a->dv);
}

/* Whether the pass over the columns runs: for dK and dV, and for its half of dc. */
bool needs_columns(const struct hg__attention_back_args *a)
{
	return a->dk.data || a->dv.data || (a->dc.data && a->of.score == HG_SCORE_ADD_V2);
}

size_t take(size_t *bytes, int64_t count, size_t size)
{
	const size_t at = *bytes;
	*bytes += (static_cast<size_t>(count) * size + 255) / 256 * 256;
	return at;
}

struct back_layout layout_of(const struct hg__attention_back_args *a)
{
	const struct hg__attention &of = a->of;
	const bool cosine = of.score == HG_SCORE_COSINE, v2 = of.score == HG_SCORE_ADD_V2;
	const bool dc = a->dc.data && (cosine || v2);
	struct back_layout l = {};
	l.columns = needs_columns(a);
	l.rows = a->dq.data || dc;
	l.rows_first = l.rows && !carries(a);
	l.dc_width = !dc ? 0 : v2 ? of.q.cols : of.q.cols / 8;
	l.column_blocks = dc && v2 ? blocks_of(a->csr_t, of) : 0;
	l.dc_blocks = l.column_blocks + (dc ? blocks_of(a->csr, of) : 0);
	l.record =
	    take(&l.bytes, a->csr.rows * of.heads,
	         cosine ? sizeof(back_record<HG_SCORE_COSINE>) : sizeof(back_record<HG_SCORE_DOT>));
	l.inverse_k = take(&l.bytes, gathers_norms(of) ? of.k.rows * of.heads : 0, sizeof(float));
	l.carry = take(&l.bytes, carries(a) ? a->csr.rows * of.q.cols : 0, sizeof(float));
	l.dc = take(&l.bytes, l.dc_blocks * l.dc_width, sizeof(float));
	l.dc_sums = take(&l.bytes, grid_for(l.dc_blocks, DC_ROWS) * l.dc_width, sizeof(float));
	l.staging = take(&l.bytes, 0, 0);
	/* the passes run one after the other, with one row of sums for each column of theirs */
	l.bytes += hg__larger(l.columns ? slots_bytes(a->csr_t, 2 * of.q.cols) : 0,
	                      l.rows ? slots_bytes(a->csr, of.q.cols) : 0);
	return l;
}

/* ---- launch ---- */

hg_status run_nodes(hg_context *ctx, const struct hg__attention_back_args *a, void *record)
{
	if (a->csr.rows == 0)
		return HG_OK;
	const struct packs_shape shape = packs_shape_of(a->of);
	struct node_problem p = {};
	describe(&p, a->csr, a->of);
	p.y = pack_rows_of(a->y);
	p.dy = pack_rows_of(a->dy);
	p.q = pack_rows_of(a->of.q);
	p.log_sum = data_of<const float>(a->log_sum);
	p.ld_log_sum = a->log_sum.ld;
	p.rows = a->csr.rows;
	p.record = record;
	const dim3 grid(grid_for(p.rows, shape.block.y), shape.passes);
	return with_float(ctx, "attention_back", a->y.dtype, [&](auto zero) {
		using T = decltype(zero);
		/* the record of ADD_V2 is that of DOT */
		return launch(ctx, "attention_back: nodes",
		              a->of.score == HG_SCORE_COSINE ? back_nodes<T, HG_SCORE_COSINE>
		                                             : back_nodes<T, HG_SCORE_DOT>,
		              grid, shape.block, p);
	});
}

struct back_problem back_problem_of(const struct hg__attention_back_args *a, bool columns,
                                    const struct back_layout &l, char *memory)
{
	const struct pack_rows q = pack_rows_of(a->of.q), k = pack_rows_of(a->of.k),
	                       v = pack_rows_of(a->of.v), dy = pack_rows_of(a->dy);
	const struct hg__mat &dx = columns ? a->dk : a->dq;
	struct back_problem p = {};
	describe(&p, columns ? a->csr_t : a->csr, a->of);
	p.own_x = columns ? k : q;
	p.own_y = columns ? v : dy;
	p.x = columns ? q : k;
	p.y = columns ? dy : v;
	p.record = memory + l.record;
	if (!columns && l.rows_first)
		p.y_saved = pack_rows_of(a->y);
	p.log_sum = data_of<const float>(a->log_sum);
	p.ld_log_sum = a->log_sum.ld;
	p.inverse_k = reinterpret_cast<float *>(memory + l.inverse_k);
	p.dx = columns && is_one(dx, a->dq) ? nullptr : dx.data;
	p.ld_dx = dx.ld;
	p.together = columns && is_one(a->dk, a->dv);
	p.dy = !columns || p.together || is_one(a->dv, a->dq) ? nullptr : a->dv.data;
	p.ld_dy = a->dv.ld;
	p.carry = carries(a) ? reinterpret_cast<float *>(memory + l.carry) : nullptr;
	p.carries_dy = !is_one(a->dk, a->dq);
	p.staging = reinterpret_cast<float *>(memory + l.staging);
	p.lead = (columns ? 2 : 1) * a->of.q.cols;
	if (l.dc_width > 0 && !(columns && l.column_blocks == 0))
		p.dc =
		    reinterpret_cast<float *>(memory + l.dc) + (columns ? 0 : l.column_blocks * l.dc_width);
	return p;
}

hg_status run_dc(hg_context *ctx, const struct hg__attention_back_args *a,
                 const struct back_layout &l, char *memory)
{
	const float *partial = reinterpret_cast<float *>(memory + l.dc);
	float *sums = reinterpret_cast<float *>(memory + l.dc_sums);
	const int64_t outputs = a->dc.cols;
	int64_t rows = 0;
	if (l.dc_blocks > 0) {
		const dim3 grid(grid_for(l.dc_blocks, DC_ROWS), grid_for(l.dc_width, 32));
		HG__TRY(launch(ctx, "attention_back: dc", add_dc_rows, grid, dim3(32, BLOCK / 32), partial,
		               l.dc_blocks, l.dc_width, sums));
		rows = grid.x;
	}
	return launch(ctx, "attention_back: dc", finish_dc, static_cast<unsigned>(outputs), 32, sums,
	              rows, l.dc_width, l.dc_width / outputs, data_of<float>(a->dc));
}

bool is_result(const struct hg__mat &m, const struct hg__mat &like)
{
	return !m.data || (m.dtype == like.dtype && m.cols == like.cols && wide(m));
}

} // namespace

bool hg__cuda_attention_back_packs_takes(const struct hg__attention_back_args *a)
{
	const struct hg__mat &v = a->of.v;
	return hg__attention_packs_fit(a->csr, a->of) &&
	       (!needs_columns(a) ||
	        (a->csr_t.rows == a->csr.cols && hg__attention_packs_fit(a->csr_t, a->of))) &&
	       a->y.dtype == v.dtype && a->dy.dtype == v.dtype && wide(a->y) && wide(a->dy) &&
	       a->y.cols == v.cols && a->dy.cols == v.cols && is_result(a->dq, v) &&
	       is_result(a->dk, v) && is_result(a->dv, v);
}

size_t hg__cuda_attention_back_packs_workspace(const hg_context *,
                                               const struct hg__attention_back_args *a)
{
	return layout_of(a).bytes;
}

hg_status hg__cuda_attention_back_packs(hg_context *ctx, const struct hg__attention_back_args *a)
{
	const struct back_layout l = layout_of(a);
	void *memory = nullptr;
	HG__TRY(hg__workspace(ctx, l.bytes, &memory));
	char *at = static_cast<char *>(memory);
	if (!l.rows_first)
		HG__TRY(run_nodes(ctx, a, at + l.record));
	if (gathers_norms(a->of))
		HG__TRY(
		    hg__attention_norms(ctx, a->of, a->of.k, reinterpret_cast<float *>(at + l.inverse_k)));
	if (l.rows_first && a->csr.rows > 0)
		HG__TRY(hg__attention_back_rows(ctx, a->csr, a->of, back_problem_of(a, false, l, at)));
	if (l.columns && a->csr_t.rows > 0)
		HG__TRY(hg__attention_back_columns(ctx, a->csr_t, a->of, back_problem_of(a, true, l, at)));
	if (l.rows && !l.rows_first && a->csr.rows > 0)
		HG__TRY(hg__attention_back_rows(ctx, a->csr, a->of, back_problem_of(a, false, l, at)));
	return l.dc_width > 0 ? run_dc(ctx, a, l, at) : HG_OK;
}
