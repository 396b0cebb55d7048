#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "core/graph.h"

/* Timing. Three runs warm up (choice of algorithms, workspaces, clocks); then each sample is a
 * batch of runs that lasts about 20 ms, so that the overhead of a launch and of the clock does not
 * matter. */
#define WARM_UPS 3
#define SAMPLE_MS 20.0

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct timing timing_of(double *ms, int count)
{
	qsort(ms, (size_t)count, sizeof *ms, ascending);
	return (struct timing){count % 2 ? ms[count / 2] : (ms[count / 2 - 1] + ms[count / 2]) / 2,
	                       ms[0], ms[count - 1], count};
}

/* Take one sample, in ms per run. */
static hg_status sample(struct bench *b, struct marks *marks, run_fn run, void *what, int runs,
                        double *ms)
{
	HG__TRY(b->device->mark(b->ctx, marks, 0));
	for (int r = 0; r < runs; r++)
		HG__TRY(run(what));
	HG__TRY(b->device->mark(b->ctx, marks, 1));
	HG__TRY(b->device->elapsed(b->ctx, marks, 0, 1, ms));
	*ms /= runs;
	return HG_OK;
}

static hg_status samples(struct bench *b, struct marks *marks, run_fn run, void *what, int count,
                         double *ms)
{
	double one = 0;
	for (int i = 0; i < WARM_UPS; i++)
		HG__TRY(sample(b, marks, run, what, 1, &one));
	const int runs = one < SAMPLE_MS ? (int)(SAMPLE_MS / fmax(one, 0.002)) + 1 : 1;
	for (int i = 0; i < count; i++)
		HG__TRY(sample(b, marks, run, what, runs, &ms[i]));
	return HG_OK;
}

hg_status measure(struct bench *b, run_fn run, void *what, struct timing *timing)
{
	const int count = (int)b->options.repeat;
	struct marks *marks = NULL;
	double *ms = calloc((size_t)count, sizeof *ms);
	hg_status status = ms ? b->device->marks_create(b->ctx, 2, &marks)
	                      : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %d samples", count);
	if (status == HG_OK)
		status = samples(b, marks, run, what, count, ms);
	if (status == HG_OK)
		*timing = timing_of(ms, count);
	b->device->marks_free(marks);
	free(ms);
	return status;
}

struct copying {
	struct bench *b;
	void *from, *to;
	size_t bytes;
};

static hg_status copy_run(void *what)
{
	const struct copying *c = what;
	return c->b->device->copy(c->b->ctx, c->to, c->from, c->bytes);
}

/* Copies far more than any cache holds, so that the rate is that of the memory. */
hg_status copy_rate(struct bench *b, double *tb_s)
{
	const size_t bytes = (size_t)(hg_context_device(b->ctx) == HG_DEVICE_CUDA ? 1024 : 128) << 20;
	struct copying c = {b, NULL, NULL, bytes};
	struct timing timing;
	HG__TRY(hg__device_alloc(b->ctx, bytes, "copy rate", &c.from));
	hg_status status = hg__device_alloc(b->ctx, bytes, "copy rate", &c.to);
	if (status == HG_OK)
		status = b->ctx->backend->fill(b->ctx, c.from, 1, bytes);
	if (status == HG_OK)
		status = measure(b, copy_run, &c, &timing);
	if (status == HG_OK)
		*tb_s = 2.0 * (double)bytes / timing.least * 1e-9;
	hg__device_free(b->ctx, c.to, bytes);
	hg__device_free(b->ctx, c.from, bytes);
	return status;
}

static hg_status ceiling_of(struct bench *b, const char *op, const char *name,
                            const struct hg__csr *csr, struct hg__mat x, double *ms)
{
	struct gather g = {.shapes = 0};
	const int repeat = b->options.repeat < 64 ? (int)b->options.repeat : 64;
	HG__TRY(b->device->gather(b->ctx, csr, x, repeat, &g));
	if (!g.shapes)
		return HG_OK;
	struct result r = result_new(op, name, hg_dtype_name(x.dtype));
	r.features = x.cols;
	r.ms = timing_of(g.ms_each, repeat);
	r.bytes = (double)b->csr.m *
	          ((double)(x.cols * (int64_t)hg_dtype_size(x.dtype)) + (double)sizeof(int32_t));
	r.note = g.shape;
	report_result(b, &r);
	*ms = r.ms.median;
	return HG_OK;
}

hg_status ceiling(struct bench *b, const char *op, struct hg__mat x, struct ceiling *ceiling)
{
	struct hg__csr unordered;
	*ceiling = CEILING_NONE;
	if (!b->device->gather)
		return HG_OK;
	HG__TRY(ceiling_of(b, op, "gather ceiling", &b->csr, x, &ceiling->ms));
	if (!b->reorder.unordered)
		return HG_OK;
	HG__TRY(hg__graph_csr(b->reorder.unordered, &unordered));
	return ceiling_of(b, op, "unordered ceiling", &unordered, x, &ceiling->unordered);
}
