/* What all CUDA kernels share: errors as messages, launches, grids, access to elements, and
 * reductions. All work is queued on the context's stream and can be captured in a CUDA graph, so
 * nothing here allocates memory or synchronises with the host. */
#ifndef HG_KERNELS_CUDA_LAUNCH_CUH
#define HG_KERNELS_CUDA_LAUNCH_CUH

#include <cstdint>
#include <cstring>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "core/process.h"
#include "kernels/cuda/state.cuh"
#include "kernels/kernels.h"

/* The two functions of each row, one row per line of kernels.def. They are declared here with C
 * linkage, so that their definitions need no `extern "C"`. */
HG_EXTERN_C_BEGIN
#define HG_KERNEL(name, args)                                                            \
	HG_NODISCARD hg_status hg__cuda_##name(hg_context *ctx, const struct hg__##args *a); \
	size_t hg__cuda_##name##_workspace(const hg_context *ctx, const struct hg__##args *a);
#include "kernels/kernels.def"
#undef HG_KERNEL
extern const struct hg__kernels hg__kernels_cuda;
HG_EXTERN_C_END

/* The workspace of a kernel that takes none: HG__NO_WORKSPACE(act, act_args). */
#define HG__NO_WORKSPACE(name, args)                                                  \
	size_t hg__cuda_##name##_workspace(const hg_context *, const struct hg__##args *) \
	{                                                                                 \
		return 0;                                                                     \
	}

/* ---- host side ---- */

/* The context's stream. The current device belongs to the calling thread and not to the context, so
 * it is set here, where every launch passes. */
static inline cudaStream_t stream_of(const hg_context *ctx)
{
	/* the device was valid when the context was opened; a lost device shows at the launch */
	(void)cudaSetDevice(static_cast<const hg__cuda_state *>(ctx->state)->device);
	return static_cast<cudaStream_t>(ctx->stream);
}

/* Turns a CUDA error into a status and a message. `what` names the operation. In a fork of the
 * process that made the context every CUDA call fails, and the message then says so. */
