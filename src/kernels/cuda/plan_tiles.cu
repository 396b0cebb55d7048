/* Builds the tiles of a graph (core/plan_tiles.h), in slices of whole windows:
 *
 *     keys     entry (i, j) of window w = i / 16 becomes (w, j, i % 16), in one 64-bit number
 *     sort     afterwards all entries of one column of a window are consecutive (a run), and within
 *              the run those of one row
 *     list     the first entry of a run lists its column ceil(most entries of a row / 3) times;
 *              every other entry does not list it
 *     place    a running sum: the position in the slice where an entry's column is listed
 *
 * This runs twice: once to count the columns of each window, and again, when the first group of
 * each window is known, to write ids and masks. Sorting 100 M keys again costs less than the memory
 * to keep them all. The bits are always the same, because sorted keys that are equal are
 * interchangeable. */

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "core/plan_tiles.h"
#include "kernels/cuda/search.cuh"

/* Entries sorted at once. Scratch is two keys and a position for each, 20 bytes: 42 MB, and CUB's
 * own. A longer window is a slice by itself. */
constexpr int64_t SLICE = int64_t(1) << 21;

/* Windows first .. end-1, their entries begin .. begin+m-1. */
struct tile_slice {
	int64_t rows, first, end, begin, m;
	int col_bits, key_bits;
};

static __host__ __device__ inline int64_t first_row(const struct tile_slice &s, int64_t window)
{
	const int64_t row = window * HG__TILE_ROWS;
	return row < s.rows ? row : s.rows;
}

static int bits_of(int64_t largest)
{
	int bits = 1;
	while (largest >>= 1)
		bits++;
	return bits;
}

/* ---- kernels ---- */

static __global__ void tile_keys(struct tile_slice s, const int64_t *rowptr, const int32_t *col,
                                 uint64_t *key)
{
	for (int64_t e = global_thread(); e < s.m; e += global_threads()) {
		const int64_t row = row_of(rowptr, first_row(s, s.first), first_row(s, s.end), s.begin + e);
		const uint64_t window = static_cast<uint64_t>(row / HG__TILE_ROWS - s.first),
		               position = static_cast<uint64_t>(row % HG__TILE_ROWS);
		key[e] = (window << s.col_bits | static_cast<uint64_t>(col[s.begin + e])) << 4 | position;
	}
}
static_assert(HG__TILE_ROWS == 1 << 4, "a row of a window is 4 bits of a key");

/* Calls f(row, n) for each entry of the run that begins at i; n counts the entries of a row from 0.
 * Returns false if no run begins there. */
template <typename F>
static __device__ inline bool each_of_run(const uint64_t *key, int64_t m, int64_t i, F f)
{
	if (i > 0 && key[i - 1] >> 4 == key[i] >> 4)
		return false;
	int n = 0;
	for (int64_t k = i; k < m && key[k] >> 4 == key[i] >> 4; k++) {
		n = k > i && key[k] == key[k - 1] ? n + 1 : 0;
		f(static_cast<int>(key[k] & (HG__TILE_ROWS - 1)), n);
	}
	return true;
}

/* place [m + 1]: the number of times entry i lists its column; 0 after the last entry. */
static __global__ void tile_listed(int64_t m, const uint64_t *key, uint32_t *position)
{
	for (int64_t i = global_thread(); i <= m; i += global_threads()) {
		int most = 0;
		if (i < m)
			each_of_run(key, m, i, [&](int, int n) {
				most = n / HG__TILE_MOST + 1 > most ? n / HG__TILE_MOST + 1 : most;
			});
		position[i] = static_cast<uint32_t>(most);
	}
}

/* Position in the slice where the columns of window s.first + w begin. */
static __device__ inline uint32_t window_position(const struct tile_slice &s, const int64_t *rowptr,
                                                  const uint32_t *position, int64_t w)
{
	return position[rowptr[first_row(s, s.first + w)] - s.begin];
}

static __global__ void tile_window_counts(struct tile_slice s, const int64_t *rowptr,
                                          const uint32_t *position, int32_t *listed)
{
	for (int64_t w = global_thread(); w < s.end - s.first; w += global_threads())
		listed[w] = static_cast<int32_t>(window_position(s, rowptr, position, w + 1) -
		                                 window_position(s, rowptr, position, w));
}

