/* Iteration over the parts of a plan in order of length (core/csr.h). The sub-warps of a warp take
 * parts with equal numbers of steps, so they execute the same code together, and each has UNROLL
 * gathers in flight. Parts that are short enough share a step: two parts of 4 entries, four of 2,
 * or eight of 1.
 *
 * A sub-warp is blockDim.x threads, 4 or 8. Column ids, and other values of which each entry has
 * one, are loaded by lane k for entry k of a step of UNROLL entries, and shuffled when they are
 * used. Those of the next step are requested before the gathers of this step.
 *
 * Why parts are sorted by length: measured on an H200, f16, unit weights, F = 32 / 64 / 128. Parts
 * in the order of rows, with row ends in the middle of steps (commit e16ade0), against this scheme
 * (c9b22df, in another run):
 *
 *     Kron-21         0.95 / 1.33 / 2.23 ms   0.62 / 0.91 / 1.79 ms
 *     reddit-like     1.02 / 1.71 / 3.34      0.86 / 1.52 / 3.03
 *     products-like   2.90 / 3.68 / 7.19      2.72 / 3.54 / 7.13
 *
 * With row ends inside steps, Kron-21 at F = 64 took 743 million instructions, of which the gathers
 * alone need 457. */
#ifndef HG_KERNELS_CUDA_BY_LENGTH_CUH
#define HG_KERNELS_CUDA_BY_LENGTH_CUH

#include "kernels/cuda/parts.cuh"

/* The parts, and the number of blocks: those for long parts, which take steps of their own, and
 * those for each class of short parts. */
struct part_list {
	const struct hg__plan_part *part; /* NULL: part i is row i of rowptr */
	const int64_t *rowptr;
	const float *row_scale; /* NULL: all 1 */
	int64_t first[HG__PART_CLASSES + 1];
	int long_classes;
	unsigned blocks, short_blocks[HG__PART_CLASSES];
	uint64_t long_share; /* long blocks / all blocks * 2^32, rounded up */
};

/* Class 2 has parts of up to 8 entries; the next ones up to 4, 2 and 1; the last has empty rows. */
constexpr int EMPTY_CLASS = HG__PART_CLASSES - 1;

/* Parts of a class that a sub-warp takes at once, where the parts of the class fit into one step.
 */
static __host__ __device__ inline int parts_at_once(int unroll, int part_class)
{
	return part_class == EMPTY_CLASS ? unroll : unroll >> (EMPTY_CLASS - 1 - part_class);
}

static inline unsigned blocks_for(int64_t parts, int64_t per_block)
{
	return static_cast<unsigned>((parts + per_block - 1) / per_block);
}

/* listed: uses the parts of the plan; otherwise every row is one part. share: short parts share
 * steps. */
static inline struct part_list part_list_of(const struct hg__csr &csr, const float *row_scale,
                                            bool listed, int unroll, bool share, unsigned sub_warps)
{
	struct part_list list = {};
	list.rowptr = csr.rowptr;
	list.row_scale = row_scale;
	list.part = listed ? csr.plan->part : nullptr;
	list.long_classes = !listed ? HG__PART_CLASSES : !share ? EMPTY_CLASS : unroll < 8 ? 3 : 2;
	for (int k = 1; k <= HG__PART_CLASSES; k++)
		list.first[k] = listed ? csr.plan->part_class[k] : csr.rows;
	const unsigned long_blocks = blocks_for(list.first[list.long_classes], sub_warps);
	list.blocks = long_blocks;
	for (int k = list.long_classes; k < HG__PART_CLASSES; k++)
		list.blocks += list.short_blocks[k] =
		    blocks_for(list.first[k + 1] - list.first[k],
		               static_cast<int64_t>(sub_warps) * parts_at_once(unroll, k));
	list.long_share =
	    list.blocks ? ((static_cast<uint64_t>(long_blocks) << 32) + list.blocks - 1) / list.blocks
	                : 0;
	return list;
}

/* The work of a block: its number within its class (class 0 stands for all long parts). Short parts
 * wait for memory more than they use it, so their blocks are spread evenly among those of the long
 * parts. With all short blocks at the end, Kron-21 was 2 % slower. */
struct block_share {
	int part_class;
	unsigned block;
};
static __device__ inline struct block_share share_of(const struct part_list &list, unsigned b)
{
	const unsigned before = static_cast<unsigned>(b * list.long_share >> 32),
	               behind = static_cast<unsigned>((b + 1) * list.long_share >> 32);
	if (behind > before)
		return {0, before};
	unsigned s = b - before;
	int k = list.long_classes;
	while (k < EMPTY_CLASS && s >= list.short_blocks[k])
		s -= list.short_blocks[k++];
	return {k, s};
}