HG_NODISCARD static inline hg_status cuda_status(hg_context *ctx, cudaError_t error,
                                                 const char *what)
{
	if (error == cudaSuccess)
		return HG_OK;
	/* clear the error, because it is reported here and the next call must not find it again */
	(void)cudaGetLastError();
	if (ctx)
		HG__TRY(hg__same_process(ctx));
	return hg__fail(ctx, error == cudaErrorMemoryAllocation ? HG_ERR_NOMEM : HG_ERR_DEVICE,
	                "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/* Returns early with the message of a failing CUDA call: HG__CUDA(ctx, "backend: copy",
 * cudaMemcpyAsync(...)). */
#define HG__CUDA(ctx, what, call)                                              \
	do {                                                                       \
		const hg_status hg__cuda_status_ = cuda_status((ctx), (call), (what)); \
		if (hg__cuda_status_ < 0)                                              \
			return hg__cuda_status_;                                           \
	} while (0)

/* The status of a launch with <<<...>>>, which the code that builds graphs uses. */
HG_NODISCARD static inline hg_status launched(hg_context *ctx, const char *kernel)
{
	return cuda_status(ctx, cudaGetLastError(), kernel);
}

/* Queues a kernel so that it overlaps with its neighbours in the stream (programmatic dependent
 * launch). A kernel may be launched while the previous one still runs: its blocks are placed and
 * its first lines execute as room becomes free, and after_previous() then waits for everything that
 * the previous kernel writes. So the first line of such a kernel is after_previous(). Before that
 * line it must not read or write memory that another kernel may be writing or reading. (The arrays
 * of a graph are an exception. Most are complete before any kernel that reads them is queued, and
 * never change. Those of padded batches and of graph streams are changed in the stream, but only by
 * copies and by kernels of <<<...>>>: these begin when all kernels before them have ended, and no
 * kernel behind them begins before they end. Work that frees memory or a plan waits for those
 * kernels first.)
 *
 * Waiting for one kernel is enough to wait for all earlier ones, because the previous kernel has
 * itself waited before it completes. Work that is queued in other ways (libraries, copies, fills,
 * <<<...>>>) waits for the end of the work before it, and the work after it waits for its end.
 *
 * cluster: number of blocks, neighbours in x, that run at the same time and can access each other's
 * shared memory (cluster.cuh); 1: no cluster. shared: bytes of dynamic shared memory. */
HG_NODISCARD static inline cudaError_t queue_kernel(const hg_context *ctx, const void *kernel,
                                                    unsigned cluster, dim3 grid, dim3 block,
                                                    void **args, size_t shared = 0)
{
	cudaLaunchAttribute attributes[2] = {};
	unsigned count = 0;
	if (static_cast<const hg__cuda_state *>(ctx->state)->overlaps) {
		attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
		attributes[count++].val.programmaticStreamSerializationAllowed = 1;
	}
	if (cluster > 1) {
		attributes[count].id = cudaLaunchAttributeClusterDimension;
		attributes[count].val.clusterDim.x = cluster;
		attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
		count++;
	}
	cudaLaunchConfig_t config = {};
	config.gridDim = grid;
	config.blockDim = block;
	config.dynamicSmemBytes = shared;
	config.stream = stream_of(ctx);
	config.attrs = attributes;
	config.numAttrs = count;
	return cudaLaunchKernelExC(&config, kernel, args);
}

template <typename... P, typename... A>
HG_NODISCARD static inline hg_status launch_clusters(hg_context *ctx, const char *what,
                                                     void (*kernel)(P...), unsigned cluster,
                                                     dim3 grid, dim3 block, A &&...args)
{
	const auto queue = [&](P... values) {
		void *pointers[] = {const_cast<void *>(static_cast<const void *>(&values))...};
		return queue_kernel(ctx, reinterpret_cast<const void *>(kernel), cluster, grid, block,
		                    pointers);
	};
	return cuda_status(ctx, queue(static_cast<A &&>(args)...), what);
}
/* Queues a kernel: `return launch(ctx, "colsum", colsum_kernel<T>, grid, block, args...);`. `what`
 * appears in the error message. */
template <typename... P, typename... A>
HG_NODISCARD static inline hg_status launch(hg_context *ctx, const char *what, void (*kernel)(P...),
                                            dim3 grid, dim3 block, A &&...args)
{
	return launch_clusters(ctx, what, kernel, 1, grid, block, static_cast<A &&>(args)...);
}

/* Threads of a block unless a kernel needs another number: eight warps, so that eight blocks fill a
 * multiprocessor. */
constexpr int BLOCK = 256;

/* Number of blocks for `items` pieces of work with `per_block` in each: at least one, and at most
 * what a grid can hold. The limit is harmless: kernels over rows, elements and nodes iterate with a
 * grid stride, and for the edge kernels, with one item per sub-warp, 2^31 blocks would be more
 * edges than memory holds. */
static inline unsigned grid_for(int64_t items, int64_t per_block)
{
	const int64_t blocks = (items + per_block - 1) / per_block;
	return blocks < 1           ? 1u
	       : blocks > INT32_MAX ? static_cast<unsigned>(INT32_MAX)
	                            : static_cast<unsigned>(blocks);
}

static inline bool is_float(const struct hg__mat &m)
{
	return m.dtype == HG_F16 || m.dtype == HG_F32;
}

/* The status and message of operands that a kernel cannot take (support.h). types: those that it
 * could take. */
template <typename... M>
static inline hg_status misfit(hg_context *ctx, const char *kernel, enum hg__types types,
                               const M &...mats)
{
	const struct hg__mat *const operands[] = {&mats...};
	return hg__check_operands(ctx, 0, kernel, types, operands, static_cast<int>(sizeof...(mats)));
}

/* Whether is_whole holds for every entry of a table, for static_assert: a hole in a table of
 * functions does not compile. */
template <typename T, size_t N, typename F> constexpr bool every(const T (&table)[N], F is_whole)
{
	for (size_t i = 0; i < N; i++)
		if (!is_whole(table[i]))
			return false;
	return true;
}

/* Calls f(T{}) with T = __half or float for a floating-point dtype. Element types of kernels are
 * chosen only here.
 *
 *     return with_float(ctx, "act", a->x.dtype, [&](auto zero) {
 *         using T = decltype(zero);
 *         return launch(ctx, "act", kernel<T>, ...);
 *     }); */
template <typename F>
static inline hg_status with_float(hg_context *ctx, const char *kernel, hg_dtype dtype, F f)
{
	if (dtype == HG_F16)
		return f(__half{});
	if (dtype == HG_F32)
		return f(float{});
	return hg__fail(ctx, HG_ERR_UNSUPPORTED, "%s: operands of %s; supported are f16 and f32",
	                kernel, hg_dtype_name(dtype));
}

/* Whether rows can be read in packs of 8, which is true for all leading dimensions but 1, 2 and 4.
 * An absent operand (ld 0) counts as wide. A matrix without rows has no data, but its ld still
 * decides, because it also holds for the vectors that go with the matrix. */
static inline bool wide(const struct hg__mat &m)
{
	return m.ld % 8 == 0;
}

/* Calls f(W) with W an integral constant: 8 if by_eight, otherwise 1. Use: `[&](auto width) {
 * constexpr int W = decltype(width)::value; ... }`. */
template <int N> struct int_constant {
	static constexpr int value = N;
};
template <typename F> static inline hg_status with_width(bool by_eight, F f)
{
	return by_eight ? f(int_constant<8>{}) : f(int_constant<1>{});
}

template <typename T> static inline T *data_of(const struct hg__mat &m)
{
	return static_cast<T *>(m.data);
}

/* ---- device side: waiting for the previous kernel ---- */

/* Waits until all earlier work is complete and its results can be read. From this line on the next
 * kernel may be placed beside this one. */
static __device__ inline void after_previous()
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* ---- device side: position in the grid ---- */

static __device__ inline int64_t global_thread()
{
	return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
static __device__ inline int64_t global_threads()
{
	return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

/* ---- device side: elements. State in memory, f32 in registers, one rounding at the store ---- */

static __device__ inline float widen(float x)
{
	return x;
}
static __device__ inline float widen(__half x)
{
	return __half2float(x);
}
template <typename T> static __device__ inline T narrow(float x);
template <> __device__ inline float narrow<float>(float x)
{
	return x;
}
template <> __device__ inline __half narrow<__half>(float x)
{
	return __float2half_rn(x);
}

/* W = 8: one 16-byte access for halves, two for floats; the address is a multiple of 16 bytes. W =
 * 2: one access, the address a multiple of its size. W = 1: one element. */
template <int W> static __device__ inline void load(const float *p, float (&x)[W])
{
	static_assert(W == 1 || W == 2 || W == 8, "packs are 1, 2 or 8 wide");
	if constexpr (W == 1) {
		x[0] = *p;
	} else if constexpr (W == 2) {
		const float2 a = *reinterpret_cast<const float2 *>(p);
		x[0] = a.x, x[1] = a.y;
	} else {
		const float4 a = reinterpret_cast<const float4 *>(p)[0],
		             b = reinterpret_cast<const float4 *>(p)[1];
		x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
		x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
	}
}

/* Eight halves are moved as one uint4. A struct of __half2 would be copied in four 4-byte accesses,
 * because __half2 has its own assignment operator. */
static_assert(sizeof(uint4) == 4 * sizeof(__half2), "a pack of 8 halves");

template <int W> static __device__ inline void load(const __half *p, float (&x)[W])
{
	static_assert(W == 1 || W == 2 || W == 8, "packs are 1, 2 or 8 wide");
	if constexpr (W == 1) {
		x[0] = __half2float(*p);
	} else if constexpr (W == 2) {
		const float2 a = __half22float2(*reinterpret_cast<const __half2 *>(p));
		x[0] = a.x, x[1] = a.y;
	} else {
		const uint4 bits = *reinterpret_cast<const uint4 *>(p);
		__half2 h[4];
		memcpy(static_cast<void *>(h), &bits, sizeof h);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float2 f = __half22float2(h[i]);
			x[2 * i] = f.x;
			x[2 * i + 1] = f.y;
		}
	}
}

template <int W> static __device__ inline void store(float *p, const float (&x)[W])
{
	static_assert(W == 1 || W == 2 || W == 8, "packs are 1, 2 or 8 wide");
	if constexpr (W == 1) {
		*p = x[0];
	} else if constexpr (W == 2) {
		*reinterpret_cast<float2 *>(p) = make_float2(x[0], x[1]);
	} else {
		reinterpret_cast<float4 *>(p)[0] = make_float4(x[0], x[1], x[2], x[3]);
		reinterpret_cast<float4 *>(p)[1] = make_float4(x[4], x[5], x[6], x[7]);
	}
}

template <int W> static __device__ inline void store(__half *p, const float (&x)[W])
{
	static_assert(W == 1 || W == 2 || W == 8, "packs are 1, 2 or 8 wide");
	if constexpr (W == 1) {
		*p = __float2half_rn(x[0]);
	} else if constexpr (W == 2) {
		*reinterpret_cast<__half2 *>(p) = __floats2half2_rn(x[0], x[1]);
	} else {
		__half2 h[4];
#pragma unroll
		for (int i = 0; i < 4; i++)
			h[i] = __floats2half2_rn(x[2 * i], x[2 * i + 1]);
		uint4 bits;
		memcpy(&bits, h, sizeof bits);
		*reinterpret_cast<uint4 *>(p) = bits;
	}
}

/* One element of a matrix whose type is known only at run time. It is meant for small operands such
 * as a bias or per-column parameters. */
static __device__ inline float element(const struct hg__mat &m, int64_t row, int64_t col)
{
	const int64_t i = row * m.ld + col;
	return m.dtype == HG_F16 ? __half2float(static_cast<const __half *>(m.data)[i])
	                         : static_cast<const float *>(m.data)[i];
}

/* ---- device side: reductions. All are butterflies: every lane ends with the same bits, and the
 * order depends only on LANES ---- */

/* Reduces over LANES neighbouring lanes, whose numbers differ only in the lowest log2(LANES) bits.
 * All lanes of `mask` must take part. */
template <int LANES> static __device__ inline float lanes_sum(float x, unsigned mask = 0xffffffffu)
{
#pragma unroll
	for (int step = LANES / 2; step > 0; step /= 2)
		x += __shfl_xor_sync(mask, x, step);
	return x;
}
template <int LANES>
static __device__ inline double lanes_sum(double x, unsigned mask = 0xffffffffu)
{
#pragma unroll
	for (int step = LANES / 2; step > 0; step /= 2)
		x += __shfl_xor_sync(mask, x, step);
	return x;
}
template <int LANES>
static __device__ inline int64_t lanes_sum(int64_t x, unsigned mask = 0xffffffffu)
{
#pragma unroll
	for (int step = LANES / 2; step > 0; step /= 2)
		x += static_cast<int64_t>(__shfl_xor_sync(mask, static_cast<long long>(x), step));
	return x;
}
/* The larger number; NaN if either is a NaN. */
static __device__ inline float max_nan(float a, float b)
{
	return a > b || a != a ? a : b;
}

/* Sum over a block of BLOCK threads, with the same bits in every thread; V is float, double or
 * int64_t. All threads must call it. No barrier is needed between two calls. */
template <typename V> static __device__ inline V block_sum(V x)
{
	__shared__ V part[BLOCK / 32];
	x = lanes_sum<32>(x);
	__syncthreads(); /* another thread may still be reading the result of an earlier call */
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = x;
	__syncthreads();
	V sum = part[0];
#pragma unroll
	for (int warp = 1; warp < BLOCK / 32; warp++)
		sum += part[warp];
	return sum;
}

#endif
