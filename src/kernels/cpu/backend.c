/* The CPU backend: the choice between the copies of the kernels for the instruction sets, and
 * memory. All calls are synchronous. */
#define _DEFAULT_SOURCE /* for sysconf(_SC_PHYS_PAGES) */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HG_HAVE_X86_ISAS
#include <cpuid.h>
#endif

#include "core/clock.h"
#include "kernels/cpu/backend.h"

/* ---- the choice between the copies of the kernels ---- */

extern const struct hg__kernels hg__cpu_generic_table;

static int runs_everywhere(void)
{
	return 1;
}

#ifdef HG_HAVE_X86_ISAS
extern const struct hg__kernels hg__cpu_avx2_table, hg__cpu_avx512_table;

/* F16C is bit 29 of ecx in leaf 1. It is read directly because not every compiler knows its name.
 * The check for AVX2 includes that the operating system saves the vector registers, which F16C
 * needs as well. */
static int has_avx2(void)
{
	unsigned a, b, c, d;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u);
}

static int has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

/* The fastest copy first. best_isa takes the first one that runs on this machine. */
static const struct hg__cpu_isa isas[] = {
#ifdef HG_HAVE_X86_ISAS
    {"avx512", has_avx512, &hg__cpu_avx512_table},
    {"avx2", has_avx2, &hg__cpu_avx2_table},
#endif
    {"generic", runs_everywhere, &hg__cpu_generic_table},
};

const struct hg__cpu_isa *hg__cpu_isas(size_t *count)
{
	*count = sizeof(isas) / sizeof(isas[0]);
	return isas;
}

static const struct hg__cpu_isa *best_isa(void)
{
	const struct hg__cpu_isa *isa = isas;
	while (!isa->runs_here())
		isa++;
	return isa;
}

/* ---- context ---- */

static hg_status open_context(hg_context *ctx, const hg_context_config *config)
{
	ctx->state = NULL;
	ctx->stream = NULL;
	ctx->threads = config->threads > 0 ? config->threads : omp_get_max_threads();
	/* The configuration asks for HG_THREADS_MAX at most, but the environment may ask OpenMP for any
	 * number. With OMP_NUM_THREADS=100000 libgomp needs more stack than a process has. */
	if (ctx->threads > HG_THREADS_MAX) {
		hg__log(ctx, HG_LOG_INFO, "context: OpenMP gives %d threads, %d of them are used",
		        ctx->threads, HG_THREADS_MAX);
		ctx->threads = HG_THREADS_MAX;
	}
	snprintf(ctx->device_name, sizeof(ctx->device_name), "CPU (%s, %d thread%s)", best_isa()->name,
	         ctx->threads, ctx->threads == 1 ? "" : "s");
	return HG_OK;
}

static void close_context(hg_context *ctx)
{
	(void)ctx;
}

/* ---- memory ---- */

static void *allocate_memory(hg_context *ctx, size_t bytes)
{
	(void)ctx;
	return bytes > SIZE_MAX - 63 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void release_memory(hg_context *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

static hg_status copy_memory(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	(void)ctx;
	if (bytes)
		memmove(to, from, bytes);
	return HG_OK;
}

static hg_status fill_memory(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	(void)ctx;
	if (bytes)
		memset(memory, byte, bytes);
	return HG_OK;
}

static hg_status synchronize_nothing(hg_context *ctx)
{
	(void)ctx;
	return HG_OK;
}

static hg_status ignore_stream(hg_context *ctx, void *foreign_stream)
{
	(void)ctx;
	(void)foreign_stream;
	return HG_OK;
}

/* MemAvailable + SwapFree, or 0 where there is no /proc. sysconf counts pages that cache files as
 * used, but Linux gives these pages up on demand and can move others to the swap space. */
static size_t meminfo_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	unsigned long long kib = 0, sum = 0;
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1 ||
		    sscanf(line, "SwapFree: %llu kB", &kib) == 1)
			sum += kib;
	if (file)
		fclose(file);
	return (size_t)sum * 1024;
}

