/* The gradients of attention with additive scores by tensor cores, where the transpose has tiles
 * (attention_tiles.cuh). The equations are those of attention_add_back.cu, which also computes dq.
 * For a column j of the graph, which is a row of the transpose, and G = dY:
 *
 *     Z[j, c] = sum over the edges (i, j) of p G[i, c],  Z_plus the same where q + k > 0
 *     dV = Z,  dk[j, k] = <V_j, slope Z_j + (1 - slope) Z_plus_j> - sum of f' p D[i, k]
 *
 * A pass over nodes leaves {q, log_sum, D} of each row and head. Scores are in units of log 2. */

#include "kernels/cuda/attention_tiles.cuh"

namespace
{

/* p <= 1 counts at most HG__TILE_MOST times, and is scaled by 2^SCALE: 49152, which is a half. So
 * the error of p is at most 2^-22 of it and 2^-39. Sums fit in f32: 49152 times a D of 2^40 times
 * 2^40 entries is 6e28. */
constexpr float SCALE = 14.0f, SCALED_1 = 1 << 14;
static_assert(HG__TILE_MOST * (1 << 14) <= 65504, "a weight is a half");

/* The sum of f' p D in a staging slot. */
enum { REST = 0, NUMBERS = 1 };
static_assert(int{NUMBERS} <= int{HG__ATTENTION_STAGED}, "graphs leave memory for so many");

/* Columns of a head: those of one chunk, because dk is a product over all of them. */
constexpr int WIDEST = 64;

struct backward {
	struct tile_edges e; /* of the transpose; X is dY */
	int64_t rows;        /* of the graph */
	const __half *q, *k, *v, *y;
	int64_t ldq, ldk, ldv, ldy;
	const float *log_sum;
	int64_t ld_log_sum;
	float4 *records; /* [rows, heads]: q, log_sum less SCALE, D */
	__half *dk, *dv; /* NULL: absent */
	int64_t lddk, lddv;
	bool joined; /* dk is dq, whose gradient is there already */
};

/* ---- pass 1: nodes ---- */

constexpr int NODE_LANES = WIDEST / 8;

__global__ void __launch_bounds__(BLOCK) node_records(const __grid_constant__ struct backward p)
{
	after_previous();
	const int64_t unit = global_thread() / NODE_LANES, row = unit / p.e.heads;
	const int head = static_cast<int>(unit % p.e.heads),
	          c = static_cast<int>(threadIdx.x) % NODE_LANES * 8;
	float d = 0.0f;
	if (row < p.rows && c < p.e.head_cols) {
		const int64_t at = static_cast<int64_t>(head) * p.e.head_cols + c;
		float g[8], y[8];
		load<8>(reinterpret_cast<const __half *>(p.e.x + row * p.e.pitch) + at, g);
		load<8>(p.y + row * p.ldy + at, y);
#pragma unroll
		for (int i = 0; i < 8; i++)
			d = __fmaf_rn(g[i], y[i], d);
	}
	d = lanes_sum<NODE_LANES>(d);
	if (row >= p.rows || c != 0)
		return;
	const float log_sum = p.log_sum[row * p.ld_log_sum + head];
	/* where no edge of a row counts, p is 0 */
	const float offset = log_sum == -INFINITY ? INFINITY : TILE_LOG2E * log_sum - SCALE;
	p.records[unit] = make_float4(widen(p.q[row * p.ldq + head]), offset, d, 0.0f);
}

/* ---- weights ---- */

__device__ float4 load_record(unsigned at)
{
	float4 r;
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
	             : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
	             : "r"(at)
	             : "memory");
	return r;
}

