/* Large bins (core/bins.h) for small_layers: a block has such a bin, and each of its warps up to
 * HG__BIN_ROWS rows of it in registers, as those of a bin of its own. A of these rows and their
 * own columns is dense. The other entries are a list: there are few, because neighbours mostly have
 * numbers that are close to each other. What they multiply lies in shared memory. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_LARGE_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_LARGE_CUH

#include "kernels/cuda/small_layers.cuh"
#include "kernels/cuda/small_layers_saved.cuh"

namespace small
{

static_assert(HG__LARGE_BIN_ROWS == WARPS * HG__BIN_ROWS, "each warp has a part of a large bin");

/* A of the rows of one warp. */
template <int WIDE> struct large_adjacency {
	static_assert(WARPS * STATE_BYTES<WIDE> < 0x10000, "saved_row has 16 bits");
	static constexpr bool ONE_FUNCTION = true; /* for all kinds of layers: see run_any() */
	struct adjacency near;
	struct bin all, own;
	unsigned char *rows; /* shared: those of all warps */
	int2 *far;           /* shared: of each row of this warp, its far entries and how many */
	unsigned *entry;     /* global: saved_row of the column, and above it the value, a half */

	/* The list has as much room for a row as A has entries there. of_all: [entries of A], global.
	 * strip: shared memory of this warp, STRIP_BYTES, which is free again then. */
	__device__ void build(const struct entries &a, unsigned *of_all, __half *strip)
	{
		const int64_t begin = a.rowptr[all.first];
		entry = of_all + begin;
		build_adjacency(a, own, strip, near);
		for (int r = static_cast<int>(threadIdx.x % 32); r < HG__BIN_ROWS; r += 32) {
			struct row_entries from;
			int found = 0;
			from.begin(a, own, r);
			const int first =
			    static_cast<int>(a.rowptr[own.first + (r < own.rows ? r : 0)] - begin);
			while (true) {
#pragma unroll
				for (int k = 0; k < row_entries::AT_ONCE; k++)
					if (from.col[k] >= 0 &&
					    static_cast<unsigned>(from.col[k] - own.first) >= HG__BIN_ROWS)
						entry[first + found++] =
						    static_cast<unsigned>(saved_row<WIDE>(from.col[k] - all.first)) |
						    static_cast<unsigned>(__half_as_ushort(__float2half_rn(from.x[k])))
						        << 16;
				if (from.next >= from.end)
					break;
				from.load(a);
			}
			far[r] = make_int2(first, found);
		}
		__syncwarp();
	}
};

/* The warps save T, and wait for each other. */
template <int WIDE>
static __device__ inline void share_rows(const struct large_adjacency<WIDE> &a,
                                         const struct by_feature<WIDE> &t)
{
	const unsigned at = shared_address(a.rows + threadIdx.x / 32 * STATE_BYTES<WIDE>);
#pragma unroll
	for (int i = 0; i < PIECES<WIDE>; i++) {
		const unsigned(&v)[2][2] = t.at[i % WIDE][i / WIDE];
		store_matrices<true>(at + i * 512, v[0][0], v[1][0], v[0][1], v[1][1]);
	}
	__syncthreads();
}
template <int WIDE> static __device__ inline void end_sharing(const struct large_adjacency<WIDE> &)
{
	__syncthreads();
}
/* Adds one row tile of A T. */
template <int WIDE>
static __device__ inline void aggregate_tile(const struct large_adjacency<WIDE> &a,
                                             const struct by_feature<WIDE> &t, int tile,
                                             float (&c)[2 * WIDE][4])
{
	aggregate_tile(a.near, t, tile, c);
#pragma unroll
	for (int n = 0; n < 2; n++) {
		const int2 row = a.far[tile * TILE + n * 8 + static_cast<int>(threadIdx.x % 32 / 4)];
#pragma unroll 1
		for (int p = row.x; p < row.x + row.y; p++) {
			const unsigned entry = a.entry[p];
			const unsigned char *from = a.rows + (entry & 0xffffu) + threadIdx.x % 4 * 4;
			const float value =
			    __half2float(__ushort_as_half(static_cast<unsigned short>(entry >> 16)));
#pragma unroll
			for (int f = 0; f < 2 * WIDE; f++) {
				const float2 x =
				    __half22float2(*reinterpret_cast<const __half2 *>(from + saved_eighth(f)));
				c[f][2 * n] = fmaf(value, x.x, c[f][2 * n]);
				c[f][2 * n + 1] = fmaf(value, x.y, c[f][2 * n + 1]);
			}
		}
	}
	__syncwarp();
}