/* Writes the columns of a slice and their masks. One thread writes a run. */
static __global__ void tile_write(struct tile_slice s, const int64_t *rowptr, const uint64_t *key,
                                  const uint32_t *position, const int32_t *first, int32_t *id,
                                  uint32_t *mask)
{
	for (int64_t i = global_thread(); i < s.m; i += global_threads()) {
		const uint32_t times = position[i + 1] - position[i];
		if (times == 0)
			continue;
		const uint64_t column = key[i] >> 4;
		const int64_t w = static_cast<int64_t>(column >> s.col_bits);
		const int64_t at = static_cast<int64_t>(first[s.first + w]) * HG__TILE_COLUMNS +
		                   position[i] - window_position(s, rowptr, position, w);
		for (uint32_t k = 0; k < times; k++) {
			id[at + k] = static_cast<int32_t>(column & ((uint64_t(1) << s.col_bits) - 1));
			mask[at + k] = 0;
		}
		int open = 0; /* the listing that `bits` belongs to */
		uint32_t bits = 0;
		each_of_run(key, s.m, i, [&](int row, int n) {
			if (n / HG__TILE_MOST != open) {
				mask[at + open] += bits;
				open = n / HG__TILE_MOST;
				bits = 0;
			}
			bits += 1u << 2 * row;
		});
		mask[at + open] += bits;
	}
}

/* Fills a group with the last column again, with a mask of 0. */
static __global__ void tile_pad(struct tile_slice s, const int64_t *rowptr,
                                const uint32_t *position, const int32_t *first, int32_t *id,
                                uint32_t *mask)
{
	for (int64_t w = global_thread(); w < s.end - s.first; w += global_threads()) {
		const int64_t begin = static_cast<int64_t>(first[s.first + w]) * HG__TILE_COLUMNS,
		              end = static_cast<int64_t>(first[s.first + w + 1]) * HG__TILE_COLUMNS;
		const int64_t listed =
		    window_position(s, rowptr, position, w + 1) - window_position(s, rowptr, position, w);
		for (int64_t k = begin + listed; k < end; k++) {
			id[k] = id[begin + listed - 1];
			mask[k] = 0;
		}
	}
}

/* ---- slices ---- */

/* The slice that begins with window `first`: at least one window, and further windows while they
 * have at most SLICE entries together. */
static struct tile_slice slice_at(const struct hg__csr *csr, const int64_t *host_rowptr,
                                  int64_t first)
{
	const int64_t windows = hg__tile_windows(csr->rows);
	struct tile_slice s = {csr->rows, first, first + 1, 0, 0, bits_of(csr->cols), 0};
	s.begin = host_rowptr[first_row(s, first)];
	while (s.end < windows && host_rowptr[first_row(s, s.end + 1)] - s.begin <= SLICE)
		s.end++;
	s.m = host_rowptr[first_row(s, s.end)] - s.begin;
	s.key_bits = 4 + s.col_bits + bits_of(s.end - s.first);
	return s;
}

struct tile_scratch {
	uint64_t *key[2];
	uint32_t *position;
	int32_t *listed; /* for the windows of a slice */
	void *cub;
	size_t cub_bytes, bytes;
};

static hg_status tile_lay_out(hg_context *ctx, int64_t longest, int64_t most_windows, char *memory,
                              struct tile_scratch *s)
{
	const size_t keys = hg__aligned(static_cast<size_t>(longest) * sizeof(uint64_t)),
	             positions = hg__aligned(static_cast<size_t>(longest + 1) * sizeof(uint32_t));
	const size_t listed = hg__aligned(static_cast<size_t>(most_windows) * sizeof(int32_t));
	size_t sort = 0, scan = 0;
	cub::DoubleBuffer<uint64_t> key;
	uint32_t *sums = nullptr;
	HG__CUDA(ctx, "tiles: sort",
	         cub::DeviceRadixSort::SortKeys(nullptr, sort, key, longest, 0, 64, stream_of(ctx)));
	HG__CUDA(ctx, "tiles: places",
	         cub::DeviceScan::ExclusiveSum(nullptr, scan, sums, sums, longest + 1, stream_of(ctx)));
	s->key[0] = reinterpret_cast<uint64_t *>(memory);
	s->key[1] = reinterpret_cast<uint64_t *>(memory + keys);
	s->position = reinterpret_cast<uint32_t *>(memory + 2 * keys);
	s->listed = reinterpret_cast<int32_t *>(memory + 2 * keys + positions);
	s->cub = memory + 2 * keys + positions + listed;
	s->cub_bytes = sort > scan ? sort : scan;
	s->bytes = 2 * keys + positions + listed + hg__aligned(s->cub_bytes);
	return HG_OK;
}

