/* Attention with additive scores on graphs with tiles (core/plan_tiles.h), by tensor cores: what
 * both passes share. For the 16 rows r of a window, and the columns k that it lists:
 *
 *     all[r, c]  = sum over k of count(mask k, r) w[r, id k] X[id k, c]
 *     plus[r, c] = the same over k with q[r] + k[id k] > 0
 *
 * A warp computes one head of one item. A row of X that several rows of the window use is gathered
 * once. The weights are computed for all 16 x 16 pairs of a group, also where a count is 0, which
 * costs arithmetic that the gathers leave idle.
 *
 * Rows of X are copied to a ring in shared memory, TILE_AHEAD groups before they are used. Weights
 * w are split into two halves, so that sums have their errors only (attention_graphs.cuh):
 *
 *     w = high + low,  |error of w| <= 2^-22 w + 2^-25
 *
 * They are scaled by a power of two before that, which brings the largest near the largest half.
 *
 * A weight of 0 times a value that is not finite would be NaN, also in rows that do not have this
 * neighbour. So an item with such a sum is computed again without these values, and those of
 * neighbours are added one by one. In `plus` all neighbours count then: it is used only to multiply
 * a gradient that such values have spoiled before. */
#ifndef HG_KERNELS_CUDA_ATTENTION_TILES_CUH
#define HG_KERNELS_CUDA_ATTENTION_TILES_CUH

#include "core/plan_tiles.h"
#include "kernels/cuda/attention_graphs.cuh"

/* Entries for each listed column from which these kernels are used. Derived: a group of 16 columns
 * takes about 300 instructions for each head here, of which a multiprocessor issues 4 in a cycle,
 * and about 90 cycles for its gathers as in spmm_tiles.cu (21.8 to 23.5 ps a column, F = 64). An
 * entry takes 1.2 times 8.9 to 9.7 ps in attention_add.cu. With heads of 64 columns that breaks
 * even at a reuse of 2.2 to 2.5; the limit is 3, on the safe side. With narrow heads the
 * instructions take all the time: 20 ps a column for 16 columns of a head, which attention_add.cu
 * computes in 3 ps an entry. That breaks even at 6.7; the limit is 6, rounded down, so a graph
 * between them may lose up to a ninth.
 *
 * Measured at a reuse of 3.9 (planted-ordered, 64 columns, H200): 0.93 and 1.01 ms forward and
 * backward, where attention_add.cu takes 1.18 and 1.23. Kernels that also had dropout took 1.99 and
 * 2.02 with a dropout of 0.5, where it takes 1.53 and 1.47, because a lane drew one mask for each
 * entry. So calls with dropout are left to it. */
static inline double tiles_least_reuse(int64_t head_cols)
{
	return head_cols < 32 ? 6.0 : 3.0;
}

/* Groups of the ring, and how many of them are copied ahead of the one that is used. Derived: with
 * 16 warps on a multiprocessor 96 kB are then on their way, and 36 kB hide the latency of device
 * memory (parts.cuh). */
constexpr int TILE_STAGES = 4, TILE_AHEAD = TILE_STAGES - 1;
constexpr int TILE_WARPS = BLOCK / 32;

/* One orientation of the graph, and the rows that are gathered. */
struct tile_edges {
	const struct hg__tile_item *item;
	const struct hg__tile_split *split;
	int64_t items, splits;
	const int32_t *id;
	const uint32_t *mask;
	const char *x;
	uint32_t pitch; /* bytes from one row of X to the next */
	int32_t rows;
	int cols, head_cols, heads, chunks; /* chunks of D columns of a head */
	float slope;
	/* [16 slots, lead]: the sums of all columns, the sums `plus`, and what each head has, which
	 * begins at column 2 cols */
	float *staging;
	int64_t lead;
};

/* The columns of a staging row, with `each` numbers for each head. */
static inline int64_t tile_lead(int64_t cols, int heads, int each)
{
	return (2 * cols + static_cast<int64_t>(heads) * each + 7) / 8 * 8;
}
static inline size_t tile_staging(const struct hg__csr &csr, int64_t lead)
{
	return hg__tiles_staging(csr.plan->tiles->slots, lead);
}