/* A part, unpacked by one thread. row -1: there is no such part. */
struct own_part {
	int64_t begin;
	int count, row, slot;
};
static __device__ inline struct own_part part_at(const struct part_list &list, int64_t i,
                                                 int64_t end)
{
	struct own_part own = {0, 0, -1, -1};
	if (i >= end)
		return own;
	if (list.part) {
		const longlong2 bits = __ldg(reinterpret_cast<const longlong2 *>(list.part + i));
		own.begin = bits.x & ((1ll << HG__PART_BITS) - 1);
		own.count = static_cast<int>(static_cast<unsigned long long>(bits.x) >> HG__PART_BITS);
		own.row = static_cast<int>(bits.y);
		own.slot = static_cast<int>(bits.y >> 32);
	} else {
		own.begin = __ldg(list.rowptr + i);
		own.count = static_cast<int>(__ldg(list.rowptr + i + 1) - own.begin);
		own.row = static_cast<int>(i);
	}
	return own;
}
static __device__ inline float scale_at(const struct part_list &list, const struct own_part &own)
{
	return list.row_scale && own.row >= 0 ? __ldg(list.row_scale + own.row) : 1.0f;
}

/* Where entry u of a step is held: in register u / span of lane u % span. FEW: a sub-warp has only
 * 4 lanes. */
template <int UNROLL, bool FEW> struct step_of {
	static constexpr int span = FEW && UNROLL > 4 ? 4 : UNROLL, held = UNROLL / span;

	static __device__ int own(int k) /* the entry of this thread in register k */
	{
		return k * span + static_cast<int>(threadIdx.x) % span;
	}
	/* In a sub-warp of more than `span` lanes, several lanes hold the same entry. */
	template <typename T> static __device__ T given(const T (&v)[held], int u)
	{
		return __shfl_sync(0xffffffffu, v[u / span], u % span, span);
	}
};

/* The iteration, and the functions of `c` that it calls. Entry numbers are those of the CSR. The
 * missing entries of an incomplete step count as zeros, which change no sum, because no sum is -0.
 *
 *     c.ahead(k, entry)              start the loads for register k of the next step, for `entry`
 *     c.nothing_ahead(k)             register k of the next step has no entry
 *     c.turn()                       the next step becomes the current one
 *     c.look_up(live, k, id)         start the loads that need the column id of this thread's
 *                                    entry; live: the entry exists
 *     c.factor(u)                    the factor of entry u, from the lane that holds it
 *     c.load(u, entry, id)           start the gathers of entry u of the step (`entry` is valid
 *                                    only with ENTRIES)
 *     c.load_if(live, u, entry, id)  the same if the entry exists; otherwise its value is 0
 *     c.add(u, factor)               add entry u to the sum
 *     c.passed(entry, scale)         the sum now contains everything before `entry`, in a row with
 *                                    this scale (only with ENTRIES)
 *     c.put(row, slot, scale)        the part is complete: store its sum in the row, or in staging
 *                                    slot `slot` if that is >= 0, and restart from 0
 *     c.zero(row)                    the row is empty
 *
 * A factor that is computed from the row as well as from the column needs three more; `unscored`
 * has them for all others:
 *
 *     c.alone(own)                   all entries up to the next `put` are those of this part
 *     c.together(k, own, shift)      register k of the step has an entry of this part (row -1: of
 *                                    none), and 2^shift neighbouring entries have the same part
 *     c.weigh()                      the gathers of a step have started, and none was added; all
 *                                    lanes of the warp call it together
 *
 * If C::SHARES_STEPS is false, short parts have steps of their own. put is then called only when no
 * gathers are in flight, and can use their registers. */

struct unscored {
	__device__ void alone(const struct own_part &)
	{
	}
	__device__ void together(int, const struct own_part &, int)
	{
	}
	__device__ void weigh()
	{
	}
};

