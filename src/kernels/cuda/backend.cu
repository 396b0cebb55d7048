#include <cstdio>

#include "kernels/cuda/launch.cuh"

/* The CUDA device as core sees it. */

static hg__cuda_state *state_of(hg_context *ctx)
{
	return static_cast<hg__cuda_state *>(ctx->state);
}

/* In a fork nothing of the device is ours to use or to give back. */
static bool is_forked(const hg_context *ctx)
{
	return ctx->process != hg__process();
}

/* ---- opening and closing ---- */

static __global__ void probe()
{
}

/* Blocks in clusters, and kernels that begin while the one before them ends: from sm_90 on, where
 * the code was made for that: PTX for an older one has no word for them. */
static bool is_for_sm_90(const cudaFuncAttributes &code, const cudaDeviceProp &properties)
{
	return properties.major >= 9 && code.ptxVersion >= 90;
}
/* false: kernels are queued one behind the other. */
constexpr bool OVERLAP = true;
/* false: each block is alone. */
constexpr bool CLUSTERS = true;

/* Is there a device `index` that this build has code for? Every reason why not is "unsupported", so
 * that AUTO can go on to the CPU. */
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
	error = cudaFuncGetAttributes(code, probe);
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

/* They belong to the context as its stream and event do: not an allocation of its user, and not
 * counted among them. */
static hg_status open_counters(hg_context *ctx, hg__cuda_state *state)
{
	HG__CUDA(ctx, "context: counters",
	         cudaMalloc(&state->counters, COUNTERS * sizeof *state->counters));
	return cuda_status(
	    ctx,
	    cudaMemsetAsync(state->counters, 0, COUNTERS * sizeof *state->counters, stream_of(ctx)),
	    "context: counters");
}

static hg_status open_parts(hg_context *ctx, const hg_context_config *config, hg__cuda_state *state)
{
	HG__TRY(open_stream(ctx, config, state));
	HG__CUDA(ctx, "context: event",
	         cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming));
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
	if (is_forked(ctx)) {
		hg__gemm_plans_free(ctx, state->plans);
		hg__host_free(ctx, state, sizeof *state);
		ctx->state = nullptr;
		return;
	}
	/* nothing below can be reported any more: the context goes away */
	(void)cudaSetDevice(state->device);
	if (ctx->stream || !state->owns_stream)
		(void)cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream));
	hg__gemm_plans_free(ctx, state->plans);
	hg__device_free(ctx, state->lt_workspace, LT_WORKSPACE_BYTES);
	(void)cudaFree(state->counters);
	if (state->lt)
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

/* ---- memory ---- */

/* Plain cudaMalloc: the tape has one arena and one workspace, so allocations are few, and cudaFree
 * waits for the kernels that still use the memory. */
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
	/* an earlier kernel's error shows here too; the next synchronize reports it */
	(void)cudaFree(memory);
}

/* The host's memory is pageable or not, as its owner likes: waiting for the stream covers both, and
 * earlier work of this context that touches `device`. */
static hg_status copy_in(hg_context *ctx, void *device, const void *host, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "copy to the device",
	         cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_of(ctx)));
	HG__CUDA(ctx, "copy to the device", cudaStreamSynchronize(stream_of(ctx)));
	return HG_OK;
}

static hg_status copy_out(hg_context *ctx, void *host, const void *device, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	HG__TRY(hg__same_process(ctx));
	HG__CUDA(ctx, "copy from the device",
	         cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_of(ctx)));
	HG__CUDA(ctx, "copy from the device", cudaStreamSynchronize(stream_of(ctx)));
	return HG_OK;
}

static hg_status copy(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	return cuda_status(ctx,
	                   cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(ctx)),
	                   "copy on the device");
}

static hg_status fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	if (bytes == 0)
		return HG_OK;
	return cuda_status(ctx, cudaMemsetAsync(memory, byte, bytes, stream_of(ctx)),
	                   "fill device memory");
}

/* Without a context: does a device answer that this build has code for? (hg__backend_find) */
static hg_status memory_info(hg_context *ctx, size_t *total, size_t *available)
{
	if (ctx) {
		HG__TRY(hg__same_process(ctx));
		(void)stream_of(ctx);
	} else {
		cudaFuncAttributes attributes;
		HG__CUDA(ctx, "device memory", cudaFuncGetAttributes(&attributes, probe));
	}
	return cuda_status(ctx, cudaMemGetInfo(available, total), "device memory");
}

/* One workspace for cuBLASLt, from the first product on. */
static size_t library_bytes(const hg_context *ctx)
{
	return static_cast<const hg__cuda_state *>(ctx->state)->lt_workspace ? 0 : LT_WORKSPACE_BYTES;
}

/* ---- order of work ---- */

static hg_status synchronize(hg_context *ctx)
{
	HG__TRY(hg__same_process(ctx));
	return cuda_status(ctx, cudaStreamSynchronize(stream_of(ctx)), "synchronize");
}

/* `after` waits for what is queued on `before` now. One event serves: a wait refers to the record
 * that is the latest when it is queued. */
static hg_status chain(hg_context *ctx, cudaStream_t before, cudaStream_t after)
{
	if (before == after)
		return HG_OK;
	HG__CUDA(ctx, "order two streams", cudaEventRecord(state_of(ctx)->event, before));
	return cuda_status(ctx, cudaStreamWaitEvent(after, state_of(ctx)->event, 0),
	                   "order two streams");
}

static hg_status stream_publish(hg_context *ctx, void *foreign_stream)
{
	return chain(ctx, stream_of(ctx), static_cast<cudaStream_t>(foreign_stream));
}

static hg_status stream_await(hg_context *ctx, void *foreign_stream)
{
	const cudaStream_t own = stream_of(ctx);
	return chain(ctx, static_cast<cudaStream_t>(foreign_stream), own);
}

/* ---- work caught once, launched often ---- */

/* Thread-local: what other threads do with their contexts, allocations included, does not disturb
 * the capture. A stream that its owner captures is left alone: what is queued then becomes part of
 * the owner's work. */
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

/* The operations counted, and the graph made ready to launch: on the device as well, so that the
 * first launch is like the others. */
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
		(void)cudaGetLastError(); /* the call that broke the capture has reported it */
	else if ((status = cuda_status(ctx, error, "capture")) >= 0)
		status = make_ready(ctx, graph, &ready, operations);
	if (graph)
		(void)cudaGraphDestroy(graph); /* the ready form is a copy */
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

/* A launch may still be running. */
static void work_free(hg_context *ctx, void *work)
{
	if (is_forked(ctx))
		return;
	/* an error of the work shows at the next synchronize too */
	(void)cudaStreamSynchronize(stream_of(ctx));
	(void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(work));
}

extern "C" {
extern const struct hg__backend hg__backend_cuda;
const struct hg__backend hg__backend_cuda = {
    // clang-format off: one name a line, in the order of backend.h
    HG_DEVICE_CUDA,
    "cuda",
    1,
    open_context,
    close_context,
    device_alloc,
    device_free,
    copy_in,
    copy_out,
    copy,
    fill,
    synchronize,
    stream_publish,
    stream_await,
    memory_info,
    library_bytes,
    capture_begin,
    capture_end,
    work_launch,
    work_free,
    hg__cuda_csr_from_coo,
    hg__cuda_csr_transpose,
    hg__cuda_column_ptr,
    hg__cuda_gather_f32,
    hg__cuda_survey,
    hg__cuda_tiles_count,
    hg__cuda_tiles_fill,
    &hg__kernels_cuda,
    // clang-format on
};
}