/* What a lane has of its two rows, and the records of columns. */
template <int D, bool PLUS> struct backward_own {
	using record = float4;
	struct loaded {
	};
	const struct backward &p;
	const struct tile_place &at;
	float k[2], rest[2];

	__device__ backward_own(const struct backward &problem, const struct tile_place &place)
	    : p(problem), at(place)
	{
#pragma unroll
		for (int high = 0; high < 2; high++)
			k[high] =
			    at.row(high) < p.e.rows ? widen(__ldg(p.k + at.row(high) * p.ldk + at.head)) : 0.0f;
	}
	__device__ void restart()
	{
		rest[0] = rest[1] = 0.0f;
	}
	/* Two lanes have the same column, of which one copies the record. */
	__device__ loaded look_up(int32_t i, unsigned to) const
	{
		const float4 *const from = p.records + static_cast<int64_t>(i) * p.e.heads + at.head;
		if (at.lane < HG__TILE_COLUMNS)
			asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from)
			             : "memory");
		return {};
	}
	__device__ void turn(loaded, unsigned) const
	{
	}
	/* Rounding may put p above 1, and gradients that are bounded by a proof need p <= 1. */
	__device__ void weigh(const struct tile_counts &counts, unsigned records,
	                      struct tile_sums<D, PLUS> &, struct tile_weights &out)
	{
		float(&w)[2][4] = out.w, f[2][4];
		const bool repeat = counts.repeat();
#pragma unroll
		for (int n = 0; n < 4; n++) {
			const int h = n / 2, odd = n % 2;
			const float4 r =
			    load_record(records + static_cast<unsigned>((8 * h + 2 * at.t + odd) * 16));
#pragma unroll
			for (int high = 0; high < 2; high++) {
				const int e = 2 * high + odd;
				const float x = r.x + k[high], s = TILE_LOG2E * fmaxf(x, p.e.slope * x);
				const unsigned count = counts.at(h, e, at.g);
				float each = power_of_2(s - r.y);
				each = each > SCALED_1 ? SCALED_1 : each;
				w[h][e] = count ? each : 0.0f;
				if (repeat)
					w[h][e] *= number_of(count);
				f[h][e] = x;
				const float share = x > 0.0f ? w[h][e] : p.e.slope * w[h][e];
				rest[high] = count ? __fmaf_rn(share, r.z, rest[high]) : rest[high];
			}
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
			out.plus[i] =
			    tile_weights::bits_of(f[i / 2][i % 2 * 2] > 0.0f, f[i / 2][i % 2 * 2 + 1] > 0.0f);
	}
};

/* ---- the end of a column ---- */

/* What brings sums of scaled weights to their scale. */
constexpr float UNSCALED = 1.0f / SCALED_1;
/* rest: the scaled sum of f' p D. */
__device__ void put_dk(const struct backward &p, int64_t j, int head, float dot, float rest)
{
	__half *const to = p.dk + j * p.lddk + head;
	const float dk = dot - rest / SCALED_1;
	*to = narrow<__half>(p.joined ? dk + widen(*to) : dk);
}

/* <V_j, slope Z_j + (1 - slope) Z_plus_j> over the columns of this lane. */
template <int D, int N>
__device__ float product_with_v(const struct backward &p, const struct tile_place &at, int high,
                                const float (&z)[N][4], const float (&z_plus)[N][4])
{
	float dot = 0.0f;
	const __half *const v = p.v + at.row(high) * p.ldv + at.c + 2 * at.t;
#pragma unroll
	for (int n = 0; n < N; n++) {
		if (8 * n + 2 * at.t >= at.width)
			break;
		const float2 of_v = __half22float2(__ldg(reinterpret_cast<const __half2 *>(v + 8 * n)));
#pragma unroll
		for (int odd = 0; odd < 2; odd++) {
			const int e = 2 * high + odd;
			const float by = __fmaf_rn(1.0f - p.e.slope, z_plus[n][e], p.e.slope * z[n][e]);
			dot = __fmaf_rn(odd ? of_v.y : of_v.x, by, dot);
		}
	}
	return dot;
}

/* ---- pass 2: items ---- */