/* Sorts the keys of a slice and computes the positions. *sorted points to the keys. */
static hg_status list_slice(hg_context *ctx, const struct hg__csr *csr, const struct tile_slice &s,
                            const struct tile_scratch &t, const uint64_t **sorted)
{
	const cudaStream_t stream = stream_of(ctx);
	cub::DoubleBuffer<uint64_t> key(t.key[0], t.key[1]);
	size_t bytes = t.cub_bytes;
	tile_keys<<<grid_for(s.m, BLOCK), BLOCK, 0, stream>>>(s, csr->rowptr, csr->col, t.key[0]);
	HG__TRY(launched(ctx, "tiles: keys"));
	HG__CUDA(ctx, "tiles: sort",
	         cub::DeviceRadixSort::SortKeys(t.cub, bytes, key, s.m, 0, s.key_bits, stream));
	*sorted = key.Current();
	tile_listed<<<grid_for(s.m + 1, BLOCK), BLOCK, 0, stream>>>(s.m, *sorted, t.position);
	HG__TRY(launched(ctx, "tiles: columns"));
	bytes = t.cub_bytes;
	return cuda_status(
	    ctx, cub::DeviceScan::ExclusiveSum(t.cub, bytes, t.position, t.position, s.m + 1, stream),
	    "tiles: places");
}

/* Calls f(slice, scratch, keys) for each slice that has entries. */
template <typename F>
static hg_status list_slices(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                             const struct tile_scratch &t, F f)
{
	for (int64_t w = 0; w < hg__tile_windows(csr->rows);) {
		const struct tile_slice s = slice_at(csr, host_rowptr, w);
		const uint64_t *key = nullptr;
		w = s.end;
		if (s.m == 0)
			continue;
		HG__TRY(list_slice(ctx, csr, s, t, &key));
		HG__TRY(f(s, t, key));
	}
	return HG_OK;
}

template <typename F>
static hg_status each_slice(hg_context *ctx, const struct hg__csr *csr, const int64_t *host_rowptr,
                            F f)
{
	int64_t longest = 0, most_windows = 0;
	for (int64_t w = 0; w < hg__tile_windows(csr->rows);) {
		const struct tile_slice s = slice_at(csr, host_rowptr, w);
		longest = s.m > longest ? s.m : longest;
		most_windows = s.end - s.first > most_windows ? s.end - s.first : most_windows;
		w = s.end;
	}
	struct tile_scratch t;
	void *memory = nullptr;
	HG__TRY(tile_lay_out(ctx, longest, most_windows, nullptr, &t));
	const size_t bytes = t.bytes;
	HG__TRY(hg__device_alloc(ctx, bytes, "scratch for tiles", &memory));
	hg_status status = tile_lay_out(ctx, longest, most_windows, static_cast<char *>(memory), &t);
	if (status >= 0)
		status = list_slices(ctx, csr, host_rowptr, t, f);
	hg__device_free(ctx, memory, bytes);
	return status;
}

/* ---- the backend's functions ---- */

hg_status hg__cuda_tiles_count(hg_context *ctx, const struct hg__csr *csr,
                               const int64_t *host_rowptr, int32_t *listed)
{
	return each_slice(
	    ctx, csr, host_rowptr,
	    [&](const struct tile_slice &s, const struct tile_scratch &t, const uint64_t *) {
		    const int64_t windows = s.end - s.first;
		    tile_window_counts<<<grid_for(windows, BLOCK), BLOCK, 0, stream_of(ctx)>>>(
		        s, csr->rowptr, t.position, t.listed);
		    HG__TRY(launched(ctx, "tiles: windows"));
		    return ctx->backend->copy_out(ctx, listed + s.first, t.listed,
		                                  static_cast<size_t>(windows) * sizeof *listed);
	    });
}

hg_status hg__cuda_tiles_fill(hg_context *ctx, const struct hg__csr *csr,
                              const int64_t *host_rowptr, const int32_t *first, int32_t *id,
                              uint32_t *mask)
{
	return each_slice(
	    ctx, csr, host_rowptr,
	    [&](const struct tile_slice &s, const struct tile_scratch &t, const uint64_t *key) {
		    tile_write<<<grid_for(s.m, BLOCK), BLOCK, 0, stream_of(ctx)>>>(
		        s, csr->rowptr, key, t.position, first, id, mask);
		    HG__TRY(launched(ctx, "tiles: masks"));
		    tile_pad<<<grid_for(s.end - s.first, BLOCK), BLOCK, 0, stream_of(ctx)>>>(
		        s, csr->rowptr, t.position, first, id, mask);
		    return launched(ctx, "tiles: padding");
	    });
}