static inline uint32_t tile_pitch(int64_t ld, size_t element)
{
	return static_cast<uint32_t>(ld) * static_cast<uint32_t>(element);
}

/* The shapes and types that these kernels take, in both passes. x: the rows that are gathered. */
static inline bool tiles_take(const struct hg__attention &of, const struct hg__csr &csr,
                              const struct hg__mat &x)
{
	if (of.score != HG_SCORE_ADD || of.bias.data || of.weight || of.dropout.p > 0.0f || !csr.plan ||
	    !csr.plan->tiles)
		return false;
	const struct hg__tiles &t = *csr.plan->tiles;
	const bool reused = static_cast<double>(csr.m) >=
	                    tiles_least_reuse(of.v.cols / of.heads) * static_cast<double>(t.columns);
	return reused && t.groups <= INT32_MAX / HG__TILE_COLUMNS && is_half(of.v) && is_half(x) &&
	       x.ld <= INT32_MAX / 2 && of.k.ld <= INT32_MAX / 2 && of.q.dtype == HG_F16 &&
	       of.k.dtype == HG_F16 && of.v.cols > 0 && of.v.cols / of.heads % 16 == 0;
}

static inline struct tile_edges tile_edges_of(const struct hg__csr &csr,
                                              const struct hg__attention &of,
                                              const struct hg__mat &x, int each)
{
	const struct hg__tiles &t = *csr.plan->tiles;
	struct tile_edges e = {};
	e.item = t.item, e.split = t.split;
	e.items = t.items, e.splits = t.splits;
	e.id = t.id, e.mask = t.mask;
	e.x = data_of<const char>(x), e.pitch = tile_pitch(x.ld, sizeof(__half));
	e.rows = static_cast<int32_t>(csr.rows);
	e.cols = static_cast<int>(of.v.cols);
	e.heads = of.heads, e.head_cols = e.cols / of.heads;
	e.slope = of.slope;
	e.lead = tile_lead(e.cols, e.heads, each);
	return e;
}

/* ---- device side: a warp ---- */

constexpr float TILE_LOG2E = 1.44269504088896340736f, TILE_LN2 = 0.693147180559945309417f;

/* 2^x, with an error of at most 2^-22 of it; 0 below 2^-126. */
static __device__ inline float power_of_2(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

/* What a warp computes: D columns, from column c of X on, of which `width` exist, for the rows of
 * an item. Lane 4 g + t has rows g and g + 8 of the window. */
struct tile_place {
	struct hg__tile_item item;
	int lane, g, t, head, chunk, c, width;
	int64_t first; /* row of the window */

	__device__ int64_t row(int high) const
	{
		return first + g + 8 * high;
	}
};
template <int D>
static __device__ inline struct tile_place tile_place_of(const struct tile_edges &e, int64_t item)
{
	static_assert(sizeof(struct hg__tile_item) == sizeof(int4), "an item is one load");
	const int4 bits = __ldg(reinterpret_cast<const int4 *>(e.item + item));
	struct tile_place p;
	p.item = {bits.x, bits.y, bits.z, bits.w};
	p.lane = static_cast<int>(threadIdx.x % 32);
	p.g = p.lane / 4, p.t = p.lane % 4;
	p.head = static_cast<int>(blockIdx.y) / e.chunks;
	p.chunk = static_cast<int>(blockIdx.y) % e.chunks;
	p.c = p.head * e.head_cols + p.chunk * D;
	p.width = e.head_cols - p.chunk * D;
	p.first = static_cast<int64_t>(p.item.window) * HG__TILE_ROWS;
	return p;
}

/* The item of this warp. The compiler reads the thread again at each call, so that the item takes
 * no registers in between. */
static __device__ inline int64_t own_tile_item()
{
	unsigned thread;
	asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
	return static_cast<int64_t>(blockIdx.x) * TILE_WARPS + thread / 32;
}

/* The sums of a lane: sums[n] are columns 8 n + 2 t and 8 n + 2 t + 1 of rows g, g, g + 8, g + 8.
 * Without PLUS, `plus` is not used. */
template <int D, bool PLUS> struct tile_sums {
	static constexpr int N = D / 8;
	float all[N][4], plus[PLUS ? N : 1][4];

	__device__ void clear_all()
	{
		clear(all);
		clear(plus);
	}
	/* Multiplies row g + 8 high by by[high]. */
	__device__ void rescale(const float (&by)[2])
	{
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				all[n][e] *= by[e / 2];
				if (PLUS)
					plus[PLUS ? n : 0][e] *= by[e / 2];
			}
	}
	__device__ bool are_spoiled() const
	{
		return any_spoiled(all) || (PLUS && any_spoiled(plus));
	}
};