template <int D, bool PLUS>
__global__ void __launch_bounds__(BLOCK, 2)
    backward_tiles(const __grid_constant__ struct backward p)
{
	after_previous();
	const unsigned memory = own_memory<D, float4>();
	if (own_tile_item() >= p.e.items)
		return;
	const struct tile_place begin = tile_place_of<D>(p.e, own_tile_item());
	struct backward_own<D, PLUS> own(p, begin);
	struct tile_sums<D, PLUS> sums;
	add_item(p.e, begin, memory, own, sums);
	const struct tile_place at = tile_place_of<D>(p.e, own_tile_item());
	const float rest[2] = {lanes_sum<4>(own.rest[0]), lanes_sum<4>(own.rest[1])};
	if (at.item.slot >= 0) {
		stage_tile<D>(p.e, at, 0, sums.all);
		if constexpr (PLUS)
			stage_tile<D>(p.e, at, p.e.cols, sums.plus);
#pragma unroll
		for (int high = 0; high < 2; high++)
			if (at.t == 0)
				*tile_number(p.e, at.item.slot, at.g + 8 * high, REST, at.head) = rest[high];
		return;
	}
	const float by[2] = {UNSCALED, UNSCALED};
	sums.rescale(by);
	if constexpr (PLUS) {
#pragma unroll
		for (int high = 0; high < 2; high++) {
			const bool exists = at.row(high) < p.e.rows;
			const float dot =
			    lanes_sum<4>(exists ? product_with_v<D>(p, at, high, sums.all, sums.plus) : 0.0f);
			if (exists && at.t == 0)
				put_dk(p, at.row(high), at.head, dot, rest[high]);
		}
	}
	if (p.dv)
		put_tile<D>(p.e, at, memory, sums.all, p.dv, p.lddv);
}

/* ---- pass 3: windows of several items. A warp adds one head of one row, a lane two columns of
 * ---- it */

__global__ void __launch_bounds__(BLOCK) backward_fold(const __grid_constant__ struct backward p)
{
	after_previous();
	const struct tile_edges &e = p.e;
	const int64_t piece = own_piece() / e.heads, s = piece / HG__TILE_ROWS;
	const int index = static_cast<int>(piece % HG__TILE_ROWS),
	          head = static_cast<int>(own_piece() % e.heads),
	          col = 2 * static_cast<int>(threadIdx.x), c = head * e.head_cols + col;
	if (s >= e.splits)
		return;
	const struct hg__tile_split split = e.split[s];
	const int64_t j = static_cast<int64_t>(split.window) * HG__TILE_ROWS + index;
	if (j >= e.rows)
		return;
	float2 z = make_float2(0.0f, 0.0f), z_plus = z;
	float rest = 0.0f;
	for (int64_t slot = split.first; slot < split.last; slot++) {
		const float *const sums = e.staging + (slot * HG__TILE_ROWS + index) * e.lead + c;
		rest += *tile_number(e, slot, index, REST, head);
		if (col >= e.head_cols)
			continue;
		const float2 a = *reinterpret_cast<const float2 *>(sums);
		z.x += a.x, z.y += a.y;
		if (!p.dk)
			continue;
		const float2 b = *reinterpret_cast<const float2 *>(sums + e.cols);
		z_plus.x += b.x, z_plus.y += b.y;
	}
	const float by = UNSCALED, slope = e.slope;
	z.x *= by, z.y *= by, z_plus.x *= by, z_plus.y *= by;
	float dot = 0.0f;
	if (p.dk && col < e.head_cols) {
		const float2 v =
		    __half22float2(__ldg(reinterpret_cast<const __half2 *>(p.v + j * p.ldv + c)));
		dot = v.x * __fmaf_rn(1.0f - slope, z_plus.x, slope * z.x) +
		      v.y * __fmaf_rn(1.0f - slope, z_plus.y, slope * z.y);
	}
	dot = lanes_sum<32>(dot);
	if (p.dk && threadIdx.x == 0)
		put_dk(p, j, head, dot, rest);
	if (p.dv && col < e.head_cols)
		*reinterpret_cast<__half2 *>(p.dv + j * p.lddv + c) = __floats2half2_rn(z.x, z.y);
}

/* ---- launch ---- */

