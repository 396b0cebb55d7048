/* What one lane of the aggregation kernels (spmm) does with the parts that its sub-warp takes: it
 * gathers values of X, adds them in the arithmetic of the mode (F32, F16_DISCRETIZED or F16_NAIVE),
 * and writes the sum of each part to Y or to a staging slot. */
#ifndef HG_KERNELS_CUDA_SPMM_SUM_CUH
#define HG_KERNELS_CUDA_SPMM_SUM_CUH

#include "kernels/cuda/spmm_factors.cuh"

/* Ends a batch of F16_DISCRETIZED: adds the scaled sum of the batch to the total. */
template <typename N, int W>
static __device__ inline void close_batch(N (&acc)[W], N (&total)[W], float scale)
{
#pragma unroll
	for (int i = 0; i < W; i++) {
		total[i] = add(total[i], mul(narrow<N>(scale), acc[i]));
		acc[i] = N(0.0f);
	}
}

/* The total of a row as Y receives it, scaled where the mode has not scaled it before. */
template <int MODE>
static __device__ inline float finished(typename accumulator<MODE>::type total, float scale)
{
	if (MODE == HG_ACC_F32)
		return mul(scale, widen(total));
	return widen(MODE == HG_ACC_F16_NAIVE
	                 ? mul(narrow<typename accumulator<MODE>::type>(scale), total)
	                 : total);
}

/* Stores scaled f32 sums of columns c .. c + W - 1 of a row, after the epilogue if EPILOGUE. */
template <typename T, bool EPILOGUE, int W>
static __device__ inline void put_row(const struct spmm_problem &p, int32_t row, int64_t c,
                                      float (&out)[W])
{
	const int64_t at = row * p.ldy + c;
	if constexpr (EPILOGUE)
		p.epilogue.put(static_cast<T *>(p.y), at, row, static_cast<int32_t>(c), out, p.guard);
	else if (sizeof(T) < sizeof(float) && p.y_full)
		store<W>(static_cast<float *>(p.y) + at, out);
	else {
		p.guard.check(c, out);
		store<W>(static_cast<T *>(p.y) + at, out);
	}
}

/* Stores the sum of a finished part. A part that is a whole row (slot < 0) goes to Y. Any other
 * goes to its staging slot, without the scale; F16_DISCRETIZED has already scaled each batch. */
template <typename T, int MODE, bool EPILOGUE, typename N, int W>
static __device__ inline void put_part(const struct spmm_problem &p, int32_t row, int64_t slot,
                                       int64_t c, const N (&sum)[W], float scale)
{
	float out[W];
	if (slot < 0) {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = finished<MODE>(sum[i], scale);
		put_row<T, EPILOGUE>(p, row, c, out);
	} else {
#pragma unroll
		for (int i = 0; i < W; i++)
			out[i] = widen(sum[i]);
		store<W>(p.staging + slot * p.lead + c, out);
	}
}

/* Gathers that a lane has in flight in one step: 8, or 4 where one entry takes at least 8
 * registers. */
template <typename T, int W, int FACTOR>
constexpr int UNROLL = W == 8 && (sizeof(T) == 4 || FACTOR == BY_COLUMN) ? 4 : 8;

/* Blocks that a multiprocessor should hold at once (__launch_bounds__), out of its 65,536
 * registers. It is the largest number that leaves enough registers for the loads of a step. */
template <typename T, int W, int FACTOR>
constexpr int RESIDENT = W == 1                                ? 4
                         : FACTOR == BY_COLUMN                 ? 2
                         : sizeof(T) == 4 || FACTOR == BY_LANE ? 3
                                                               : 4;

/* The columns of one lane, for all parts that its sub-warp takes. walk_by_length calls these
 * functions. A lane beyond the last column takes part as well, because it loads column ids and
 * factors for the other lanes of its sub-warp; its own sums are not stored. */
