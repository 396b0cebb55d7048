/* The CUDA backend behind core/backend.h: opening a context, memory, the order of streams, and
 * captured work. */

#include <cstdio>

/* NVTX is a header of the toolkit; without a profiler its calls do nothing. */
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HG_HAVE_NVTX 1
#else
#define HG_HAVE_NVTX 0
#endif

#include "kernels/cuda/gemm_norm.cuh"
#include "kernels/cuda/launch.cuh"

static hg__cuda_state *state_of(hg_context *ctx)
{
	return static_cast<hg__cuda_state *>(ctx->state);
}

/* Whether this is a fork of the process that opened the context. A fork can neither use nor free
 * what belongs to the device. */
static bool is_forked(const hg_context *ctx)
{
	return ctx->process != hg__process();
}

/* ---- opening and closing ---- */

static __global__ void probe_kernel()
{
}

/* Whether clusters of blocks and overlapping kernels can be used. Both need sm_90 and code compiled
 * for it, because PTX for older architectures does not have the instructions. */
static bool is_for_sm_90(const cudaFuncAttributes &code, const cudaDeviceProp &properties)
{
	return properties.major >= 9 && code.ptxVersion >= 90;
}
/* If false, a kernel starts only after the previous one has ended. For measurements. */
constexpr bool OVERLAP = true;
/* If false, no clusters are used. For measurements. */
constexpr bool CLUSTERS = true;

/* Finds device `index` and checks that this build has code for it. If there is no usable device the
 * status is "unsupported", so that AUTO can fall back to the CPU. */
static hg_status find_device(hg_context *ctx, int index, cudaDeviceProp *properties,
                             cudaFuncAttributes *code)
{
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);
	if (error != cudaSuccess) {
		(void)cudaGetLastError();
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "context: no CUDA device answers: %s (%s)%s",
		                cudaGetErrorString(error), cudaGetErrorName(error),
		                error == cudaErrorInitializationError
		                    ? "; none ever does in a fork of a process that has used CUDA"
		                    : "");
	}
	if (count == 0)
		return hg__fail(ctx, HG_ERR_UNSUPPORTED, "context: the CUDA driver reports no device");
	if (index < 0 || index >= count)
		return hg__fail(ctx, HG_ERR_ARG,
		                "context: device_index is %d, the CUDA driver reports %d device(s)", index,
		                count);
	HG__CUDA(ctx, "context: device properties", cudaGetDeviceProperties(properties, index));
	HG__CUDA(ctx, "context: cudaSetDevice", cudaSetDevice(index));
	error = cudaFuncGetAttributes(code, probe_kernel);
	if (error != cudaSuccess) {
		(void)cudaGetLastError();
		return hg__fail(ctx, HG_ERR_UNSUPPORTED,
		                "context: this build cannot run on %s (sm_%d%d): %s (%s)", properties->name,
		                properties->major, properties->minor, cudaGetErrorString(error),
		                cudaGetErrorName(error));
	}
	return HG_OK;
}

static hg_status open_stream(hg_context *ctx, const hg_context_config *config,
                             hg__cuda_state *state)
{
	if (config->stream) {
		ctx->stream = config->stream;
		return HG_OK;
	}
	cudaStream_t stream = nullptr;
	HG__CUDA(ctx, "context: stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ctx->stream = stream;
	state->owns_stream = true;
	return HG_OK;
}

/* The counters belong to the context, like its stream and its event. They are not counted among the
 * allocations of its user. */
static hg_status open_counters(hg_context *ctx, hg__cuda_state *state)
{
	HG__CUDA(ctx, "context: counters",
	         cudaMalloc(&state->counters, COUNTERS * sizeof *state->counters));
	return cuda_status(
	    ctx,
	    cudaMemsetAsync(state->counters, 0, COUNTERS * sizeof *state->counters, stream_of(ctx)),
	    "context: counters");
}

static hg_status open_event(hg_context *ctx, hg__cuda_state *state)
{
	return cuda_status(ctx, cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming),
	                   "context: event");
}

