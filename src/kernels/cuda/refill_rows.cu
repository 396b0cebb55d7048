/* The arrays of a graph that is refilled, without a sort of the whole list:
 *
 *     count      edges of the list in each row of both orientations: integers, so that the order of
 *                the additions does not matter
 *     scan       rowptr, rowptr_t. Self loops and padding are not counted: how many a row has
 *                follows from its number
 *     deal       each edge to any place of its row, as key = src 2^32 + e
 *     settle     each row is sorted by its keys. Its columns and weights are then known, and so is
 *                the place p of each edge, which is dealt to the transpose as key = dst 2^32 + p
 *     settle     the rows of the transpose, and what belongs to nodes
 *
 * A row is sorted by the threads that own it, so that nothing but the length of the longest row
 * limits the speed. A row that is longer than what is promised stays in any order: the step on it
 * is skipped. */

#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "kernels/cuda/refill.cuh"

namespace
{

/* Blocks of scan have 1,024 threads with four rows each. Each block adds up the counts of all rows
 * before its own, which costs less than another kernel up to MOST_ROWS. MOST_EDGES: an H200 takes,
 * this way and by a sort of the list, 0.025 and 0.072 ms for 10,556 edges, 0.037 and 0.108 for
 * 154,828, 0.106 and 0.160 for 619,316 in 294,912 rows, 0.122 and 0.115 for 491,722 with rows of
 * up to 1,256, and 0.282 and 0.283 for 2,000,000. */
constexpr int SCAN_BLOCK = 1024, SCAN_ROWS = 4 * SCAN_BLOCK;
constexpr int64_t MOST_ROWS = int64_t(1) << 19, MOST_EDGES = int64_t(1) << 21;

/* A team of threads sorts rows of up to SHORT_ROW edges. A block sorts those of up to BLOCK by the
 * rank of each key, and those of up to LONG_ROW by a merge sort. */
constexpr int TEAM = 8, TEAMS = BLOCK / TEAM, SHORT_ROW = 32, ITEMS = 8, LONG_ROW = ITEMS * BLOCK;

struct rows_memory {
	int32_t *count[2]; /* [rows] each, and a multiple of four */
	uint64_t *key[2];  /* [edges] each */
	size_t bytes;
};

__host__ __device__ int64_t counts_of(const struct hg__refill &r)
{
	return (r.rows + 3) / 4 * 4;
}

rows_memory lay_out(const struct hg__refill &r)
{
	rows_memory m = {};
	const size_t keys = hg__aligned(static_cast<size_t>(r.edges) * sizeof(uint64_t));
	char *const memory = static_cast<char *>(r.scratch);
	m.key[0] = reinterpret_cast<uint64_t *>(memory);
	m.key[1] = reinterpret_cast<uint64_t *>(memory + keys);
	m.count[0] = reinterpret_cast<int32_t *>(memory + 2 * keys);
	m.count[1] = m.count[0] + counts_of(r);
	m.bytes = 2 * keys + 2 * static_cast<size_t>(counts_of(r)) * sizeof(int32_t);
	return m;
}

__global__ void clear_counts(const __grid_constant__ struct hg__refill r, int32_t *count)
{
	for (int64_t k = global_thread(); k < 2 * counts_of(r); k += global_threads())
		count[k] = 0;
	if (global_thread() == 0)
		put_counts(r);
}

__global__ void count_edges(const __grid_constant__ struct hg__refill r, int32_t *count,
                            int32_t *count_t)
{
	const int64_t edges = listed_in(r).edges;
	for (int64_t e = global_thread(); e < edges; e += global_threads()) {
		const struct hg__refill_edge edge = hg__refill_edge_at(&r, e);
		if (edge.broken != HG__PROMISES_KEPT) {
			keep_least(r.broken, edge.broken);
			continue;
		}
		atomicAdd(count + edge.dst, 1);
		atomicAdd(count_t + edge.src, 1);
	}
}

/* Edges that break a promise are not counted. They belong to the last row, which ends where the
 * complete list does. */
__global__ void __launch_bounds__(SCAN_BLOCK)
    scan_rows(const __grid_constant__ struct hg__refill r, const int32_t *count,
              const int32_t *count_t)
{
	using reduce = cub::BlockReduce<int64_t, SCAN_BLOCK>;
	using scan = cub::BlockScan<int64_t, SCAN_BLOCK>;
	__shared__ union {
		typename reduce::TempStorage reduce;
		typename scan::TempStorage scan;
	} temporary;
	__shared__ int64_t before;
	const listed l = listed_in(r);
	int64_t *const rowptr = blockIdx.y ? r.to.rowptr_t : r.to.rowptr;
	const int4 *const four = reinterpret_cast<const int4 *>(blockIdx.y ? count_t : count);
	const int64_t begin = static_cast<int64_t>(blockIdx.x) * SCAN_ROWS, fours = counts_of(r) / 4;
	int64_t sum = 0;
#pragma unroll 4
	for (int64_t k = threadIdx.x; k < begin / 4; k += SCAN_BLOCK) {
		const int4 c = four[k];
		sum += c.x + c.y + c.z + c.w;
	}
	sum = reduce(temporary.reduce).Sum(sum);
	if (threadIdx.x == 0)
		before = sum;
	__syncthreads();
	const int64_t own = begin / 4 + threadIdx.x;
	const int4 c = own < fours ? four[own] : make_int4(0, 0, 0, 0);
	int64_t at[4] = {c.x, c.y, c.z, c.w};
	scan(temporary.scan).ExclusiveSum(at, at);
	for (int k = 0; k < 4; k++) {
		const int64_t i = 4 * own + k;
		if (i < r.rows)
			rowptr[i] = before + at[k] + unlisted_before(r, l, i);
		if (i == r.rows - 1)
			rowptr[r.rows] = r.edges;
	}
}

/* A place of row i that nobody has taken; its self loop takes the last one. The counts go down to 0
 * again. */
__device__ int64_t take_place(const int64_t *rowptr, int32_t *count, int64_t i)
{
	return rowptr[i] + atomicSub(count + i, 1) - 1;
}

__device__ uint64_t key_of(int64_t node, int64_t number)
{
	return static_cast<uint64_t>(node) << 32 | static_cast<uint64_t>(number);
}

__global__ void deal_edges(const __grid_constant__ struct hg__refill r, int32_t *count,
                           uint64_t *key)
{
	const listed l = listed_in(r);
	for (int64_t e = global_thread(); e < l.edges + l.loops; e += global_threads()) {
		const struct hg__refill_edge edge = hg__refill_edge_at(&r, e);
		if (edge.broken != HG__PROMISES_KEPT)
			continue;
		const int64_t place =
		    e < l.edges ? take_place(r.to.rowptr, count, edge.dst) : r.to.rowptr[edge.dst + 1] - 1;
		key[place] = key_of(edge.src, e);
	}
}

/* Row i of the forward orientation has been sorted, and this is the key of its place p. */
struct put_forward {
	struct hg__refill r;
	int32_t *count_t;
	uint64_t *key_t;

