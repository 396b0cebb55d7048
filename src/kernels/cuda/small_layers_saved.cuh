/* Rows of a bin that backward of small_layers saves: inputs of layers, and the T of a layer. They
 * lie in shared memory as matrices of 8 x 8 halves, 128 bytes each, four of them for each tile of
 * 16 rows and 16 columns, or in global memory. */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_SAVED_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_SAVED_CUH

#include "kernels/cuda/small_layers_matrices.cuh"

namespace small
{

/* The rows of a bin in registers, as 16-byte pieces of each lane. */
template <int WIDE> constexpr int PIECES = TILES *WIDE;
template <int WIDE> constexpr size_t STATE_BYTES = PIECES<WIDE> * 32 * sizeof(uint4);

static __device__ inline uint4 load_piece(unsigned address)
{
	uint4 v;
	asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
	             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
	             : "r"(address)
	             : "memory");
	return v;
}

/* Where the first eight columns of a row of a bin begin, in memory where each warp has saved its
 * rows one behind the other. */
template <int WIDE> static __device__ inline int saved_row(int row)
{
	const int part = row / HG__BIN_ROWS, r = row % HG__BIN_ROWS;
	return part * static_cast<int>(STATE_BYTES<WIDE>) + r / TILE * WIDE * 512 + r / 8 % 2 * 256 +
	       r % 8 * 16;
}
/* How far behind them columns 8 f .. 8 f + 7 are. */
static __device__ inline int saved_eighth(int f)
{
	return f / 2 * 512 + f % 2 * 128;
}

/* Stores rows as matrices of 8 x 8 halves, so that restore() can transpose them. to: in shared
 * memory, the same for all lanes. */
template <int WIDE> static __device__ inline void save(const struct by_node<WIDE> &h, unsigned to)
{
#pragma unroll
	for (int i = 0; i < PIECES<WIDE>; i++) {
		const unsigned(&v)[2][2] = h.at[i / WIDE][i % WIDE];
		store_matrices(to + i * 512, v[0][0], v[0][1], v[1][0], v[1][1]);
	}
	__syncwarp();
}
/* The rows by feature, as an operand B: lanes give the addresses of the matrices in the order in
 * which the registers of the operand must follow each other. */
template <int WIDE> static __device__ inline void restore(unsigned from, struct by_feature<WIDE> &h)
{
	const unsigned lane = threadIdx.x % 32, matrix = lane / 16 | (lane / 8 & 1) << 1;
	__syncwarp();
#pragma unroll
	for (int i = 0; i < PIECES<WIDE>; i++) {
		const uint4 v = load_matrices<true>(from + i * 512 + matrix * 128 + lane % 8 * 16);
		unsigned(&to)[2][2] = h.at[i % WIDE][i / WIDE];
		to[0][0] = v.x;
		to[0][1] = v.y;
		to[1][0] = v.z;
		to[1][1] = v.w;
	}
	__syncwarp();
}
/* The same through shared memory to global memory, where each lane has its piece. */
template <int WIDE>
static __device__ inline void save(const struct by_node<WIDE> &h, unsigned through, uint4 *to)
{
	save(h, through);
#pragma unroll
	for (int i = 0; i < PIECES<WIDE>; i++)
		to[i * 32] = load_piece(through + i * 512 + threadIdx.x % 32 * 16);
	__syncwarp();
}
/* A lane fetches what it has written itself, so no fence is needed. to: as in save(). */
template <int WIDE> static __device__ inline void fetch(const uint4 *from, unsigned to)
{
#pragma unroll
	for (int i = 0; i < PIECES<WIDE>; i++)
		asm volatile(
		    "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i * 512 + threadIdx.x % 32 * 16),
		    "l"(from + i * 32)
		    : "memory");
	asm volatile("cp.async.commit_group;" ::: "memory");
}
static __device__ inline void fetch_wait()
{
	asm volatile("cp.async.wait_group 0;" ::: "memory");
}

} // namespace small

#endif