static hg_status open_parts(hg_context *ctx, const hg_context_config *config, hg__cuda_state *state)
{
	HG__TRY(open_stream(ctx, config, state));
	HG__TRY(open_event(ctx, state));
	const cublasStatus_t lt = cublasLtCreate(&state->lt);
	if (lt != CUBLAS_STATUS_SUCCESS)
		return hg__fail(ctx, HG_ERR_DEVICE, "context: cuBLASLt did not start: %s",
		                cublasLtGetStatusString(lt));
	return open_counters(ctx, state);
}

static void close_context(hg_context *ctx)
{
	hg__cuda_state *state = state_of(ctx);
	if (!state)
		return;
	const bool owns_library = ctx->of == nullptr; /* a branch borrows it */
	if (is_forked(ctx)) {
		if (owns_library)
			hg__gemm_plans_free(ctx, state->plans);
		hg__host_free(ctx, state, sizeof *state);
		ctx->state = nullptr;
		return;
	}
	/* errors below are ignored, because the context ends and nothing can report them */
	(void)cudaSetDevice(state->device);
	if (ctx->stream || !state->owns_stream)
		(void)cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream));
	if (owns_library)
		hg__gemm_plans_free(ctx, state->plans);
	hg__device_free(ctx, state->lt_workspace, LT_WORKSPACE_BYTES);
	(void)cudaFree(state->counters);
	if (owns_library && state->lt)
		(void)cublasLtDestroy(state->lt);
	if (state->event)
		(void)cudaEventDestroy(state->event);
	if (state->owns_stream)
		(void)cudaStreamDestroy(static_cast<cudaStream_t>(ctx->stream));
	(void)cudaGetLastError();
	ctx->stream = nullptr;
	ctx->state = nullptr;
	hg__host_free(ctx, state, sizeof *state);
}

static hg_status open_context(hg_context *ctx, const hg_context_config *config)
{
	cudaDeviceProp properties;
	cudaFuncAttributes code;
	HG__TRY(find_device(ctx, config->device_index, &properties, &code));
	void *memory = nullptr;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg__cuda_state), "the CUDA backend", &memory));
	hg__cuda_state *state = static_cast<hg__cuda_state *>(memory);
	state->device = config->device_index;
	state->l2_bytes = properties.l2CacheSize;
	state->overlaps = OVERLAP && is_for_sm_90(code, properties);
	state->clusters = CLUSTERS && is_for_sm_90(code, properties);
	ctx->state = state;
	const hg_status status = open_parts(ctx, config, state);
	if (status < 0)
		close_context(ctx);
	else
		(void)snprintf(ctx->device_name, sizeof ctx->device_name, "%.70s (sm_%d%d)",
		               properties.name, properties.major, properties.minor);
	return status;
}

static hg_status synchronize(hg_context *ctx);

/* A branch uses the plans of products that its context has made, and finds no algorithm itself. */
static hg_status open_branch(hg_context *of, hg_context *branch)
{
	void *memory = nullptr;
	HG__TRY(hg__host_alloc(branch, 1, sizeof(hg__cuda_state), "the CUDA backend", &memory));
	hg__cuda_state *state = static_cast<hg__cuda_state *>(memory);
	*state = *state_of(of);
	state->owns_stream = false;
	state->event = nullptr;
	state->lt_workspace = nullptr;
	state->counters = nullptr;
	branch->state = state;
	const hg_context_config config = {};
	HG__TRY(open_stream(branch, &config, state));
	HG__TRY(open_event(branch, state));
	HG__TRY(open_counters(branch, state));
	if (state_of(of)->lt_workspace)
		HG__TRY(hg__device_alloc(branch, LT_WORKSPACE_BYTES, "workspace of products",
		                         &state->lt_workspace));
	return synchronize(branch);
}

/* ---- memory ---- */

/* Memory comes from plain cudaMalloc. A tape has one arena and one workspace, so allocations are
 * few, and cudaFree waits for kernels that still use the memory. */
