#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda/gather.cuh"
#include "device.h"
#include "kernels/cuda/launch.cuh"

/* The device functions of the benchmark on a GPU. */

/* ---- numbers generated on the device ---- */

template <edge_fn DRAW>
static __global__ void edges_kernel(const struct edge_rule rule, uint64_t seed, int32_t *dst,
                                    int32_t *src)
{
	for (int64_t e = global_thread(); e < rule.edges; e += global_threads())
		edge_draw(DRAW, &rule, seed, static_cast<uint64_t>(e), &dst[e], &src[e]);
}

/* In the order of edge_kind. */
static void (*const edge_kernels[EDGE_KINDS])(struct edge_rule, uint64_t, int32_t *, int32_t *) = {
    edges_kernel<edge_power>,     edges_kernel<edge_rmat>,      edges_kernel<edge_planted>,
    edges_kernel<edge_molecule>,  edges_kernel<edge_cliques>,   edges_kernel<edge_unequal>,
    edges_kernel<edge_molecules>, edges_kernel<edge_molecules>, edges_kernel<edge_near>,
};

static hg_status edges(hg_context *ctx, const struct edge_rule *rule, uint64_t seed, int32_t *dst,
                       int32_t *src)
{
	edge_kernels[rule->kind]<<<grid_for(rule->edges, BLOCK), BLOCK, 0, stream_of(ctx)>>>(
	    *rule, seed, dst, src);
	return launched(ctx, "making edges");
}

/* double -> T, rounded once */
static __device__ inline void put(float *to, double value)
{
	*to = static_cast<float>(value);
}
static __device__ inline void put(__half *to, double value)
{
	*to = __double2half(value);
}

template <typename T>
static __global__ void fill_kernel(struct hg__mat x, uint64_t seed, const struct fill_rule rule)
{
	T *data = static_cast<T *>(x.data);
	for (int64_t k = global_thread(); k < x.rows * x.cols; k += global_threads())
		put(&data[k / x.cols * x.ld + k % x.cols],
		    fill_value(&rule, seed, static_cast<uint64_t>(k)));
}

static hg_status fill(hg_context *ctx, struct hg__mat x, uint64_t seed,
                      const struct fill_rule *rule)
{
	if (x.rows * x.cols == 0)
		return HG_OK;
	return with_float(ctx, "filling a matrix", x.dtype, [&](auto zero) {
		using T = decltype(zero);
		fill_kernel<T>
		    <<<grid_for(x.rows * x.cols, BLOCK), BLOCK, 0, stream_of(ctx)>>>(x, seed, *rule);
		return launched(ctx, "filling a matrix");
	});
}

static hg_status copy(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	return cuda_status(ctx,
	                   cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(ctx)),
	                   "copying on the device");
}

/* ---- time stamps in the stream ---- */

struct marks {
	int count;
	cudaEvent_t *event;
};

static void marks_free(struct marks *marks)
{
	if (!marks)
		return;
	for (int i = 0; i < marks->count; i++)
		(void)cudaEventDestroy(marks->event[i]);
	free(marks->event);
	free(marks);
}

static hg_status marks_create(hg_context *ctx, int count, struct marks **out)
{
	struct marks *marks = static_cast<struct marks *>(calloc(1, sizeof *marks));
	*out = marks;
	if (marks)
		marks->event =
		    static_cast<cudaEvent_t *>(calloc(static_cast<size_t>(count), sizeof(cudaEvent_t)));
	if (!marks || !marks->event)
		return hg__fail(ctx, HG_ERR_NOMEM, "no memory for %d points in time", count);
	(void)stream_of(ctx);
	for (; marks->count < count; marks->count++)
		HG__CUDA(ctx, "a point in time", cudaEventCreate(&marks->event[marks->count]));
	return HG_OK;
}

static hg_status mark(hg_context *ctx, struct marks *marks, int i)
{
	if (i < 0 || i >= marks->count)
		return hg__fail(ctx, HG_ERR_INTERNAL, "mark %d of %d", i, marks->count);
	return cuda_status(ctx, cudaEventRecord(marks->event[i], stream_of(ctx)), "a point in time");
}

static hg_status elapsed(hg_context *ctx, struct marks *marks, int i, int j, double *ms)
{
	float time = 0;
	HG__CUDA(ctx, "waiting for a point in time", cudaEventSynchronize(marks->event[j]));
	HG__CUDA(ctx, "time between two points",
	         cudaEventElapsedTime(&time, marks->event[i], marks->event[j]));
	*ms = static_cast<double>(time);
	return HG_OK;
}

/* ---- versions ---- */

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module 580.65.06 ...": the first word of that line that
 * consists of digits and dots. */
static void driver_version(char *text, size_t size)
{
	char line[256] = "";
	FILE *file = fopen("/proc/driver/nvidia/version", "r");
	const bool read = file && fgets(line, sizeof line, file);
	if (file)
		(void)fclose(file);
	(void)snprintf(text, size, "unknown");
	for (char *word = read ? strtok(line, " \t\n") : nullptr; word; word = strtok(nullptr, " \t\n"))
		if (strchr(word, '.') && strspn(word, "0123456789.") == strlen(word)) {
			(void)snprintf(text, size, "%s", word);
			return;
		}
}

static void versions(char *driver, char *toolkit, size_t size)
{
	int runtime = 0;
	driver_version(driver, size);
	(void)cudaRuntimeGetVersion(&runtime);
	(void)snprintf(toolkit, size, "%d.%d", runtime / 1000, runtime % 1000 / 10);
}

extern "C" {
const struct device device_cuda = {edges, fill,    copy,           marks_create,    marks_free,
                                   mark,  elapsed, gather_measure, &peers_cusparse, versions};
}
