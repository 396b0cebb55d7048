/* Products of a layer with a batch norm before it, or behind it, or both, of halves with up to
 * NORM_SIDE columns on either side:
 *
 *     C [n, d] = 2^shift norm(A) [n, k] op(B) + bias
 *
 * norm is applied to the rows of A as they are read, and the statistics of C are computed from its
 * rows as they are stored, so that neither costs a pass over memory (kernels/batch_norm.h). The
 * products are those of tall_rows.cuh.
 *
 * Statistics. The rows are cut into parts, by their number alone, and a block has a part. Each of
 * its warps adds, in runs of up to RUN steps of 16 rows, d = x - first and d^2, where `first` is
 * the mean of the run's first step. A lane ends a run with the moments of one column of each block
 * of 32,
 *
 *     mean = first + sum d / c,    squares = sum d^2 - (sum d)^2 / c,
 *
 * and merges them with those of earlier runs (moments.cuh). The difference is accurate: 16 (first -
 * mean)^2 <= squares, so sum d^2 <= (1 + c / 16) squares, and the difference amplifies its at most
 * c / 8 + 4 roundings c / 16 + 2 times. That is below the bound gamma_n(u32) of two passes, as c <=
 * 512 rows in a run and n / 2112 or 16 in a warp. A block stores the moments of its part, and a
 * second kernel merges the parts. */

#include "kernels/cuda/gemm_norm.cuh"

#include "kernels/cuda/moments.cuh"
#include "kernels/cuda/norm_rows.cuh"