static void *device_alloc(hg_context *ctx, size_t bytes)
{
	void *memory = nullptr;
	if (is_forked(ctx))
		return nullptr;
	(void)stream_of(ctx);
	if (cudaMalloc(&memory, bytes) == cudaSuccess)
		return memory;
	(void)cudaGetLastError();
	return nullptr;
}

static void device_free(hg_context *ctx, void *memory)
{
	if (is_forked(ctx))
		return;
	(void)stream_of(ctx);
	/* an error of an earlier kernel shows here as well, and the next synchronize reports it */
	(void)cudaFree(memory);
}

/* The host memory may be pageable or not. Waiting for the stream is correct for both, and also
 * waits for earlier work of this context that uses `device`. What the device uses may be pinned
 * host memory, so CUDA finds the direction of a copy itself. */
static hg_status copy_in(hg_context *ctx, void *device, const void *host, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "copy to the device",
	         cudaMemcpyAsync(device, host, bytes, cudaMemcpyDefault, stream_of(ctx)));
	HG__CUDA(ctx, "copy to the device", cudaStreamSynchronize(stream_of(ctx)));
	return HG_OK;
}

static void *host_alloc(hg_context *ctx, size_t bytes)
{
	void *memory = nullptr;
	if (is_forked(ctx))
		return nullptr;
	(void)stream_of(ctx);
	if (cudaMallocHost(&memory, bytes) == cudaSuccess)
		return memory;
	(void)cudaGetLastError();
	return nullptr;
}

/* Queued work may still read the memory; an error of it shows in the next synchronize as well. */
static void host_free(hg_context *ctx, void *memory)
{
	if (is_forked(ctx))
		return;
	(void)cudaStreamSynchronize(stream_of(ctx));
	(void)cudaFreeHost(memory);
}

static hg_status copy_in_async(hg_context *ctx, void *device, const void *host, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "copy to the device",
	         cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_of(ctx)));
	return HG_OK;
}

static hg_status copy_out(hg_context *ctx, void *host, const void *device, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "copy from the device",
	         cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault, stream_of(ctx)));
	HG__CUDA(ctx, "copy from the device", cudaStreamSynchronize(stream_of(ctx)));
	return HG_OK;
}

static hg_status copy_on_device(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	return cuda_status(ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(ctx)),
	                   "copy on the device");
}

static hg_status fill_memory(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	return cuda_status(ctx, cudaMemsetAsync(memory, byte, bytes, stream_of(ctx)),
	                   "fill device memory");
}

/* Without a context this checks only whether there is a device that this build has code for
 * (hg__backend_find). */
static hg_status memory_info(hg_context *ctx, size_t *total, size_t *available)
{
	if (ctx) {
		HG__TRY(hg__same_process(ctx));
		(void)stream_of(ctx);
	} else {
		cudaFuncAttributes attributes;
		HG__CUDA(ctx, "device memory", cudaFuncGetAttributes(&attributes, probe_kernel));
	}
	return cuda_status(ctx, cudaMemGetInfo(available, total), "device memory");
}

/* Bytes that the library still has to allocate: one workspace for cuBLASLt, at the first product.
 */
static size_t library_bytes(const hg_context *ctx)
{
	return static_cast<const hg__cuda_state *>(ctx->state)->lt_workspace ? 0 : LT_WORKSPACE_BYTES;
}

/* ---- order of streams ---- */

static hg_status synchronize(hg_context *ctx)
{
	HG__TRY(hg__same_process(ctx));
	return cuda_status(ctx, cudaStreamSynchronize(stream_of(ctx)), "synchronize");
}

/* Makes `after` wait for all work that is queued on `before` now. One event is enough, because a
 * wait refers to the latest record at the time the wait is queued. */
static hg_status order_streams(hg_context *ctx, cudaStream_t before, cudaStream_t after)
{
	if (before == after)
		return HG_OK;
	HG__CUDA(ctx, "order two streams", cudaEventRecord(state_of(ctx)->event, before));
	return cuda_status(ctx, cudaStreamWaitEvent(after, state_of(ctx)->event, 0),
	                   "order two streams");
}

static hg_status stream_publish(hg_context *ctx, void *foreign_stream)
{
	return order_streams(ctx, stream_of(ctx), static_cast<cudaStream_t>(foreign_stream));
}

