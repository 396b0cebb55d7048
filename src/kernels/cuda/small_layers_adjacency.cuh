/* The matrix A of a bin, for small_layers. It is dense: HG__BIN_ROWS x HG__BIN_ROWS halves, operand
 * A of the products, made once for all layers. With 2 or 3 graphs in a bin most of it is 0, but 16
 * rows take only 12 products, and nothing is gathered. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_ADJACENCY_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_ADJACENCY_CUH

#include "kernels/cuda/small_layers_rows.cuh"

namespace small
{

/* Rows of A in shared memory, padded so that the eight rows of a small matrix lie in different
 * banks. */
constexpr int STRIP_PITCH = HG__BIN_ROWS + 8, STRIP_ROWS = 32;
constexpr size_t STRIP_BYTES = STRIP_ROWS * STRIP_PITCH * sizeof(__half);

/* A in CSR form. It joins rows and columns of one bin. */
struct entries {
	const int64_t *rowptr;
	const int32_t *col;
	const float *row_scale, *col_scale;
	float alpha;
};
struct adjacency {
	static constexpr bool ONE_FUNCTION = false; /* for all kinds of layers: see run_any() */
	uint4 at[TILES][TILES];
};

static inline struct entries entries_of(const struct hg__small_layers_args *a)
{
	return {a->csr.rowptr, a->csr.col, a->row_scale, a->col_scale, a->alpha};
}

/* The entries of one row, four of them at a time, because their loads would wait for each other one
 * by one. */
struct row_entries {
	static constexpr int AT_ONCE = 4;
	int64_t next, end;
	float scale;
	int col[AT_ONCE];
	float x[AT_ONCE];

	__device__ void load(const struct entries &a)
	{
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			col[k] = next + k < end ? a.col[next + k] : -1;
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++)
			x[k] = col[k] >= 0 && a.col_scale ? scale * a.col_scale[col[k]] : scale;
		next += AT_ONCE;
	}
	/* No row: no entries. */
	__device__ void begin(const struct entries &a, const struct bin &bin, int row)
	{
		const int64_t i = bin.first + (row < bin.rows ? row : 0);
		next = a.rowptr[i];
		end = row < bin.rows ? a.rowptr[i + 1] : next;
		scale = a.row_scale ? a.alpha * a.row_scale[i] : a.alpha;
		load(a);
	}
	__device__ void add(const struct bin &bin, __half *strip) const
	{
#pragma unroll
		for (int k = 0; k < AT_ONCE; k++) {
			const unsigned at = static_cast<unsigned>(col[k] - bin.first);
			if (col[k] >= 0 && at < HG__BIN_ROWS)
				strip[at] = __hadd(strip[at], __float2half_rn(x[k]));
		}
	}
	/* Adds all of them to the row of a strip. */
	__device__ void add_all(const struct entries &a, const struct bin &bin, __half *strip)
	{
		add(bin, strip);
		while (next < end) {
			load(a);
			add(bin, strip);
		}
	}
};
/* Row tiles FIRST .. of A, as many as the strip has rows. */
template <int FIRST>
static __device__ inline void build_tiles(const struct entries &a, const struct bin &bin,
                                          struct row_entries &row, __half *strip,
                                          struct adjacency &to)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
	__syncwarp();
	for (int i = lane; i < static_cast<int>(STRIP_BYTES / 16); i += 32)
		reinterpret_cast<uint4 *>(strip)[i] = make_uint4(0, 0, 0, 0);
	__syncwarp();
	row.add_all(a, bin, strip + lane * STRIP_PITCH);
	__syncwarp();
#pragma unroll
	for (int t = FIRST; t < TILES && t < FIRST + STRIP_ROWS / TILE; t++)
#pragma unroll
		for (int u = 0; u < TILES; u++)
			to.at[t][u] = load_matrices(shared_address(
			    strip + ((t - FIRST) * TILE + lane % 16) * STRIP_PITCH + u * TILE + lane / 16 * 8));
}
static __device__ inline void build_adjacency(const struct entries &a, const struct bin &bin,
                                              __half *strip, struct adjacency &to)
{
	static_assert(TILES == 3 && STRIP_ROWS == 2 * TILE, "two strips have all rows");
	const int lane = static_cast<int>(threadIdx.x % 32);
	struct row_entries row[2];
	row[0].begin(a, bin, lane);
	row[1].begin(a, bin, STRIP_ROWS + lane);
	build_tiles<0>(a, bin, row[0], strip, to);
	build_tiles<2>(a, bin, row[1], strip, to);
}

} // namespace small

#endif