/* ---- which bins ---- */

/* The large bins of this block: of all of them, each gridDim.x-th. All threads of the block ask. */
struct large_bins {
	static constexpr size_t BYTES = (THREADS + WARPS) * sizeof(int);
	const int *first;
	int bins;
	int *list, *count; /* shared: [THREADS], those of this block; [WARPS], found by each warp */
	int looked, seen;  /* bins that have been looked at, and large ones among them */
	int listed, taken;

	__device__ large_bins(const int *of, int most, unsigned char *memory)
	{
		first = of;
		bins = of[most + 1];
		list = reinterpret_cast<int *>(memory);
		count = list + THREADS;
		looked = seen = listed = taken = 0;
	}
	/* How many numbers below n are of this block. */
	static __device__ int share(int n)
	{
		const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
		return (n + blocks - 1 - block) / blocks;
	}
	/* Looks at the next THREADS bins. */
	__device__ void look()
	{
		const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, k = looked + tid;
		const bool large = k < bins && hg__bin_is_large(first[k + 1] - first[k]);
		const unsigned found = __ballot_sync(0xffffffffu, large);
		if (lane == 0)
			count[tid / 32] = __popc(found);
		__syncthreads();
		int number = seen + __popc(found & ((1u << lane) - 1)), all = seen;
		for (int w = 0; w < WARPS; w++) {
			number += w < tid / 32 ? count[w] : 0;
			all += count[w];
		}
		if (large && number % static_cast<int>(gridDim.x) == static_cast<int>(blockIdx.x))
			list[share(number) - share(seen)] = k;
		__syncthreads();
		listed = share(all) - share(seen);
		taken = 0;
		seen = all;
		looked += THREADS;
	}
	/* The next one; -1: there are no more. */
	__device__ int next()
	{
		while (taken == listed && looked < bins) {
			__syncthreads(); /* all have taken what was listed */
			look();
		}
		return taken < listed ? list[taken++] : -1;
	}
};

/* The shared memory of a block that has large bins: what its warps save, their lists, and those of
 * struct large_bins. */
template <int WIDE>
constexpr size_t LARGE_BYTES = large_bins::BYTES +
                               (STATE_BYTES<WIDE> + HG__BIN_ROWS * sizeof(int2)) * WARPS;

template <int WIDE>
static __device__ inline struct large_bins large_bins_of(const int *first, int bins,
                                                         unsigned char *memory)
{
	return large_bins(first, bins, memory + LARGE_BYTES<WIDE> - large_bins::BYTES);
}
/* The part of a warp in the large bin of nodes first .. end - 1; its A has to be built. */
template <int WIDE>
static __device__ inline large_adjacency<WIDE> large_part(unsigned char *memory, int first, int end)
{
	const int warp = static_cast<int>(threadIdx.x / 32), left = end - first - warp * HG__BIN_ROWS;
	large_adjacency<WIDE> a;
	a.all = {first, end - first};
	a.own.first = left > 0 ? first + warp * HG__BIN_ROWS : first;
	a.own.rows = left > HG__BIN_ROWS ? HG__BIN_ROWS : left > 0 ? left : 0;
	a.rows = memory;
	a.far = reinterpret_cast<int2 *>(memory + WARPS * STATE_BYTES<WIDE>) + warp * HG__BIN_ROWS;
	return a;
}

/* ---- host side ---- */

/* At most so many blocks have large bins. */
static inline int large_blocks(const struct hg__small_layers_args *a, int blocks)
{
	const int64_t most = hg__bin_is_large(a->bins->rows) ? hg__bins_most_large(a->x.rows) : 0;
	return most < blocks ? static_cast<int>(most) : blocks;
}
/* The global memory for lists of entries. */
static inline size_t far_bytes(const struct hg__small_layers_args *a)
{
	return hg__bin_is_large(a->bins->rows) ? static_cast<size_t>(a->csr.m) * sizeof(unsigned) : 0;
}

} // namespace small

#endif