static hg_status stream_await(hg_context *ctx, void *foreign_stream)
{
	const cudaStream_t own = stream_of(ctx);
	return order_streams(ctx, static_cast<cudaStream_t>(foreign_stream), own);
}

/* ---- captured work ---- */

/* The capture is thread-local, so that calls of other threads on their contexts, allocations
 * included, do not disturb it. If the owner of the stream is already capturing it, the call is
 * refused, because the work would become part of the owner's capture. */
static hg_status capture_begin(hg_context *ctx)
{
	HG__TRY(hg__same_process(ctx));
	cudaStreamCaptureStatus running = cudaStreamCaptureStatusNone;
	HG__CUDA(ctx, "capture", cudaStreamIsCapturing(stream_of(ctx), &running));
	if (running != cudaStreamCaptureStatusNone)
		return hg__fail(ctx, HG_ERR_STATE,
		                "capture: the context's stream is being captured already");
	return cuda_status(
	    ctx, cudaStreamBeginCapture(stream_of(ctx), cudaStreamCaptureModeThreadLocal), "capture");
}

/* Counts the operations of a graph and instantiates it. It is also uploaded to the device, so that
 * the first launch takes no longer than the others. */
static hg_status make_ready(hg_context *ctx, cudaGraph_t graph, cudaGraphExec_t *ready,
                            int64_t *operations)
{
	size_t nodes = 0;
	HG__CUDA(ctx, "captured work", cudaGraphGetNodes(graph, nullptr, &nodes));
	*operations = static_cast<int64_t>(nodes);
	HG__CUDA(ctx, "captured work", cudaGraphInstantiate(ready, graph, 0));
	return cuda_status(ctx, cudaGraphUpload(*ready, stream_of(ctx)), "captured work");
}

static hg_status capture_end(hg_context *ctx, void **work, int64_t *operations)
{
	cudaGraph_t graph = nullptr;
	const cudaError_t error = cudaStreamEndCapture(stream_of(ctx), &graph);
	cudaGraphExec_t ready = nullptr;
	hg_status status = HG_OK;
	if (!work)
		(void)cudaGetLastError(); /* the call that broke the capture has reported the error */
	else if ((status = cuda_status(ctx, error, "capture")) >= 0)
		status = make_ready(ctx, graph, &ready, operations);
	if (graph)
		(void)cudaGraphDestroy(graph); /* the instantiated graph is a copy */
	if (status < 0 && ready) {
		(void)cudaGraphExecDestroy(ready);
		ready = nullptr;
	}
	if (work)
		*work = ready;
	return status;
}

static hg_status work_launch(hg_context *ctx, void *work)
{
	HG__TRY(hg__same_process(ctx));
	return cuda_status(ctx, cudaGraphLaunch(static_cast<cudaGraphExec_t>(work), stream_of(ctx)),
	                   "captured work");
}

/* Waits first, because a launch may still be running. */
static void work_free(hg_context *ctx, void *work)
{
	if (is_forked(ctx))
		return;
	/* an error of the work shows at the next synchronize as well */
	(void)cudaStreamSynchronize(stream_of(ctx));
	(void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(work));
}

/* ---- times ---- */

static void marks_free(hg_context *ctx, void *marks, int64_t count)
{
	cudaEvent_t *event = static_cast<cudaEvent_t *>(marks);
	for (int64_t k = 0; event && k < count; k++)
		if (event[k] && !is_forked(ctx))
			(void)cudaEventDestroy(event[k]);
	hg__host_free(ctx, marks, static_cast<size_t>(count) * sizeof(cudaEvent_t));
}

static hg_status marks_make(hg_context *ctx, int64_t count, void **marks)
{
	*marks = nullptr;
	HG__TRY(hg__same_process(ctx));
	HG__TRY(hg__host_alloc(ctx, static_cast<size_t>(count), sizeof(cudaEvent_t), "profile: marks",
	                       marks));
	cudaEvent_t *event = static_cast<cudaEvent_t *>(*marks);
	(void)stream_of(ctx); /* events belong to the device of the context */
	for (int64_t k = 0; k < count; k++) {
		const hg_status status = cuda_status(ctx, cudaEventCreate(&event[k]), "profile: an event");
		if (status < 0) {
			event[k] = nullptr;
			marks_free(ctx, *marks, count);
			*marks = nullptr;
			return status;
		}
	}
	return HG_OK;
}