/* The memory of a warp: the ring, with records of the columns of each group. */
template <int D> constexpr unsigned STAGE_BYTES = HG__TILE_COLUMNS *GRAPH_PITCH<D> * sizeof(__half);
template <int D> constexpr unsigned RING_BYTES = TILE_STAGES *STAGE_BYTES<D>;
template <typename R> constexpr unsigned RECORD_BYTES = HG__TILE_COLUMNS * sizeof(R);
template <int D, typename R>
constexpr unsigned TILE_BYTES = RING_BYTES<D> + TILE_STAGES *RECORD_BYTES<R>;

/* The address of this warp's memory. The compiler must not compute it again at each use. */
template <int D, typename R> static __device__ inline unsigned own_memory()
{
	extern __shared__ uint4 shared[];
	unsigned own = shared_address(shared) + threadIdx.x / 32 * TILE_BYTES<D, R>;
	asm volatile("" : "+r"(own));
	return own;
}
static __device__ inline void store_shared(unsigned at, float x)
{
	asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}
static __device__ inline float2 load_pair(unsigned at)
{
	float2 x;
	asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at) : "memory");
	return x;
}

/* Row i of a matrix whose rows are `pitch` bytes apart. Left to itself, the compiler multiplies two
 * 64-bit numbers. */
static __device__ inline const char *row_of(const char *x, int32_t i, uint32_t pitch)
{
	uint64_t offset;
	asm("mul.wide.u32 %0, %1, %2;" : "=l"(offset) : "r"(i), "r"(pitch));
	return x + offset;
}

/* ---- device side: the ring ---- */

/* Copies of a group: a lane copies 8 columns of ROWS neighbouring rows. Columns that do not exist
 * become 0. */