namespace
{

constexpr int WARPS = BLOCK / 32, STEP = 16; /* rows of a step of one warp */
constexpr int RUN = 32;
/* Two blocks on each of 132 multiprocessors, three without statistics. The number is the same on
 * all devices, because the bits of the statistics depend on it. */
constexpr int64_t PARTS = 264, PARTS_WITHOUT = 396;
static_assert(PARTS <= COLUMN_BLOCKS, "merge_kernel reads all parts");

struct norm_product {
	struct half_rows a, c;
	struct short_matrix b; /* op(B) */
	const __half *bias;
	int64_t n;
	float factor;
	struct norm_before norm;
	const int64_t *counting; /* the rows of C that count in its statistics; NULL: all */
	struct column_parts parts;
};

/* The moments of the rows of a warp. */
template <int BLOCKS> struct row_moments {
	float s[BLOCKS][8], q[BLOCKS][8]; /* sum of x - first, and of its square, in the current run */
	struct moments<1> column[BLOCKS]; /* of column g of the lane's packs, in earlier runs */
	float count;                      /* rows of the current run */

	/* Begins a run with these rows, of which `rows` count. first: of the warp, in shared memory. */
	__device__ void begin(int b, const float (&low)[8], const float (&high)[8], bool has_low,
	                      bool has_high, float rows, float *first, int lane)
	{
		float v[8];
#pragma unroll
		for (int i = 0; i < 8; i++) {
			v[i] = (has_low ? low[i] : 0.0f) + (has_high ? high[i] : 0.0f);
			s[b][i] = q[b][i] = 0.0f;
		}
		first[CHUNK * b + 8 * (lane % 4) + lane / 4] = sum_of_column(v, lane) / rows;
		__syncwarp();
	}
	__device__ void add(int b, const float (&low)[8], const float (&high)[8], bool has_low,
	                    bool has_high, const float *first, int lane)
	{
		float k[8];
		load<8>(first + CHUNK * b + 8 * (lane % 4), k);
		if (has_low)
#pragma unroll
			for (int i = 0; i < 8; i++)
				add_one(b, i, low[i] - k[i]);
		if (has_high)
#pragma unroll
			for (int i = 0; i < 8; i++)
				add_one(b, i, high[i] - k[i]);
	}
	__device__ void add_one(int b, int i, float d)
	{
		s[b][i] += d;
		q[b][i] = __fmaf_rn(d, d, q[b][i]);
	}
	/* Ends the run. */
	__device__ void end(const float *first, int lane)
	{
#pragma unroll
		for (int b = 0; b < BLOCKS; b++) {
			const float sum = sum_of_column(s[b], lane), all = sum_of_column(q[b], lane),
			            mean = sum / count, squares = all - sum * mean;
			column[b].merge({count,
			                 {first[CHUNK * b + 8 * (lane % 4) + lane / 4] + mean},
			                 {squares < 0.0f ? 0.0f : squares}});
		}
		count = 0.0f;
		__syncwarp();
	}
};

/* What the statistics of a block need of shared memory. */
struct warp_moments {
	alignas(16) float first[WARPS][NORM_SIDE];
	float count[WARPS], mean[WARPS][NORM_SIDE], squares[WARPS][NORM_SIDE];
};

/* Stores the moments of this block, one column in each of the first threads. */
template <int BLOCKS>
__device__ void put_moments(const struct column_parts &p, const struct row_moments<BLOCKS> &mine,
                            struct warp_moments &w)
{
	const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
	if (lane == 0)
		w.count[warp] = mine.column[0].count;
#pragma unroll
	for (int b = 0; b < BLOCKS; b++) {
		const int col = CHUNK * b + 8 * (lane % 4) + lane / 4;
		w.mean[warp][col] = mine.column[b].mean[0];
		w.squares[warp][col] = mine.column[b].squares[0];
	}
	__syncthreads();
	if (thread >= p.pitch)
		return;
	float count = 0.0f, sum = 0.0f, squares = 0.0f;
#pragma unroll
	for (int k = 0; k < WARPS; k++) {
		count += w.count[k];
		sum += w.count[k] * w.mean[k][thread];
	}
	const float mean = count > 0.0f ? sum / count : 0.0f;
#pragma unroll
	for (int k = 0; k < WARPS; k++) {
		const float d = w.mean[k][thread] - mean;
		squares += w.squares[k][thread] + w.count[k] * (d * d);
	}
	float *at = p.partial + blockIdx.x * 2 * p.pitch + thread;
	at[0] = mean;
	at[p.pitch] = squares;
}

/* STATISTICS: those of C are wanted. */
template <int CHUNKS, int BLOCKS, bool STATISTICS>
__global__ void __launch_bounds__(BLOCK, STATISTICS ? 2 : 3)
    norm_product_kernel(const __grid_constant__ struct norm_product m)
{
	after_previous();
	__shared__ uint4 b_of[CHUNKS * BLOCKS * 4 * 32]; /* [chunk][block][j][lane] */
	__shared__ alignas(16) struct norm_vectors norm;
	__shared__ struct warp_moments warps;
	__shared__ alignas(16) float bias[NORM_SIDE];
	const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32,
	          g = lane / 4, t = lane % 4;
	const int64_t begin = blockIdx.x * m.parts.each,
	              end = begin + m.parts.each < m.n ? begin + m.parts.each : m.n;
	/* whether the lane's pack of the last chunk, and of the last block, has columns */
	const bool in_a = CHUNK * (CHUNKS - 1) + 8 * t < m.b.k,
	           in_c = CHUNK * (BLOCKS - 1) + 8 * t < m.b.d;
	int64_t row = begin + STEP * warp + g;
	const __half *from = m.a.at + row * m.a.ld + 8 * t;
	__half *to = m.c.at + row * m.c.ld + 8 * t;
	uint4 next[CHUNKS][2];
	const auto read = [&](int64_t r) {
#pragma unroll
		for (int c = 0; c < CHUNKS; c++)
#pragma unroll
			for (int half = 0; half < 2; half++)
				next[c][half] = r + 8 * half < end && (c + 1 < CHUNKS || in_a)
				                    ? load_pack(from + 8 * half * m.a.ld + CHUNK * c)
				                    : make_uint4(0, 0, 0, 0);
		from += STEP * WARPS * m.a.ld;
	};
	read(row);
	m.b.fill(b_of, CHUNKS, BLOCKS, thread, BLOCK);
	for (int i = thread; i < NORM_SIDE; i += BLOCK)
		bias[i] = m.bias && i < m.b.d ? widen(m.bias[i]) : 0.0f;
	if (m.norm.of.mean)
		norm.fill(m.norm.of, m.b.k);
	const int64_t live = rows_that_count(m.norm.live, m.n),
	              counted = rows_that_count(m.counting, end);
	const uint4 keep = keep_first(m.b.k - CHUNK * (CHUNKS - 1) - 8 * t);
	const __half2 floor = floor_of(m.norm.relu);
	float *const first = warps.first[warp];
	struct row_moments<BLOCKS> moments = {
	};
	__syncthreads();

	for (; row - g < end; row += STEP * WARPS, to += STEP * WARPS * m.c.ld) {
		uint4 a[CHUNKS][2];
#pragma unroll
		for (int c = 0; c < CHUNKS; c++) {
			a[c][0] = next[c][0];
			a[c][1] = next[c][1];
			if (m.norm.of.mean) {
				const struct column_pack<8> of = norm.at(CHUNK * c + 8 * t);
				a[c][0] = normalised(a[c][0], of, floor);
				a[c][1] = normalised(a[c][1], of, floor);
			}
		}
		if (row + 8 >= live)
#pragma unroll
			for (int c = 0; c < CHUNKS; c++) {
				a[c][0] = row < live ? a[c][0] : make_uint4(0, 0, 0, 0);
				a[c][1] = make_uint4(0, 0, 0, 0);
			}
		a[CHUNKS - 1][0] = masked(a[CHUNKS - 1][0], keep);
		a[CHUNKS - 1][1] = masked(a[CHUNKS - 1][1], keep);
		read(row + STEP * WARPS);
		/* the rows of this step that count in the statistics */
		const int64_t left = counted - (row - g);
		const int counting = static_cast<int>(left < 0 ? 0 : left < STEP ? left : STEP);
		const bool begins = moments.count == 0.0f;
		if (STATISTICS && counting > 0)
			moments.count += static_cast<float>(counting);
#pragma unroll
		for (int b = 0; b < BLOCKS; b++) {
			float sum[4][4] = {}, low[8], high[8], of[8];
#pragma unroll
			for (int c = 0; c < CHUNKS; c++)
				multiply_chunk(sum, a[c][0], a[c][1], b_of + (c * BLOCKS + b) * 128, lane);
			load<8>(bias + CHUNK * b + 8 * t, of);
#pragma unroll
			for (int i = 0; i < 8; i++) {
				low[i] = __fmaf_rn(m.factor, sum[i / 2][i % 2], of[i]);
				high[i] = __fmaf_rn(m.factor, sum[i / 2][2 + i % 2], of[i]);
			}
			const uint4 stored[2] = {narrow_pack(low), narrow_pack(high)};
			const bool in = b + 1 < BLOCKS || in_c;
			if (in && row < end)
				*reinterpret_cast<uint4 *>(to + CHUNK * b) = stored[0];
			if (in && row + 8 < end)
				*reinterpret_cast<uint4 *>(to + 8 * m.c.ld + CHUNK * b) = stored[1];
			if (!STATISTICS || counting <= 0)
				continue;
			widen_pack(stored[0], low);
			widen_pack(stored[1], high);
			if (begins)
				moments.begin(b, low, high, g < counting, g + 8 < counting, moments.count, first,
				              lane);
			moments.add(b, low, high, g < counting, g + 8 < counting, first, lane);
		}
		if (STATISTICS && moments.count >= STEP * RUN)
			moments.end(first, lane);
	}
	if constexpr (STATISTICS) {
		if (moments.count > 0.0f)
			moments.end(first, lane);
		put_moments(m.parts, moments, warps);
	}
}

typedef void (*norm_product_fn)(struct norm_product);

/* The parts of n rows: whole steps of all warps of a block. */
hg_status lay_parts(hg_context *ctx, int64_t n, int64_t d, bool statistics, struct column_parts *p)
{
	constexpr int64_t ROWS = STEP * WARPS;
	const int64_t steps = (n + ROWS - 1) / ROWS, most = statistics ? PARTS : PARTS_WITHOUT;
	p->each = (steps + most - 1) / most * ROWS;
	p->parts = p->each > 0 ? (n + p->each - 1) / p->each : 0;
	p->pitch = hg__leading(d);
	p->counters = nullptr;
	p->partial = nullptr;
	if (!statistics)
		return HG_OK;
	void *memory;
	HG__TRY(hg__workspace(ctx, hg__cuda_gemm_norm_bytes(d), &memory));
	p->partial = static_cast<float *>(memory);
	return HG_OK;
}

} // namespace

