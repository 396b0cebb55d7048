#define _DEFAULT_SOURCE /* sysconf's physical pages */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HG_HAVE_X86_ISAS
#include <cpuid.h>
#endif

#include "kernels/cpu/backend.h"

/* ---- which copy of the kernels ---- */

extern const struct hg__kernels hg__cpu_generic_table;

static int always(void)
{
	return 1;
}

#ifdef HG_HAVE_X86_ISAS
extern const struct hg__kernels hg__cpu_avx2_table, hg__cpu_avx512_table;

/* F16C is bit 29 of ecx, leaf 1; not every compiler knows its name. That the system saves the registers follows from AVX2. */
static int has_avx2(void)
{
	unsigned a, b, c, d;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u);
}

static int has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

/* Fastest first. */
static const struct hg__cpu_isa isas[] = {
#ifdef HG_HAVE_X86_ISAS
    {"avx512", has_avx512, &hg__cpu_avx512_table},
    {"avx2", has_avx2, &hg__cpu_avx2_table},
#endif
    {"generic", always, &hg__cpu_generic_table},
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
	snprintf(ctx->device_name, sizeof(ctx->device_name), "CPU (%s, %d thread%s)", best_isa()->name, ctx->threads, ctx->threads == 1 ? "" : "s");
	return HG_OK;
}

static void close_context(hg_context *ctx)
{
	(void)ctx;
}

/* ---- memory ---- */

static void *allocate(hg_context *ctx, size_t bytes)
{
	(void)ctx;
	return bytes > SIZE_MAX - 63 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void release(hg_context *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

static hg_status copy(hg_context *ctx, void *to, const void *from, size_t bytes)
{
	(void)ctx;
	if (bytes)
		memmove(to, from, bytes);
	return HG_OK;
}

static hg_status fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	(void)ctx;
	if (bytes)
		memset(memory, byte, bytes);
	return HG_OK;
}

static hg_status synchronize(hg_context *ctx)
{
	(void)ctx;
	return HG_OK;
}

static hg_status stream_ignore(hg_context *ctx, void *foreign_stream)
{
	(void)ctx;
	(void)foreign_stream;
	return HG_OK;
}

static hg_status memory_info(hg_context *ctx, size_t *total, size_t *available)
{
	const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES), free_pages = sysconf(_SC_AVPHYS_PAGES);
	if (page < 0 || pages < 0 || free_pages < 0)
		return hg__fail(ctx, HG_ERR_DEVICE, "memory: the system does not say how much there is");
	*total = (size_t)pages * (size_t)page;
	*available = (size_t)free_pages * (size_t)page;
	return HG_OK;
}

/* ---- graphs ---- */

/* Counting sort keeps the count of key k at start[k + 1]; after the sums start[k] is where k begins. */
static void sum_counts(int64_t keys, int64_t *start)
{
	for (int64_t k = 0; k < keys; k++)
		start[k + 1] += start[k];
}

/* After every entry was placed at start[key]++, start[k] is where k + 1 begins: move back by one. */
static void rewind_starts(int64_t keys, int64_t *start)
{
	memmove(start + 1, start, (size_t)keys * sizeof(*start));
	start[0] = 0;
}

/* by_src [m] = places of the input, src ascending, stably. */
static hg_status sort_by_source(hg_context *ctx, int64_t cols, int64_t m, const int32_t *src, int64_t *by_src)
{
	void *memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)cols + 1, sizeof(int64_t), "the counts of a sort", &memory));
	int64_t *start = memory;
	for (int64_t e = 0; e < m; e++)
		start[src[e] + 1]++;
	sum_counts(cols, start);
	for (int64_t e = 0; e < m; e++)
		by_src[start[src[e]]++] = e;
	hg__host_free(ctx, memory, ((size_t)cols + 1) * sizeof(int64_t));
	return HG_OK;
}

/* By src, then stably by dst: O(m + rows + cols). */
static hg_status csr_from_coo(hg_context *ctx, int64_t rows, int64_t cols, int64_t m, const int32_t *dst, const int32_t *src, int64_t *rowptr, int32_t *col,
                              int64_t *order)
{
	memset(rowptr, 0, ((size_t)rows + 1) * sizeof(*rowptr));
	if (m == 0)
		return HG_OK;
	void *memory;
	HG__TRY(hg__host_alloc(ctx, (size_t)m, sizeof(int64_t), "the sort of the edges", &memory));
	int64_t *by_src = memory;
	const hg_status status = sort_by_source(ctx, cols, m, src, by_src);
	if (status == HG_OK) {
		for (int64_t e = 0; e < m; e++)
			rowptr[dst[e] + 1]++;
		sum_counts(rows, rowptr);
		for (int64_t i = 0; i < m; i++) {
			const int64_t e = by_src[i], place = rowptr[dst[e]]++;
			col[place] = src[e];
			order[place] = e;
		}
		rewind_starts(rows, rowptr);
	}
	hg__host_free(ctx, memory, (size_t)m * sizeof(int64_t));
	return status;
}

/* Entries in CSR order, counted by column: rows ascend in each column by themselves. */
static hg_status csr_transpose(hg_context *ctx, const struct hg__csr *csr, int64_t *rowptr, int32_t *col, int64_t *edge)
{
	(void)ctx;
	memset(rowptr, 0, ((size_t)csr->cols + 1) * sizeof(*rowptr));
	for (int64_t p = 0; p < csr->m; p++)
		rowptr[csr->col[p] + 1]++;
	sum_counts(csr->cols, rowptr);
	for (int64_t r = 0; r < csr->rows; r++)
		for (int64_t p = csr->rowptr[r]; p < csr->rowptr[r + 1]; p++) {
			const int64_t place = rowptr[csr->col[p]]++;
			col[place] = (int32_t)r;
			edge[place] = p;
		}
	rewind_starts(csr->cols, rowptr);
	return HG_OK;
}

static hg_status gather_f32(hg_context *ctx, int64_t m, const float *in, const int64_t *index, float *out)
{
#pragma omp parallel for num_threads(m < 32768 ? 1 : ctx->threads) schedule(static)
	for (int64_t e = 0; e < m; e++)
		out[e] = in[index[e]];
	return HG_OK;
}

/* ---- the interface, once per copy of the kernels ---- */

#define CPU_BACKEND(table)                                                                                                                                    \
	{                                                                                                                                                         \
		HG_DEVICE_CPU, "cpu", open_context, close_context, allocate, release, copy, copy, copy, fill, synchronize, stream_ignore, stream_ignore, memory_info, \
		    csr_from_coo, csr_transpose, gather_f32, table                                                                                                    \
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