template <int D> struct tile_copies {
	static constexpr int PACKS = D / 8, ROWS = HG__TILE_COLUMNS * PACKS / 32;
	const char *x;
	unsigned to, bytes;
	int first; /* of the rows */

	__device__ tile_copies(const struct tile_edges &e, const struct tile_place &p, unsigned memory)
	{
		const int col = p.lane % PACKS * 8;
		const bool exists = col < p.width;
		x = e.x + (exists ? p.c + col : 0) * static_cast<int64_t>(sizeof(__half));
		to = memory + static_cast<unsigned>((ROWS * (p.lane / PACKS) * GRAPH_PITCH<D> + col) *
		                                    static_cast<int>(sizeof(__half)));
		bytes = exists ? 16 : 0;
		first = ROWS * (p.lane / PACKS);
		asm volatile("" : "+l"(x)); /* not to be computed again at each use */
	}
	/* id: column lane % 16 of the group */
	__device__ void begin(const struct tile_edges &e, unsigned stage, int32_t id) const
	{
		const unsigned at = to + stage * STAGE_BYTES<D>;
#pragma unroll
		for (int u = 0; u < ROWS; u++)
			asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(
			                 at + static_cast<unsigned>(u) * (STAGE_BYTES<D> / HG__TILE_COLUMNS)),
			             "l"(row_of(x, __shfl_sync(0xffffffffu, id, first + u), e.pitch)),
			             "r"(bytes)
			             : "memory");
	}
};
/* The stage of the group that begins with column `first`. */
static __device__ inline unsigned stage_of(int first)
{
	return static_cast<unsigned>(first / HG__TILE_COLUMNS) % TILE_STAGES;
}
static __device__ inline void commit_copies()
{
	asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int PENDING> static __device__ inline void await_copies()
{
	asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- device side: weights and products ---- */

/* The counts of a lane in a group. Number h, e of its weights is that of row g + 8 (e / 2) and
 * column 8 h + 2 t + e % 2. */
struct tile_counts {
	uint2 mask[2];

	__device__ void load(const struct tile_edges &e, int first, int t)
	{
		const uint2 *const own = reinterpret_cast<const uint2 *>(e.mask + (first + 2 * t));
		mask[0] = __ldg(own);
		mask[1] = __ldg(own + HG__TILE_COLUMNS / 4);
	}
	/* Whether any count of the group is more than 1. */
	__device__ bool repeat() const
	{
		const uint32_t any = mask[0].x | mask[0].y | mask[1].x | mask[1].y;
		return __any_sync(0xffffffffu, (any & 0xAAAAAAAAu) != 0);
	}
	__device__ unsigned at(int h, int e, int g) const
	{
		return (e % 2 ? mask[h].y : mask[h].x) >> (2 * g) >> (16 * (e / 2)) & 3u;
	}
};
/* A count as a number: the lowest mantissa bit of 2^23 is worth 1. */
static __device__ inline float number_of(unsigned count)
{
	return __uint_as_float(count | 0x4B000000u) - 8388608.0f;
}

/* The offset that a lane gives for the right operand: ldmatrix reads rows 0-15, and the same rows 8
 * columns on. */
template <int D> static __device__ inline unsigned tile_offset(int lane)
{
	return static_cast<unsigned>((lane % 16 * GRAPH_PITCH<D> + lane / 16 * 8) *
	                             static_cast<int>(sizeof(__half)));
}

/* 16 x 16 weights as two left operands whose sum they are. */
struct split_weights {
	uint4 high, low;
};
static __device__ inline void split_pair(float x, float y, unsigned &high, unsigned &low)
{
	const __half2 h = __floats2half2_rn(x, y);
	const __half2 l = __floats2half2_rn(x - __low2float(h), y - __high2float(h));
	memcpy(&high, &h, sizeof high);
	memcpy(&low, &l, sizeof low);
}
static __device__ inline struct split_weights split_of(const float (&w)[2][4])
{
	struct split_weights s;
	split_pair(w[0][0], w[0][1], s.high.x, s.low.x);
	split_pair(w[0][2], w[0][3], s.high.y, s.low.y);
	split_pair(w[1][0], w[1][1], s.high.z, s.low.z);
	split_pair(w[1][2], w[1][3], s.high.w, s.low.w);
	return s;
}

/* The weights of a lane, and which of them belong to `plus`: bits of the halves that pairs of
 * weights become. */
struct tile_weights {
	float w[2][4];
	unsigned plus[4];

	__device__ static unsigned bits_of(bool first, bool second)
	{
		return (first ? 0xFFFFu : 0u) | (second ? 0xFFFF0000u : 0u);
	}
};

/* Adds the products of 16 x 16 weights with 16 rows, whose address for this lane is `right`. */
template <int D, bool PLUS>
static __device__ inline void multiply_group(struct tile_sums<D, PLUS> &sums,
                                             const struct tile_weights &of, unsigned right)
{
	const struct split_weights w = split_of(of.w);
	const uint4 h = w.high, l = w.low,
	            hp = make_uint4(h.x & of.plus[0], h.y & of.plus[1], h.z & of.plus[2],
	                            h.w & of.plus[3]),
	            lp = make_uint4(l.x & of.plus[0], l.y & of.plus[1], l.z & of.plus[2],
	                            l.w & of.plus[3]);
#pragma unroll
	for (int n = 0; n < D / 8; n += 2) {
		const uint4 y = load_transposed(right + STEP_BYTES * (n / 2));
		multiply(sums.all[n], h, y.x, y.y);
		multiply(sums.all[n + 1], h, y.z, y.w);
		if constexpr (PLUS) {
			multiply(sums.plus[n], hp, y.x, y.y);
			multiply(sums.plus[n + 1], hp, y.z, y.w);
		}
		multiply(sums.all[n], l, y.x, y.y);
		multiply(sums.all[n + 1], l, y.z, y.w);
		if constexpr (PLUS) {
			multiply(sums.plus[n], lp, y.x, y.y);
			multiply(sums.plus[n + 1], lp, y.z, y.w);
		}
	}
}

/* Adds the values of neighbours in a group that are not finite, and puts 0 in their place. The
 * weight of a neighbour is positive, and has no influence on an infinity. */
template <int D, bool PLUS>
static __device__ void take_spoiled(struct tile_sums<D, PLUS> &sums, unsigned stage,
                                    const uint32_t *mask, const struct tile_place &p)
{
	__half *const x = static_cast<__half *>(__cvta_shared_to_generic(stage));
#pragma unroll 1
	for (int k = 0; k < HG__TILE_COLUMNS; k++) {
		const uint32_t counts = __ldg(mask + k) >> (2 * p.g);
		const bool is_neighbour[2] = {(counts & 3u) != 0, (counts >> 16 & 3u) != 0};
#pragma unroll
		for (int n = 0; n < D / 8; n++)
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const float value = widen(x[k * GRAPH_PITCH<D> + 8 * n + 2 * p.t + e % 2]);
				const float extra = is_neighbour[e / 2] && value - value != 0.0f ? value : 0.0f;
				sums.all[n][e] += extra;
				if (PLUS)
					sums.plus[PLUS ? n : 0][e] += extra;
			}
	}
	__syncwarp();
#pragma unroll 1
	for (int i = p.lane; i < HG__TILE_COLUMNS * D / 8; i += 32) {
		uint4 *const pack =
		    reinterpret_cast<uint4 *>(x + i / (D / 8) * GRAPH_PITCH<D> + i % (D / 8) * 8);
		*pack = only_finite(*pack);
	}
	__syncwarp();
}

/* ---- device side: an item ---- */

/* Adds the groups of an item. OWN has what a pass needs for its weights:
 *
 *     look_up(j, at)    begins to load the record of column j, which goes to `at`
 *     turn(record, at)  stores there what look_up has returned
 *     weigh(counts, at, sums, w)
 *                       computes the weights of a group, from the records of its columns, after it
 *                       has rescaled the sums if it must
 *
 * While one group is multiplied, the counts of the next one are loaded, and rows and records
 * TILE_AHEAD groups ahead. */
template <int D, bool PLUS, typename OWN>
static __device__ inline void add_groups(const struct tile_edges &e, const struct tile_place &p,
                                         unsigned memory, bool clean, OWN &own,
                                         struct tile_sums<D, PLUS> &sums)
{
	constexpr int COLUMNS = HG__TILE_COLUMNS, AHEAD = TILE_AHEAD * COLUMNS;
	constexpr unsigned RECORDS = RECORD_BYTES<typename OWN::record>;
	const int begin = p.item.group * COLUMNS, end = begin + p.item.groups * COLUMNS,
	          last = end - COLUMNS, of_lane = p.lane % COLUMNS;
	if (begin == end)
		return;
	struct tile_copies<D> copies(e, p, memory);
	const unsigned records = memory + RING_BYTES<D>, right = memory + tile_offset<D>(p.lane),
	               own_record = records + static_cast<unsigned>(of_lane) * (RECORDS / COLUMNS);
	typename OWN::loaded record[TILE_AHEAD];
	struct tile_counts next_counts;
	__syncwarp(); /* the memory is free */
#pragma unroll
	for (int s = 0; s < TILE_AHEAD; s++) {
		const int first = begin + s * COLUMNS;
		const int32_t id = __ldg(e.id + (min(first, last) + of_lane));
		copies.begin(e, stage_of(first), id);
		record[s] = own.look_up(id, own_record + stage_of(first) * RECORDS);
		commit_copies();
	}
	next_counts.load(e, begin, p.t);
	int32_t next = __ldg(e.id + (min(begin + AHEAD, last) + of_lane));
#pragma unroll
	for (int s = 0; s + 1 < TILE_AHEAD; s++)
		own.turn(record[s], own_record + stage_of(begin + s * COLUMNS) * RECORDS);
#pragma unroll 1
	for (int first = begin; first < end; first += COLUMNS) {
		const unsigned stage = stage_of(first), ahead = stage_of(first + AHEAD);
		await_copies<TILE_AHEAD - 1>();
		own.turn(record[TILE_AHEAD - 1], own_record + stage_of(first + AHEAD - COLUMNS) * RECORDS);
		__syncwarp();
		if (first + AHEAD < end)
			copies.begin(e, ahead, next);
		record[TILE_AHEAD - 1] = own.look_up(next, own_record + ahead * RECORDS);
		commit_copies();
		next = __ldg(e.id + (min(first + AHEAD + COLUMNS, last) + of_lane));
		const struct tile_counts counts = next_counts;
		next_counts.load(e, min(first + COLUMNS, last), p.t);
		if (clean)
			take_spoiled(sums, memory + stage * STAGE_BYTES<D>, e.mask + first, p);
		struct tile_weights w;
		own.weigh(counts, records + stage * RECORDS, sums, w);
		multiply_group(sums, w, right + stage * STAGE_BYTES<D>);
	}
	await_copies<0>(); /* the memory may be used again */
}

/* Computes the sums of an item, a second time if values are not finite. */
template <int D, bool PLUS, typename OWN>
static __device__ inline void add_item(const struct tile_edges &e, const struct tile_place &p,
                                       unsigned memory, OWN &own, struct tile_sums<D, PLUS> &sums)
{
	bool clean = false;
#pragma unroll 1
	do {
		own.restart();
		sums.clear_all();
		add_groups(e, p, memory, clean, own, sums);
		clean = !clean && sums.are_spoiled();
	} while (clean);
}

/* ---- device side: results ---- */

/* Stores a row's sums in its place of a staging slot, from column `to` on. */
template <int D, int N>
static __device__ inline void stage_tile(const struct tile_edges &e, const struct tile_place &p,
                                         int to, const float (&sums)[N][4])
{
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int high = 0; high < 2; high++) {
			const int col = 8 * n + 2 * p.t;
			const int64_t row = static_cast<int64_t>(p.item.slot) * HG__TILE_ROWS + p.g + 8 * high;
			if (col < p.width)
				*reinterpret_cast<float2 *>(e.staging + row * e.lead + to + p.c + col) =
				    make_float2(sums[n][2 * high], sums[n][2 * high + 1]);
		}
}

