/* Makes the observer's tables on the device, queues its inspections, and reads the counts. */
#include "autograd/observe.h"

#include "autograd/tape.h"

/* ---- tables ---- */

/* All counts lie in one piece of memory: ring, counts [spots], kept [HG__OBSERVED_STEPS, spots],
 * most [spots]. */
static size_t offset_of_counts(void)
{
	return hg__aligned(sizeof(struct hg__observed_ring));
}

static size_t offset_of_kept(const struct hg__watch *w)
{
	return offset_of_counts() + (size_t)w->spots * sizeof(struct hg__observed);
}

static size_t offset_of_most(const struct hg__watch *w)
{
	return offset_of_kept(w) +
	       (size_t)(w->spots * HG__OBSERVED_STEPS) * sizeof(struct hg__observed);
}

static size_t state_bytes(const struct hg__watch *w)
{
	return offset_of_most(w) + (size_t)w->spots * sizeof(uint32_t);
}

static struct hg__observed *counts_of(const struct hg__buffer *state)
{
	return (struct hg__observed *)(void *)((char *)state->data + offset_of_counts());
}

static struct hg__observed *kept_of(const struct hg__watch *w, const struct hg__buffer *state)
{
	return (struct hg__observed *)(void *)((char *)state->data + offset_of_kept(w));
}

static uint32_t *most_of(const struct hg__watch *w, const struct hg__buffer *state)
{
	return (uint32_t *)(void *)((char *)state->data + offset_of_most(w));
}

/* The kernel's table: the tensors of each inspection, and one more row that holds the number of
 * chunks. */
static hg_status make_table(struct hg__watch *w)
{
	hg_context *ctx = w->tape->ctx;
	struct hg__buffer host = {NULL, 0, 0};
	HG__TRY(hg__buffer_host(ctx, w->spots + w->inspections, sizeof(struct hg__watched),
	                        "observer: a table", &host));
	struct hg__watched *row = host.data;
	for (int64_t k = 0; k < w->inspections; k++, row++) {
		struct hg__inspection *inspection = &w->inspection[k];
		inspection->chunks = 0;
		for (int32_t i = 0; i < inspection->count; i++, row++) {
			*row = (struct hg__watched){w->spot[inspection->first + i].mat, inspection->chunks};
			inspection->chunks += hg__observe_chunks(&row->mat);
		}
		row->first = inspection->chunks;
	}
	const hg_status status =
	    hg__buffer_upload(ctx, w->spots + w->inspections, sizeof(struct hg__watched), host.data,
	                      "observer: a table", &w->table);
	hg__buffer_free(ctx, &host);
	return status;
}

static hg_status make_tables(struct hg__watch *w)
{
	hg_context *ctx = w->tape->ctx;
	HG__TRY(hg__watch_plan(w));
	HG__TRY(make_table(w));
	HG__TRY(hg__buffer_upload(ctx, w->probes, sizeof *w->probe, w->probe, "observer: sums",
	                          &w->probe_device));
	HG__TRY(hg__buffer_host(ctx, (int64_t)state_bytes(w), 1, "observer: counts", &w->copy));
	HG__TRY(hg__buffer_device(ctx, (int64_t)state_bytes(w), 1, "observer: counts", &w->state));
	return ctx->backend->fill(ctx, w->state.data, 0, w->state.bytes);
}

static size_t device_bytes(const struct hg__watch *w)
{
	return w->table.bytes + w->probe_device.bytes + w->sample.bytes + w->state.bytes;
}

hg_status hg__watch_create(hg_tape *tape, int64_t every, struct hg__watch **out)
{
	void *memory = NULL;
	*out = NULL;
	HG__TRY(hg__host_alloc(tape->ctx, 1, sizeof **out, "observer", &memory));
	struct hg__watch *w = memory;
	w->tape = tape;
	w->every = every;
	const hg_status status = make_tables(w);
	tape->observing.bytes += device_bytes(w);
	if (status < 0) {
		hg__watch_free(w);
		return status;
	}
	*out = w;
	return HG_OK;
}

void hg__watch_free(struct hg__watch *w)
{
	if (!w)
		return;
	hg_context *ctx = w->tape->ctx;
	w->tape->observing.bytes -= device_bytes(w);
	struct hg__buffer *const buffers[] = {&w->table, &w->probe_device, &w->sample, &w->state,
	                                      &w->copy};
	for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
		hg__buffer_free(ctx, buffers[i]);
	hg__host_free(ctx, w->spot, (size_t)w->spot_capacity * sizeof *w->spot);
	hg__host_free(ctx, w->inspection, (size_t)w->inspection_capacity * sizeof *w->inspection);
	hg__host_free(ctx, w->probe, (size_t)w->probe_capacity * sizeof *w->probe);
	hg__host_free(ctx, w, sizeof *w);
}

/* ---- inspections ---- */

static hg_status queue_inspection(const struct hg__watch *w, int64_t k)
{
	hg_context *ctx = w->tape->ctx;
	const struct hg__inspection *l = &w->inspection[k];
	const struct hg__due due = {w->tape->params->step, w->every, w->inspections == 1};
	struct hg__observed *counts = counts_of(&w->state);
	const struct hg__spmm_probe_args sums = {
	    due, (const struct hg__probe *)w->probe_device.data + l->probe_first, l->probe_count,
	    HG__PROBE_ROWS, counts};
	const struct hg__observe_args args = {.due = due,
	                                      .table = (const struct hg__watched *)w->table.data +
	                                               l->first + k,
	                                      .count = l->count,
	                                      .chunks = l->chunks,
	                                      .counts = counts + l->first,
	                                      .kept = kept_of(w, &w->state) + l->first,
	                                      .most = most_of(w, &w->state) + l->first,
	                                      .stride = w->spots,
	                                      .ring = w->state.data,
	                                      .closes = k == w->inspections - 1};
	if (l->probe_count)
		HG__TRY(ctx->backend->kernels->spmm_probe.run(ctx, &sums));
	return ctx->backend->kernels->observe.run(ctx, &args);
}

void hg__watch_begin(struct hg__watch *w)
{
	if (w)
		w->next = 0;
}

hg_status hg__watch_after(struct hg__watch *w, int64_t task)
{
	return w && w->next < w->inspections - 1 && w->inspection[w->next].after == task
	           ? queue_inspection(w, w->next++)
	           : HG_OK;
}

hg_status hg__watch_close(struct hg__watch *w)
{
	return queue_inspection(w, w->inspections - 1);
}

/* ---- reading ---- */

hg_status hg__watch_fetch(struct hg__watch *w)
{
	hg_context *ctx = w->tape->ctx;
	HG__TRY(ctx->backend->copy_out(ctx, &w->now, &w->tape->params->step->step, sizeof w->now));
	return ctx->backend->copy_out(ctx, w->copy.data, w->state.data, w->state.bytes);
}

const struct hg__observed_ring *hg__watch_ring(const struct hg__watch *w)
{
	return w->copy.data;
}

const struct hg__observed *hg__watch_counts(const struct hg__watch *w, int64_t place, int64_t spot)
{
	return kept_of(w, &w->copy) + place * w->spots + spot;
}

uint32_t hg__watch_most(const struct hg__watch *w, int64_t spot)
{
	return most_of(w, &w->copy)[spot];
}
