/* What small_layers reads out of the rows of a bin, for each of its graphs, and the gradient of
 * these rows (struct hg__small_readout). */
#ifndef HG_KERNELS_CUDA_SMALL_LAYERS_READOUT_CUH
#define HG_KERNELS_CUDA_SMALL_LAYERS_READOUT_CUH

#include "kernels/cuda/small_layers.cuh"
#include "kernels/cuda/small_layers_saved.cuh"

namespace small
{

/* y.data NULL: nothing is read out. */
struct readout {
	const int64_t *ptr;
	const int32_t *id;
	struct rows y, dy;
	int graphs;
	bool mean;
	int32_t result; /* node of the tape, -1: no check */
};

static inline struct readout readout_of(const struct hg__small_readout &from)
{
	struct readout to = {};
	to.ptr = from.ptr;
	to.id = from.id;
	to.y = rows_of(from.y);
	to.dy = rows_of(from.dy);
	to.graphs = static_cast<int>(from.y.rows);
	to.mean = from.reduce == HG_REDUCE_MEAN;
	to.result = from.result.word ? from.result.node : -1;
	return to;
}

/* Graphs without nodes are in no bin: all threads of the grid look for them. */
static __device__ inline void read_out_empty(const struct readout &of)
{
	const int threads = static_cast<int>(gridDim.x) * THREADS;
	for (int g = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
	     g < of.graphs; g += threads)
		if (of.ptr[g] == of.ptr[g + 1])
			for (int c = 0; c < of.y.cols; c++)
				of.y.data[g * of.y.ld + c] = __ushort_as_half(0);
}
/* Adds up the sums of each 8 lanes in a row: a lane gets the total of one of the 8 columns. */
static __device__ inline float add_rows(float (&sum)[8])
{
	const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
	for (int half = 4; half > 0; half /= 2)
#pragma unroll
		for (int i = 0; i < half; i++) {
			const bool upper = (lane & half) != 0;
			const float keeps = upper ? sum[i + half] : sum[i],
			            gives = upper ? sum[i] : sum[i + half];
			sum[i] = keeps + __shfl_xor_sync(0xffffffffu, gives, half);
		}
	return sum[0];
}
/* The graphs of a bin, of which this is warp `warp` of `warps`. rows: those of the bin, as save()
 * has left them. The warp reads 32 columns of 8 rows at once, and each lane ends with a column. */
template <int WIDE>
static __device__ inline void read_out(const struct readout &of, const struct bin &bin,
                                       const unsigned char *rows, int warp, int warps,
                                       unsigned long long *word)
{
	const int lane = static_cast<int>(threadIdx.x % 32), first = of.id[bin.first];
	if (first < 0) /* padding alone */
		return;
	for (int g = first + warp; g < of.graphs; g += warps) {
		const int begin = static_cast<int>(of.ptr[g]) - bin.first,
		          end = static_cast<int>(of.ptr[g + 1]) - bin.first;
		if (begin >= bin.rows)
			break;
		if (begin == end)
			continue;
#pragma unroll
		for (int c = 0; c < WIDE * TILE; c += 32) {
			float sum[8] = {};
			const unsigned at = shared_address(rows + saved_eighth(c / 8 + lane / 8));
#pragma unroll 2
			for (int r = begin + lane % 8; r < end; r += 8) {
				const uint4 piece = load_piece(at + static_cast<unsigned>(saved_row<WIDE>(r)));
				const unsigned pair[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
				for (int i = 0; i < 4; i++) {
					const float2 x = wide_pair(pair[i]);
					sum[2 * i] += x.x, sum[2 * i + 1] += x.y;
				}
			}
			const float total = add_rows(sum),
			            y = of.mean ? total / static_cast<float>(end - begin) : total;
			const __half narrow = __float2half_rn(y);
			if (c + lane < of.y.cols) {
				check(word, of.result, __half_as_ushort(narrow));
				of.y.data[g * of.y.ld + c + lane] = narrow;
			}
		}
	}
}

/* The gradient of the rows of a warp: that of their graph. Rows without a graph have 0. */
template <bool PAIRS, int WIDE>
static __device__ inline void load_readout(const struct readout &of, const struct bin &bin,
                                           struct by_node<WIDE> &to)
{
	const int lane = static_cast<int>(threadIdx.x % 32), c = lane % 4 * 2;
#pragma unroll
	for (int i = 0; i < 2 * TILES; i++) {
		const int row = i * 8 + lane / 4, g = row < bin.rows ? of.id[bin.first + row] : -1,
		          from = g < 0 ? 0 : g;
		const int64_t size = of.mean ? of.ptr[from + 1] - of.ptr[from] : 1;
		const float part = 1.0f / static_cast<float>(size);
		const __half *dy = of.dy.data + from * of.dy.ld;
#pragma unroll
		for (int f = 0; f < 2 * WIDE; f++) {
			const int col = f * 8 + c;
			const unsigned pair = cut_pair(
			    load_pair<PAIRS>(dy, col < of.dy.cols ? col : 0, of.dy.cols), col, of.dy.cols);
			const float2 x = wide_pair(pair);
			to.at[i / 2][f / 2][i % 2][f % 2] = g < 0 ? 0u : narrow_pair(x.x * part, x.y * part);
		}
	}
}
template <int WIDE>
static __device__ inline void load_readout(const struct readout &of, const struct bin &bin,
                                           struct by_node<WIDE> &to)
{
	if (of.dy.pairs)
		load_readout<true>(of, bin, to);
	else
		load_readout<false>(of, bin, to);
}

} // namespace small

#endif