struct backward backward_of(const struct hg__attention_back_args *a)
{
	struct backward p = {};
	p.e = tile_edges_of(a->csr_t, a->of, a->dy, NUMBERS);
	p.e.chunks = 1;
	p.rows = a->y.rows;
	p.q = data_of<const __half>(a->of.q), p.ldq = a->of.q.ld;
	p.k = data_of<const __half>(a->of.k), p.ldk = a->of.k.ld;
	p.v = data_of<const __half>(a->of.v), p.ldv = a->of.v.ld;
	p.y = data_of<const __half>(a->y), p.ldy = a->y.ld;
	p.log_sum = data_of<const float>(a->log_sum), p.ld_log_sum = a->log_sum.ld;
	p.dk = data_of<__half>(a->dk), p.lddk = a->dk.ld;
	p.dv = data_of<__half>(a->dv), p.lddv = a->dv.ld;
	p.joined = a->dq.data && a->dk.data == a->dq.data;
	return p;
}

template <int D, bool PLUS> hg_status queue_backward(hg_context *ctx, const struct backward &p)
{
	HG__TRY(
	    (launch_tiles<D, float4>(ctx, "attention_back: tiles", backward_tiles<D, PLUS>, p.e, p)));
	if (p.e.splits == 0)
		return HG_OK;
	const struct edge_grid splits = edge_grid_of(p.e.splits * HG__TILE_ROWS * p.e.heads, 32);
	return launch(ctx, "attention_back: fold of tiles", backward_fold, splits.grid, splits.block,
	              p);
}

size_t records_bytes(const struct hg__attention_back_args *a)
{
	return (static_cast<size_t>(a->y.rows * a->of.heads) * sizeof(float4) + 255) / 256 * 256;
}

/* The call that computes dq alone. */
struct hg__attention_back_args for_dq(const struct hg__attention_back_args *a)
{
	struct hg__attention_back_args only = *a;
	only.dk = only.dv = {};
	return only;
}

} // namespace

bool hg__cuda_attention_back_tiles_takes(const struct hg__attention_back_args *a)
{
	const auto fits = [](const struct hg__mat &m) { return !m.data || is_half(m); };
	return (a->dk.data || a->dv.data) && tiles_take(a->of, a->csr_t, a->dy) &&
	       a->of.v.cols / a->of.heads <= WIDEST && is_half(a->y) && fits(a->dv) && fits(a->plus) &&
	       !a->dbias.data;
}

size_t hg__cuda_attention_back_tiles_workspace(const hg_context *ctx,
                                               const struct hg__attention_back_args *a)
{
	const struct hg__attention_back_args only_dq = for_dq(a);
	return hg__larger(hg__cuda_attention_back_add_workspace(ctx, &only_dq),
	                  records_bytes(a) +
	                      tile_staging(a->csr_t, tile_lead(a->of.v.cols, a->of.heads, NUMBERS)));
}

hg_status hg__cuda_attention_back_tiles(hg_context *ctx, const struct hg__attention_back_args *a)
{
	void *memory = nullptr;
	if (a->dq.data) {
		const struct hg__attention_back_args only_dq = for_dq(a);
		HG__TRY(hg__cuda_attention_back_add(ctx, &only_dq));
	}
	HG__TRY(hg__workspace(ctx, hg__cuda_attention_back_tiles_workspace(ctx, a), &memory));
	struct backward p = backward_of(a);
	p.records = static_cast<float4 *>(memory);
	p.e.staging = reinterpret_cast<float *>(static_cast<char *>(memory) + records_bytes(a));
	if (p.rows > 0)
		HG__TRY(launch(ctx, "attention_back: nodes", node_records,
		               grid_for(p.rows * p.e.heads, BLOCK / NODE_LANES), BLOCK, p));
	const bool narrow_heads = p.e.head_cols <= 32;
	if (p.dk)
		return narrow_heads ? queue_backward<32, true>(ctx, p) : queue_backward<64, true>(ctx, p);
	return narrow_heads ? queue_backward<32, false>(ctx, p) : queue_backward<64, false>(ctx, p);
}