size_t hg__cuda_gemm_norm_bytes(int64_t d)
{
	return static_cast<size_t>(PARTS * 2 * hg__leading(d)) * sizeof(float);
}

hg_status hg__cuda_gemm_norm(hg_context *ctx, const struct hg__gemm_args *a)
{
	static constexpr norm_product_fn kernels[2][2][2] = {
	    {{norm_product_kernel<1, 1, false>, norm_product_kernel<1, 1, true>},
	     {norm_product_kernel<1, 2, false>, norm_product_kernel<1, 2, true>}},
	    {{norm_product_kernel<2, 1, false>, norm_product_kernel<2, 1, true>},
	     {norm_product_kernel<2, 2, false>, norm_product_kernel<2, 2, true>}}};
	if (a->a.rows == 0 || a->trans_a || a->b.dtype != HG_F16 || !is_half_rows(a->a) ||
	    !is_half_rows(a->c) || (a->bias.data && a->bias.dtype != HG_F16))
		return hg__fail(
		    ctx, HG_ERR_UNSUPPORTED,
		    "gemm: a product with a batch norm, [%lld, %lld] to %lld columns; supported "
		    "are f16 in up to %d columns, but not 1, 2 or 4",
		    static_cast<long long>(a->a.rows), static_cast<long long>(a->a.cols),
		    static_cast<long long>(a->c.cols), NORM_SIDE);
	struct norm_product m = {};
	m.a = half_rows_of(a->a);
	m.c = half_rows_of(a->c);
	m.b = short_matrix_of(a->b, a->trans_b != 0);
	m.bias = static_cast<const __half *>(a->bias.data);
	m.n = a->a.rows;
	m.factor = ldexpf(1.0f, a->shift);
	m.norm = norm_before_of(a->normalise);
	const bool statistics = a->statistics.x.data != nullptr;
	m.counting = a->statistics.live;
	HG__TRY(lay_parts(ctx, m.n, m.b.d, statistics, &m.parts));
	HG__TRY(launch(ctx, "gemm: with batch norm", kernels[m.b.k > CHUNK][m.b.d > CHUNK][statistics],
	               static_cast<unsigned>(m.parts.parts), BLOCK, m));
	return statistics ? merge_moments(ctx, m.parts, m.b.d, statistics_of(&a->statistics)) : HG_OK;
}