	__device__ const int64_t *rowptr() const
	{
		return r.to.rowptr;
	}
	__device__ void edge(int64_t i, int64_t p, uint64_t key) const
	{
		const int64_t col = static_cast<int64_t>(key >> 32), e = static_cast<uint32_t>(key),
		              edges = hg__refill_within(r.live[1], r.listed);
		r.to.col[p] = static_cast<int32_t>(col);
		if (r.to.weight)
			put_weight(r, p, e < edges ? r.list_weight[e] : 1.0f);
		const int64_t q =
		    e < edges ? take_place(r.to.rowptr_t, count_t, col) : r.to.rowptr_t[col + 1] - 1;
		key_t[q] = key_of(i, p);
	}
	__device__ void node(int64_t) const
	{
	}
	/* A row of padding has edges to itself alone. */
	__device__ void padding(int64_t i, int64_t p) const
	{
		r.to.col[p] = static_cast<int32_t>(i);
		if (r.to.weight)
			put_weight(r, p, 0.0f);
	}
};

struct put_transposed {
	struct hg__refill r;

	__device__ const int64_t *rowptr() const
	{
		return r.to.rowptr_t;
	}
	__device__ void edge(int64_t, int64_t q, uint64_t key) const
	{
		r.to.col_t[q] = static_cast<int32_t>(key >> 32);
		r.to.edge_t[q] = static_cast<uint32_t>(key);
	}
	__device__ void node(int64_t i) const
	{
		put_node(r, i);
	}
	__device__ void padding(int64_t i, int64_t q) const
	{
		r.to.col_t[q] = static_cast<int32_t>(i);
		r.to.edge_t[q] = static_cast<uint32_t>(r.to.rowptr[i] + q - r.to.rowptr_t[i]);
	}
};

/* Keys of a row differ, so the number of smaller ones is a key's place. */
template <class Put>
__device__ void settle_short(const Put &put, int64_t i, int64_t begin, int length,
                             const uint64_t *key)
{
	for (int k = threadIdx.x % TEAM; k < length; k += TEAM) {
		const uint64_t own = key[begin + k];
		int rank = 0;
		for (int other = 0; other < length; other++)
			rank += key[begin + other] < own;
		put.edge(i, begin + rank, own);
	}
}

struct less {
	__device__ bool operator()(uint64_t a, uint64_t b) const
	{
		return a < b;
	}
};
using merge_sort = cub::BlockMergeSort<uint64_t, BLOCK, ITEMS>;

union sort_memory {
	uint64_t key[BLOCK];
	typename merge_sort::TempStorage merge;
};

template <class Put>
__device__ void settle_by_rank(const Put &put, int64_t i, int64_t begin, int length,
                               const uint64_t *key, sort_memory &memory)
{
	const int k = threadIdx.x;
	if (k < length)
		memory.key[k] = key[begin + k];
	__syncthreads();
	if (k < length) {
		int rank = 0;
		for (int other = 0; other < length; other++)
			rank += memory.key[other] < memory.key[k];
		put.edge(i, begin + rank, memory.key[k]);
	}
	__syncthreads();
}

template <class Put>
__device__ void settle_by_merging(const Put &put, int64_t i, int64_t begin, int length,
                                  const uint64_t *key, sort_memory &memory)
{
	uint64_t own[ITEMS];
	const int first = ITEMS * static_cast<int>(threadIdx.x);
	for (int k = 0; k < ITEMS; k++)
		own[k] = first + k < length ? key[begin + first + k] : UINT64_MAX;
	if (length <= LONG_ROW)
		merge_sort(memory.merge).Sort(own, less(), length, UINT64_MAX);
	for (int k = 0; k < ITEMS; k++)
		if (first + k < length)
			put.edge(i, begin + first + k, own[k]);
	/* a row that breaks the promise of its degree */
	for (int64_t k = LONG_ROW + threadIdx.x; k < length; k += BLOCK)
		put.edge(i, begin + k, key[begin + k]);
	__syncthreads();
}

/* Each team settles one row, and the block together those that are too long for a team. */
template <class Put>
__global__ void __launch_bounds__(BLOCK)
    settle_rows(const __grid_constant__ Put put, const uint64_t *key)
{
	__shared__ sort_memory memory;
	__shared__ int longer[TEAMS], count;
	const struct hg__refill &r = put.r;
	const int64_t *const rowptr = put.rowptr();
	const int team = static_cast<int>(threadIdx.x) / TEAM;
	const int64_t nodes = hg__refill_within(r.live[0], r.nodes),
	              first = static_cast<int64_t>(blockIdx.x) * TEAMS, row = first + team;
	if (threadIdx.x == 0)
		count = 0;
	__syncthreads();
	if (row < r.rows) {
		const int64_t begin = rowptr[row], end = rowptr[row + 1];
		if (threadIdx.x % TEAM == 0)
			put.node(row);
		if (row >= nodes)
			for (int64_t p = begin + threadIdx.x % TEAM; p < end; p += TEAM)
				put.padding(row, p);
		else if (end - begin <= SHORT_ROW)
			settle_short(put, row, begin, static_cast<int>(end - begin), key);
		else if (threadIdx.x % TEAM == 0)
			longer[atomicAdd(&count, 1)] = team;
	}
	__syncthreads();
	for (int k = 0; k < count; k++) {
		const int64_t i = first + longer[k], begin = rowptr[i];
		const int length = static_cast<int>(rowptr[i + 1] - begin);
		if (length <= BLOCK)
			settle_by_rank(put, i, begin, length, key, memory);
		else
			settle_by_merging(put, i, begin, length, key, memory);
	}
}

} // namespace

