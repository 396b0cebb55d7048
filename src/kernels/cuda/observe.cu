/* Statistics of many tensors: bin, zeros, nonfinite, rank and amax of each (kernels.h). All are
 * integers, so atomic additions and maxima give the same bits in any order.
 *
 * The 32 lanes of a warp have the 32 bins. For 32 elements the warp votes on each of the 5 bits of
 * their bin numbers. Lane b finds the elements of bin b as the conjunction of five votes (or their
 * complements), and adds their number to a count in a register. This takes about 38 instructions
 * for 32 elements, whatever their distribution. Exponents of a tensor concentrate in a few bins,
 * where counters in memory would wait for one another.
 *
 * A block takes neighbouring chunks of the table, mostly of one tensor. The counts of its warps for
 * a tensor are combined in shared memory and then added to `counts`. The last block of all moves
 * `counts` to the ring and leaves zeros. Elements that are 0 are in no bin, so their number is the
 * rest. */

#include "kernels/observe.h"

#include "kernels/cuda/totals.cuh"

namespace
{

/* packs of a thread in a chunk: 32 or 64 bytes in flight */
constexpr int PACK = 8, PACKS = HG__OBSERVE_CHUNK / (PACK * BLOCK);
static_assert(PACKS * PACK * BLOCK == HG__OBSERVE_CHUNK, "a chunk is whole packs");
static_assert(HG__BINS == 32, "a bin for each lane");

/* The largest number of blocks: four per multiprocessor (64 registers a thread) on 132 of them, so
 * that a step that is not due has only one wave of blocks, which return at once. */
constexpr int64_t OBSERVE_BLOCKS = 512;

/* A pack as loaded, and how the element type stores a magnitude. */
template <typename T> struct pack;
template <> struct pack<__half> {
	static constexpr unsigned INFINITE = HG__HALF_INFINITE;
	unsigned word[PACK / 2];

	__device__ void load(const __half *p)
	{
		const uint4 q = *reinterpret_cast<const uint4 *>(p);
		word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
	}
	__device__ void put(int j, const __half *p)
	{
		word[j / 2] |= static_cast<unsigned>(__half_as_ushort(*p)) << j % 2 * 16;
	}
	__device__ unsigned at(int j) const
	{
		return word[j / 2] >> j % 2 * 16 & 0x7FFFu;
	}
	static __device__ unsigned bin(unsigned m)
	{
		return hg__bin_of_half(m);
	}
	static __device__ unsigned wide(unsigned m)
	{
		return __float_as_uint(__half2float(__ushort_as_half(static_cast<unsigned short>(m))));
	}
};
template <> struct pack<float> {
	static constexpr unsigned INFINITE = HG__FLOAT_INFINITE;
	unsigned word[PACK];

	__device__ void load(const float *p)
	{
		const uint4 q = reinterpret_cast<const uint4 *>(p)[0],
		            r = reinterpret_cast<const uint4 *>(p)[1];
		word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
		word[4] = r.x, word[5] = r.y, word[6] = r.z, word[7] = r.w;
	}
	__device__ void put(int j, const float *p)
	{
		word[j] = __float_as_uint(*p);
	}
	__device__ unsigned at(int j) const
	{
		return word[j] & 0x7FFFFFFFu;
	}
	static __device__ unsigned bin(unsigned m)
	{
		return hg__bin_of_float(m);
	}
	static __device__ unsigned wide(unsigned m)
	{
		return m;
	}
};

/* What one thread has counted of a tensor: in lane b the elements of bin b that the warp has seen;
 * the other members for its own elements. */
struct tally {
	unsigned bin, most, bad;
	uint64_t rank;
};

/* The number of elements, without padding, in the pack at storage index i. If there is padding, ld
 * is a multiple of 8 and a pack lies in one row. */
__device__ int live_of(const struct hg__mat &m, int64_t i, int64_t n)
{
	if (i >= n)
		return 0;
	/* a 32-bit division takes a fifth of the time */
	const int64_t col =
	    n <= INT32_MAX ? static_cast<unsigned>(i) % static_cast<unsigned>(m.ld) : i % m.ld;
	const int64_t left = m.ld == m.cols ? n - i : m.cols - col;
	return left < 0 ? 0 : left < PACK ? static_cast<int>(left) : PACK;
}

/* The number of elements from the one at storage index i to the last of the tensor, row by row. */
__device__ uint64_t rank_of(const struct hg__mat &m, int64_t i)
{
	return static_cast<uint64_t>(m.rows * m.cols - (i / m.ld * m.cols + i % m.ld));
}

/* The first `live` elements of storage i .. i+7. The others are zeros and are not read. */
template <typename T> __device__ pack<T> read(const T *data, int64_t i, int live)
{
	pack<T> x = {};
	if (live == PACK) {
		x.load(data + i);
		return x;
	}
#pragma unroll
	for (int j = 0; j < PACK; j++)
		if (j < live)
			x.put(j, data + i + j);
	return x;
}

/* Each lane passes one element. Returns how many of the 32 are in the bin of this lane. All lanes
 * of a warp must call it together. */
__device__ unsigned vote(unsigned m, unsigned bin)
{
	const unsigned all = 0xffffffffu, lane = threadIdx.x % 32;
	unsigned same = __ballot_sync(all, m != 0);
#pragma unroll
	for (int k = 0; k < 5; k++)
		same &= __ballot_sync(all, (bin & 1u << k) != 0) ^ ((lane & 1u << k) != 0 ? 0 : all);
	return __popc(same);
}

template <typename T> __device__ void count_pack(const pack<T> &x, struct tally &mine)
{
#pragma unroll
	for (int j = 0; j < PACK; j++) {
		const unsigned m = x.at(j);
		const bool finite = m < pack<T>::INFINITE;
		mine.bin += vote(m, pack<T>::bin(m));
		mine.most = max(mine.most, finite ? m : 0u);
		mine.bad |= !finite;
	}
}

/* Storage index of pack k of this thread in a chunk. */
__device__ int64_t index_of_pack(int64_t chunk, int k)
{
	return chunk * HG__OBSERVE_CHUNK + (static_cast<int64_t>(k) * BLOCK + threadIdx.x) * PACK;
}

/* Reads this thread's packs again after one of them was not finite: counts such elements and finds
 * the first. This is rare, and separate from the main loop, which needs the registers. */
template <typename T>
__device__ void find_nonfinite(const struct hg__mat &mat, int64_t begin, int64_t end,
                               struct tally &mine)
{
	const T *data = static_cast<const T *>(mat.data);
	const int64_t n = mat.rows * mat.ld;
	mine.bad = 0;
	for (int64_t chunk = begin; chunk < end; chunk++)
		for (int k = 0; k < PACKS; k++) {
			const int64_t i = index_of_pack(chunk, k);
			const int live = live_of(mat, i, n);
			for (int j = 0; j < live; j++) {
				pack<T> x = {};
				x.put(0, data + i + j);
				if (x.at(0) < pack<T>::INFINITE)
					continue;
				mine.bad++;
				mine.rank = max(mine.rank, rank_of(mat, i + j));
			}
		}
}

/* Chunks begin .. end-1 of a tensor. */
template <typename T>
__device__ void count_chunks(const struct hg__mat &mat, int64_t begin, int64_t end,
                             struct tally &mine)
{
	const T *data = static_cast<const T *>(mat.data);
	const int64_t n = mat.rows * mat.ld;
	for (int64_t chunk = begin; chunk < end; chunk++) {
		pack<T> x[PACKS];
#pragma unroll
		for (int k = 0; k < PACKS; k++) {
			const int64_t i = index_of_pack(chunk, k);
			x[k] = read(data, i, live_of(mat, i, n));
		}
#pragma unroll
		for (int k = 0; k < PACKS; k++)
			count_pack(x[k], mine);
	}
	if (mine.bad)
		find_nonfinite<T>(mat, begin, end, mine);
	mine.most = pack<T>::wide(mine.most);
}

/* ---- per block ---- */

struct block_tally {
	unsigned bin[HG__BINS], most;
	unsigned long long bad, rank;
};

__device__ unsigned long long *wide_word(uint64_t *p)
{
	return reinterpret_cast<unsigned long long *>(p);
}

/* Adds what the threads of a block have counted of one tensor. All threads must call it together.
 * `ours` is all zero before and after. */
__device__ void add_block(const struct tally &mine, struct block_tally &ours,
                          struct hg__observed *to)
{
	const int lane = static_cast<int>(threadIdx.x % 32);
	const unsigned most = __reduce_max_sync(0xffffffffu, mine.most);
	if (mine.bin)
		atomicAdd(&ours.bin[lane], mine.bin);
	if (lane == 0)
		atomicMax(&ours.most, most);
	if (mine.bad) {
		atomicAdd(&ours.bad, static_cast<unsigned long long>(mine.bad));
		atomicMax(&ours.rank, static_cast<unsigned long long>(mine.rank));
	}
	__syncthreads();
	if (threadIdx.x < HG__BINS && ours.bin[lane])
		atomicAdd(wide_word(&to->bin[lane]), static_cast<unsigned long long>(ours.bin[lane]));
	if (threadIdx.x == 0) {
		atomicMax(&to->amax, ours.most);
		if (ours.bad) {
			atomicAdd(wide_word(&to->nonfinite), ours.bad);
			atomicMax(wide_word(&to->rank), ours.rank);
		}
	}
	__syncthreads();
	if (threadIdx.x < HG__BINS)
		ours.bin[lane] = 0;
	if (threadIdx.x == 0)
		ours.most = 0, ours.bad = ours.rank = 0;
	__syncthreads();
}

/* The tensor of this chunk: the only row of the table that begins at or before it while the next
 * row begins after it. */
__device__ int64_t tensor_of(const struct hg__observe_args &a, int64_t chunk)
{
	__shared__ int64_t found;
	for (int64_t i = threadIdx.x; i < a.count; i += BLOCK)
		if (a.table[i].first <= chunk && chunk < a.table[i + 1].first)
			found = i;
	__syncthreads();
	return found;
}

/* ---- in the last block ---- */

/* The number of elements that are in no bin. */
__device__ uint64_t zeros_of(const struct hg__mat &mat, struct hg__observed *counts)
{
	uint64_t zeros = static_cast<uint64_t>(mat.rows * mat.cols);
	for (int b = 0; b < HG__BINS; b++)
		zeros -= __ldcg(wide_word(&counts->bin[b]));
	return zeros;
}

/* Moves the counts to the ring, in words of 8 bytes, and sets them to zero. */
__device__ void move_to_ring(const struct hg__observe_args &a)
{
	constexpr int64_t WORDS = sizeof(struct hg__observed) / sizeof(uint64_t);
	static_assert(WORDS * sizeof(uint64_t) == sizeof(struct hg__observed), "whole words");
	const int64_t place = a.ring->taken % HG__OBSERVED_STEPS;
	uint64_t *from = reinterpret_cast<uint64_t *>(a.counts),
	         *to = reinterpret_cast<uint64_t *>(a.kept + place * a.stride);
	for (int64_t i = threadIdx.x; i < a.count; i += BLOCK) {
		a.most[i] = max(a.most[i], hg__observed_reach(__ldcg(&a.counts[i].amax),
		                                              __ldcg(wide_word(&a.counts[i].nonfinite))));
		a.counts[i].zeros = zeros_of(a.table[i].mat, &a.counts[i]);
	}
	__syncthreads();
	for (int64_t i = threadIdx.x; i < a.count * WORDS; i += BLOCK) {
		to[i] = __ldcg(wide_word(&from[i]));
		from[i] = 0;
	}
	if (threadIdx.x == 0 && a.closes) {
		a.ring->head[place] = hg__observed_head_of(a.due.step);
		a.ring->taken++;
	}
}

__global__ void __launch_bounds__(BLOCK, 4)
    observe_kernel(const __grid_constant__ struct hg__observe_args a, unsigned *counter)
{
	after_previous();
	__shared__ struct block_tally ours;
	if (!hg__is_due(&a.due))
		return;
	const int64_t blocks = gridDim.x, end = (blockIdx.x + 1) * a.chunks / blocks;
	int64_t chunk = blockIdx.x * a.chunks / blocks;
	if (threadIdx.x < HG__BINS)
		ours.bin[threadIdx.x] = 0;
	if (threadIdx.x == 0)
		ours.most = 0, ours.bad = ours.rank = 0;
	for (int64_t i = chunk < end ? tensor_of(a, chunk) : 0; chunk < end; i++) {
		const struct hg__watched t = a.table[i];
		const int64_t next = a.table[i + 1].first, stop = next < end ? next : end;
		struct tally mine = {};
		if (t.mat.dtype == HG_F16)
			count_chunks<__half>(t.mat, chunk - t.first, stop - t.first, mine);
		else
			count_chunks<float>(t.mat, chunk - t.first, stop - t.first, mine);
		if (stop > chunk) /* a tensor without elements has no chunk */
			add_block(mine, ours, &a.counts[i]);
		chunk = stop;
	}
	if (is_last(counter, gridDim.x))
		move_to_ring(a);
}

} // namespace

HG__NO_WORKSPACE(observe, observe_args)

extern "C" hg_status hg__cuda_observe(hg_context *ctx, const struct hg__observe_args *a)
{
	const int64_t blocks = a->chunks < OBSERVE_BLOCKS ? a->chunks : OBSERVE_BLOCKS;
	return launch(ctx, "observe", observe_kernel, static_cast<unsigned>(blocks > 1 ? blocks : 1),
	              BLOCK, *a, counters_of(ctx));
}