template <int UNROLL, bool FEW, bool ENTRIES, typename C>
static __device__ inline void long_part(const struct part_list &list, const struct own_part &own,
                                        const int32_t *cols, C &c)
{
	using step = step_of<UNROLL, FEW>;
	const int most = __reduce_max_sync(0xffffffffu, own.count);
	const int32_t *col = cols + own.begin;
	int32_t next[step::held];
	const auto look_ahead = [&](int e) {
#pragma unroll
		for (int k = 0; k < step::held; k++) {
			const int mine = e + step::own(k);
			if (mine < own.count) {
				next[k] = __ldg(col + mine);
				c.ahead(k, own.begin + mine);
			} else
				c.nothing_ahead(k);
		}
	};
	look_ahead(0);
	c.alone(own);
	const float scale = scale_at(list, own);
	for (int e = 0; e < most; e += UNROLL) {
		int32_t id[step::held];
		c.turn();
#pragma unroll
		for (int k = 0; k < step::held; k++)
			id[k] = next[k];
		/* This stands before the gathers: behind them, it would not be issued until they complete.
		 */
		look_ahead(e + UNROLL);
#pragma unroll
		for (int k = 0; k < step::held; k++)
			c.look_up(e + step::own(k) < own.count, k, id[k]);
		if (__all_sync(0xffffffffu, e + UNROLL <= own.count)) {
#pragma unroll
			for (int u = 0; u < UNROLL; u++)
				c.load(u, ENTRIES ? own.begin + e + u : 0, step::given(id, u));
		} else { /* the last step of a part, or of the longest parts of the warp */
#pragma unroll
			for (int u = 0; u < UNROLL; u++) {
				const int32_t j = step::given(id, u);
				c.load_if(e + u < own.count, u, ENTRIES ? own.begin + e + u : 0, j);
			}
		}
		c.weigh();
#pragma unroll
		for (int u = 0; u < UNROLL; u++) {
			c.add(u, c.factor(u));
			if (ENTRIES)
				c.passed(own.begin + e + u + 1, scale);
		}
	}
	if (own.row < 0)
		return;
	if (own.count > 0)
		c.put(own.row, own.slot, scale);
	else
		c.zero(own.row);
}

/* Parts i, i + 1, ... with at most 2^shift entries each, as many as fill a step. */
template <int UNROLL, bool FEW, bool ENTRIES, typename C>
static __device__ inline void short_parts(const struct part_list &list, int64_t i, int64_t end,
                                          int shift, const int32_t *cols, C &c)
{
	using step = step_of<UNROLL, FEW>;
	const int last = (1 << shift) - 1; /* the last entry number of a part */
	int32_t id[step::held];
	float scale[step::held];
	long long entry[step::held];
#pragma unroll
	for (int k = 0; k < step::held; k++) {
		const int mine = step::own(k);
		const struct own_part own = part_at(list, i + (mine >> shift), end);
		id[k] = -1;
		entry[k] = own.begin + (mine & last);
		if ((mine & last) < own.count) {
			id[k] = __ldg(cols + entry[k]);
			c.ahead(k, entry[k]);
		} else
			c.nothing_ahead(k);
		c.together(k, own, shift);
		scale[k] = scale_at(list, own);
	}
	c.turn();
#pragma unroll
	for (int k = 0; k < step::held; k++)
		c.look_up(id[k] >= 0, k, id[k]);
#pragma unroll
	for (int u = 0; u < UNROLL; u++) {
		const int32_t j = step::given(id, u);
		const int64_t e = ENTRIES ? step::given(entry, u) : 0;
		c.load_if(j >= 0, u, e, j);
	}
	c.weigh();
#pragma unroll
	for (int u = 0; u < UNROLL; u++) {
		const float s = step::given(scale, u);
		const int64_t e = ENTRIES ? step::given(entry, u) : 0;
		c.add(u, c.factor(u));
		if (ENTRIES)
			c.passed(e + 1, s);
		if ((u & last) == last) {
			/* part_at is called a second time, because keeping its result would take registers from
			 * the gathers. */
			const struct own_part done = part_at(list, i + (u >> shift), end);
			if (done.row >= 0)
				c.put(done.row, done.slot, s);
		}
	}
}

template <int UNROLL, bool FEW, bool ENTRIES, typename C>
static __device__ inline void walk_by_length(const struct part_list &list, const int32_t *cols,
                                             C &c)
{
	const struct block_share share = share_of(list, blockIdx.x);
	const int64_t sub_warp = static_cast<int64_t>(share.block) * blockDim.y + threadIdx.y;
	if (share.part_class == 0) {
		long_part<UNROLL, FEW, ENTRIES>(
		    list, part_at(list, sub_warp, list.first[list.long_classes]), cols, c);
		return;
	}
	const int at_once = parts_at_once(UNROLL, share.part_class);
	const int64_t i = list.first[share.part_class] + sub_warp * at_once,
	              end = list.first[share.part_class + 1];
	if constexpr (C::SHARES_STEPS)
		if (share.part_class < EMPTY_CLASS) {
			short_parts<UNROLL, FEW, ENTRIES>(list, i, end, EMPTY_CLASS - 1 - share.part_class,
			                                  cols, c);
			return;
		}
	for (int64_t r = i; r < end && r < i + at_once; r++)
		c.zero(part_at(list, r, end).row);
}

#endif