static hg_status memory_info(hg_context *ctx, size_t *total, size_t *available)
{
	const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES),
	           free_pages = sysconf(_SC_AVPHYS_PAGES);
	if (page < 0 || pages < 0 || free_pages < 0)
		return hg__fail(ctx, HG_ERR_DEVICE, "memory: the system does not say how much there is");
	*total = (size_t)pages * (size_t)page;
	*available = (size_t)free_pages * (size_t)page;
	const size_t reclaimable = meminfo_bytes();
	*available = reclaimable > *available ? reclaimable : *available;
	return HG_OK;
}

/* ---- times ---- */

/* Every call has finished when it returns, so a mark is a reading of the clock. */
static hg_status make_marks(hg_context *ctx, int64_t count, void **marks)
{
	return hg__host_alloc(ctx, (size_t)count, sizeof(double), "profile: marks", marks);
}

static void free_marks(hg_context *ctx, void *marks, int64_t count)
{
	hg__host_free(ctx, marks, (size_t)count * sizeof(double));
}

static hg_status mark_time(hg_context *ctx, void *marks, int64_t k)
{
	(void)ctx;
	((double *)marks)[k] = hg__seconds();
	return HG_OK;
}

static hg_status read_marks(hg_context *ctx, void *marks, int64_t count, double *seconds)
{
	const double *mark = marks;
	(void)ctx;
	for (int64_t k = 0; k < count; k++)
		seconds[k] = mark[k] - mark[0];
	return HG_OK;
}

/* ---- what the kernels can do ---- */

/* linear_back keeps up to 64 sums as large as the weights. Three layers with two norms, 32,768 rows
 * in fp16, needed 80.8 MiB of arena and workspace with 256 columns (86.0 with the norms in memory),
 * and 194.1 with 512 (171.0). */
#define WIDEST_LAYER 256

static int takes_norms(const hg_context *ctx, hg_dtype type, int64_t rows, int64_t k, int64_t n)
{
	(void)ctx, (void)type, (void)rows;
	return k <= WIDEST_LAYER && n <= WIDEST_LAYER;
}

/* ---- the interface, once for each copy of the kernels ---- */

/* Every call has finished its work when it returns, so this backend has no graphs to capture. What
 * is not named here is NULL: the CPU does not have it. */
#define CPU_BACKEND(table)                                                                  \
	{                                                                                       \
		.kind = HG_DEVICE_CPU, .name = "cpu", .open = open_context, .close = close_context, \
		.alloc = allocate_memory, .free = release_memory, .copy_in = copy_memory,           \
		.copy_out = copy_memory, .copy = copy_memory, .fill = fill_memory,                  \
		.synchronize = synchronize_nothing, .stream_publish = ignore_stream,                \
		.stream_await = ignore_stream, .memory = memory_info,                               \
		.csr_from_coo = hg__cpu_csr_from_coo, .csr_transpose = hg__cpu_csr_transpose,       \
		.column_ptr = hg__cpu_column_ptr, .gather_f32 = hg__cpu_gather_f32,                 \
		.refill_scratch = hg__cpu_refill_scratch, .refill = hg__cpu_refill,                 \
		.raise = hg__cpu_raise, .assemble = hg__cpu_assemble, .takes_norms = takes_norms,   \
		.marks_make = make_marks, .marks_free = free_marks, .mark = mark_time,              \
		.marks_read = read_marks, .survey = hg__cpu_survey, .kernels = table                \
	}

static const struct hg__backend backends[] = {
#ifdef HG_HAVE_X86_ISAS
    CPU_BACKEND(&hg__cpu_avx512_table),
    CPU_BACKEND(&hg__cpu_avx2_table),
#endif
    CPU_BACKEND(&hg__cpu_generic_table),
};

const struct hg__backend *hg__cpu_backend(void)
{
	return &backends[best_isa() - isas];
}