/* Number n of a row's head in a staging slot. */
static __device__ inline float *tile_number(const struct tile_edges &e, int64_t slot, int row,
                                            int n, int head)
{
	return e.staging + (slot * HG__TILE_ROWS + row) * e.lead + 2 * e.cols +
	       static_cast<int64_t>(n) * e.heads + head;
}

/* Stores the warp's rows as halves, by way of shared memory, in packs of 8 columns. */
template <int D, int N>
static __device__ inline void put_tile(const struct tile_edges &e, const struct tile_place &p,
                                       unsigned own, const float (&sums)[N][4], __half *to,
                                       int64_t ld)
{
	__half *const memory = static_cast<__half *>(__cvta_shared_to_generic(own));
	__syncwarp();
#pragma unroll
	for (int n = 0; n < N; n++)
#pragma unroll
		for (int high = 0; high < 2; high++)
			*reinterpret_cast<__half2 *>(memory + (p.g + 8 * high) * GRAPH_PITCH<D> + 8 * n +
			                             2 * p.t) =
			    __floats2half2_rn(sums[n][2 * high], sums[n][2 * high + 1]);
	__syncwarp();
#pragma unroll
	for (int i = p.lane; i < HG__TILE_ROWS * (D / 8); i += 32) {
		const int row = i / (D / 8), col = i % (D / 8) * 8;
		if (p.first + row < e.rows && col < p.width)
			*reinterpret_cast<uint4 *>(to + (p.first + row) * ld + p.c + col) =
			    *reinterpret_cast<const uint4 *>(memory + row * GRAPH_PITCH<D> + col);
	}
}

/* ---- launch ---- */

/* Queues a kernel with a warp for each item, head and chunk. */
template <int D, typename R, typename P>
HG_NODISCARD static inline hg_status launch_tiles(hg_context *ctx, const char *what,
                                                  void (*kernel)(P), const struct tile_edges &e,
                                                  const P &problem)
{
	constexpr size_t bytes = TILE_WARPS * TILE_BYTES<D, R>;
	const dim3 grid(grid_for(e.items, TILE_WARPS), static_cast<unsigned>(e.heads * e.chunks));
	const void *const function = reinterpret_cast<const void *>(kernel);
	void *pointers[] = {const_cast<void *>(static_cast<const void *>(&problem))};
	HG__TRY(allow_shared(ctx, function, bytes));
	return cuda_status(ctx, queue_kernel(ctx, function, 1, grid, BLOCK, pointers, bytes), what);
}

#endif