template <typename T, int W, int MODE, int FACTOR, bool FEW, bool EPILOGUE>
struct lane_sum : unscored {
	using N = typename accumulator<MODE>::type;
	static constexpr int K = FACTOR == BY_COLUMN ? W : 1, STEP = UNROLL<T, W, FACTOR>;
	static constexpr bool SHARED = FACTOR != UNIT && FACTOR < BY_LANE, SHARES_STEPS = !EPILOGUE;
	using step = step_of<STEP, FEW>;

	const struct spmm_problem &p;
	const char *x;
	int head[K];
	N acc[W] = {}, total[W] = {};
	raw<T, W> bits[STEP];
	N own_factor[STEP][K];
	struct shared_factors<FACTOR, step::held> shared;

	static __device__ int64_t own_column()
	{
		return own_unit() * W;
	}
	__device__ explicit lane_sum(const struct spmm_problem &problem) : p(problem)
	{
		const int64_t c = own_column() < p.cols ? own_column() : (p.cols - 1) / W * W;
		x = reinterpret_cast<const char *>(static_cast<const T *>(p.x) + c);
#pragma unroll
		/* Padding columns read the weight of the last head; their sums are not used. */
		for (int i = 0; i < K; i++)
			head[i] = FACTOR < BY_LANE
			              ? 0
			              : static_cast<int>(c + i < p.cols ? (c + i) / p.head_cols : p.heads - 1);
	}
	__device__ void ahead(int k, int64_t entry)
	{
		shared.ahead(p, k, entry);
	}
	__device__ void nothing_ahead(int k)
	{
		shared.nothing_ahead(k);
	}
	__device__ void turn()
	{
		shared.turn();
	}
	__device__ void look_up(bool live, int k, int32_t id)
	{
		shared.look_up(p, live, k, id);
	}
	__device__ float factor(int u)
	{
		return SHARED ? widen(step::given(shared.now, u)) : 1.0f;
	}
	__device__ void load(int u, int64_t entry, int32_t j)
	{
		bits[u] = fetch<W>(reinterpret_cast<const T *>(
		    x + static_cast<uint64_t>(static_cast<uint32_t>(j)) * p.pitch));
		if (FACTOR >= BY_LANE)
			factors(p, entry, j, head, own_factor[u]);
	}
	__device__ void load_if(bool live, int u, int64_t entry, int32_t j)
	{
		bits[u] = {};
#pragma unroll
		for (int i = 0; FACTOR >= BY_LANE && i < K; i++)
			own_factor[u][i] = N(0.0f);
		if (live)
			load(u, entry, j);
	}
	__device__ void add(int u, float factor)
	{
		N v[W];
		unpack(bits[u], v);
#pragma unroll
		for (int i = 0; i < W; i++) {
			const N f = FACTOR >= BY_LANE ? own_factor[u][i % K] : narrow<N>(factor);
			acc[i] = FACTOR == UNIT ? ::add(acc[i], v[i])
			         : FACTOR == ROUNDED
			             ? ::add(acc[i], N(widen(narrow<T>(mul(factor, widen(v[i]))))))
			             : fused(f, v[i], acc[i]);
		}
	}
	__device__ void passed(int64_t entry, float r)
	{
		if (MODE == HG_ACC_F16_DISCRETIZED && entry % HG_BATCH_EDGES == 0)
			close_batch(acc, total, mul(p.alpha, r));
	}
	__device__ void put(int32_t row, int64_t slot, float r)
	{
		const float scale = mul(p.alpha, r);
		if (MODE == HG_ACC_F16_DISCRETIZED)
			close_batch(acc, total, scale);
		if (own_column() < p.cols)
			put_part<T, MODE, EPILOGUE>(p, row, slot, own_column(),
			                            MODE == HG_ACC_F16_DISCRETIZED ? total : acc, scale);
#pragma unroll
		for (int i = 0; i < W; i++)
			acc[i] = total[i] = N(0.0f);
	}
	__device__ void zero(int32_t row)
	{
		float nothing[W] = {};
		if (own_column() < p.cols)
			put_row<T, EPILOGUE>(p, row, own_column(), nothing);
	}
};

#endif