static hg_status mark(hg_context *ctx, void *marks, int64_t k)
{
	return cuda_status(ctx, cudaEventRecord(static_cast<cudaEvent_t *>(marks)[k], stream_of(ctx)),
	                   "profile: an event");
}

static hg_status marks_read(hg_context *ctx, void *marks, int64_t count, double *seconds)
{
	const cudaEvent_t *event = static_cast<const cudaEvent_t *>(marks);
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "profile", cudaStreamSynchronize(stream_of(ctx)));
	for (int64_t k = 0; k < count; k++) {
		float ms = 0.0f;
		HG__CUDA(ctx, "profile: an event", cudaEventElapsedTime(&ms, event[0], event[k]));
		seconds[k] = 1e-3 * static_cast<double>(ms);
	}
	return HG_OK;
}

#if HG_HAVE_NVTX
static void range_begin(const char *name)
{
	(void)nvtxRangePushA(name);
}

static void range_end(void)
{
	(void)nvtxRangePop();
}
#endif

/* Large bins have kernels of their own, which take some 0.06 ms of a step of 5 layers however few
 * bins there are. With graphs like those of NCI1 and 32 columns such a step took 0.123 ms on an
 * H200 and 0.119 op by op on 7,700 nodes, 0.135 and 0.150 on 15,400; one of 12 layers 0.190 and
 * 0.205 on 1,900. */
constexpr int64_t LARGE_BINS_ROWS = 8192;

/* Assigned by name, because C++17 has no designated initialisers. */
static constexpr struct hg__backend make_backend()
{
	struct hg__backend b = {};
	b.kind = HG_DEVICE_CUDA;
	b.name = "cuda";
	b.wants_parts = 1;
	b.wants_dense = 1;
	b.small_matrices_most = hg__cuda_small_matrices_most;
	b.large_bins_rows = LARGE_BINS_ROWS;
	b.takes_norms = hg__cuda_takes_norms;
	b.open = open_context;
	b.close = close_context;
	b.branch = open_branch;
	b.alloc = device_alloc;
	b.free = device_free;
	b.copy_in = copy_in;
	b.host_alloc = host_alloc;
	b.host_free = host_free;
	b.copy_in_async = copy_in_async;
	b.copy_out = copy_out;
	b.copy = copy_on_device;
	b.fill = fill_memory;
	b.synchronize = synchronize;
	b.stream_publish = stream_publish;
	b.stream_await = stream_await;
	b.memory = memory_info;
	b.library_bytes = library_bytes;
	b.capture_begin = capture_begin;
	b.capture_end = capture_end;
	b.work_launch = work_launch;
	b.work_free = work_free;
	b.marks_make = marks_make;
	b.marks_free = marks_free;
	b.mark = mark;
	b.marks_read = marks_read;
#if HG_HAVE_NVTX
	b.range_begin = range_begin;
	b.range_end = range_end;
#endif
	b.csr_from_coo = hg__cuda_csr_from_coo;
	b.refill_scratch = hg__cuda_refill_scratch;
	b.refill = hg__cuda_refill;
	b.raise = hg__cuda_raise;
	b.assemble = hg__cuda_assemble;
	b.csr_transpose = hg__cuda_csr_transpose;
	b.column_ptr = hg__cuda_column_ptr;
	b.gather_f32 = hg__cuda_gather_f32;
	b.survey = hg__cuda_survey;
	b.tiles_count = hg__cuda_tiles_count;
	b.tiles_fill = hg__cuda_tiles_fill;
	b.kernels = &hg__kernels_cuda;
	return b;
}

extern "C" {
extern const struct hg__backend hg__backend_cuda;
constexpr struct hg__backend hg__backend_cuda = make_backend();
}