bool refill_rows_suits(const struct hg__refill *r)
{
	return r->edges == 0 ||
	       (r->rows <= MOST_ROWS && r->edges <= MOST_EDGES && r->max_degree <= LONG_ROW);
}

size_t refill_rows_scratch(const struct hg__refill *r)
{
	return lay_out(*r).bytes;
}

hg_status refill_rows(hg_context *ctx, const struct hg__refill *r)
{
	const cudaStream_t stream = stream_of(ctx);
	const rows_memory m = lay_out(*r);
	const unsigned blocks = few_blocks(r->listed + r->nodes),
	               teams = static_cast<unsigned>((r->rows + TEAMS - 1) / TEAMS);
	const dim3 scans(static_cast<unsigned>((r->rows + SCAN_ROWS - 1) / SCAN_ROWS), 2);
	clear_counts<<<few_blocks(2 * counts_of(*r)), BLOCK, 0, stream>>>(*r, m.count[0]);
	HG__TRY(launched(ctx, "graph stream: counts"));
	count_edges<<<blocks, BLOCK, 0, stream>>>(*r, m.count[0], m.count[1]);
	HG__TRY(launched(ctx, "graph stream: counts"));
	scan_rows<<<scans, SCAN_BLOCK, 0, stream>>>(*r, m.count[0], m.count[1]);
	HG__TRY(launched(ctx, "graph stream: rows"));
	deal_edges<<<blocks, BLOCK, 0, stream>>>(*r, m.count[0], m.key[0]);
	HG__TRY(launched(ctx, "graph stream: edges"));
	const put_forward forward = {*r, m.count[1], m.key[1]};
	settle_rows<<<teams, BLOCK, 0, stream>>>(forward, m.key[0]);
	HG__TRY(launched(ctx, "graph stream: columns"));
	const put_transposed transposed = {*r};
	settle_rows<<<teams, BLOCK, 0, stream>>>(transposed, m.key[1]);
	return launched(ctx, "graph stream: transpose");
}
