/* Probes for swamping: small addends that are lost because the sum in f16 is already large. For
 * each aggregation with f16 sums the observer computes some rows again in a wider type and
 * compares.
 *
 * Half of these rows are the longest ones, where small addends are lost first. The other half is
 * spread evenly over all rows: if one row in ten has lost something, 16 rows miss all of them with
 * probability 0.2 in one inspection, and there are many inspections. */
#include <string.h>

#include "autograd/observe.h"
#include "autograd/tape.h"

#define LONGEST (HG__PROBE_ROWS / 2)

/* Inserts a row into a list of `count` rows, longest first, and the earlier row first among equals.
 * At most LONGEST rows stay in the list. */
static int insert_row(const int64_t *rowptr, int32_t row, int32_t *list, int count)
{
	const int64_t length = rowptr[row + 1] - rowptr[row];
	int at = count;
	while (at > 0 && rowptr[list[at - 1] + 1] - rowptr[list[at - 1]] < length)
		at--;
	if (at == LONGEST)
		return count;
	const int stay = count < LONGEST ? count : LONGEST - 1;
	memmove(list + at + 1, list + at, (size_t)(stay - at) * sizeof *list);
	list[at] = row;
	return stay + 1;
}

static int64_t choose_rows(const int64_t *rowptr, int64_t rows, int32_t *sample)
{
	int count = 0;
	for (int64_t i = 0; i < rows; i++)
		count = insert_row(rowptr, (int32_t)i, sample, count);
	for (int64_t i = 0; i < LONGEST && rows > 0; i++)
		sample[count++] = (int32_t)(i * rows / LONGEST);
	return count;
}

static hg_status find_rows(hg_context *ctx, struct hg__probe *probe, int32_t *sample)
{
	const struct hg__buffer device = {(void *)(uintptr_t)probe->rowptr,
	                                  (size_t)(probe->y.rows + 1) * sizeof(int64_t), 1};
	struct hg__buffer host = {NULL, 0, 0};
	HG__TRY(hg__buffer_download(ctx, &device, "observer: row lengths", &host));
	probe->samples = choose_rows(host.data, probe->y.rows, sample);
	hg__buffer_free(ctx, &host);
	return HG_OK;
}

static hg_status add_probe(struct hg__watch *w, const struct hg__probe *probe)
{
	void *list = w->probe;
	const hg_status grown = hg__host_grow(w->tape->ctx, &list, sizeof *w->probe, w->probes,
	                                      &w->probe_capacity, "observer");
	w->probe = list;
	HG__TRY(grown);
	w->probe[w->probes++] = *probe;
	return HG_OK;
}

/* The last position at which the operands of a sum are still in place. The features of a backward
 * sum are the gradient of the node's result. */
static int32_t operands_last(const struct hg__tape_plan *plan, const struct hg__node *node,
                             int backward)
{
	const int32_t x = backward ? plan->value[node->out].grad_span : plan->value[node->in[0]].span;
	const int32_t w = node->n_in > 1 && node->in[1] >= 0 ? plan->value[node->in[1]].span : -1;
	const int32_t first = hg__last_of(plan, x), second = hg__last_of(plan, w);
	return first < second ? first : second;
}

/* Does the sum of this task alone make the tensor of this spot, and does it still have its
 * weights? */
static int makes_spot_alone(const struct hg__tape_plan *plan, const struct hg__task *task,
                            const struct hg__spot *spot)
{
	if (!spot->gradient)
		return task->entry == spot->entry;
	return !task->recompute && task->call.node->in[0] == spot->value &&
	       plan->value[spot->value].parts == 1 && !task->add[0].data &&
	       plan->entry[task->entry].recompute[1] < 0;
}

static hg_status plan_probe(struct hg__watch *w, int32_t index, const struct hg__task *task)
{
	struct hg__spot *spot = &w->spot[index];
	struct hg__probe probe = {.record = index};
	HG__TRY(task->call.node->op->probe(&task->call, spot->gradient, &probe));
	probe.record = index;
	const int32_t dies = operands_last(&w->tape->plan, task->call.node, spot->gradient);
	if (!probe.rowptr || dies < spot->ready)
		return HG_OK;
	spot->dies = dies < spot->dies ? dies : spot->dies;
	return add_probe(w, &probe);
}

/* Chooses the rows of all probes, in one array on the device. */
static hg_status choose_probe_rows(struct hg__watch *w)
{
	hg_context *ctx = w->tape->ctx;
	struct hg__buffer host = {NULL, 0, 0};
	if (w->probes == 0)
		return HG_OK;
	HG__TRY(hg__buffer_host(ctx, w->probes * HG__PROBE_ROWS, sizeof(int32_t),
	                        "observer: a sample of rows", &host));
	hg_status status = HG_OK;
	for (int64_t i = 0; i < w->probes && status >= 0; i++)
		status = find_rows(ctx, &w->probe[i], (int32_t *)host.data + i * HG__PROBE_ROWS);
	if (status >= 0)
		status = hg__buffer_upload(ctx, w->probes * HG__PROBE_ROWS, sizeof(int32_t), host.data,
		                           "observer: a sample of rows", &w->sample);
	hg__buffer_free(ctx, &host);
	for (int64_t i = 0; i < w->probes && status >= 0; i++)
		w->probe[i].sample = (const int32_t *)w->sample.data + i * HG__PROBE_ROWS;
	return status;
}

hg_status hg__watch_sums(struct hg__watch *w)
{
	const hg_tape *tape = w->tape;
	for (int64_t i = 0; i < w->spots; i++) {
		const struct hg__task *task =
		    w->spot[i].gradient ? tape->program.backward : tape->program.forward;
		const int64_t count =
		    w->spot[i].gradient ? tape->program.backwards : tape->program.forwards;
		for (int64_t k = 0; k < count; k++)
			if (task[k].call.node->op->probe &&
			    makes_spot_alone(&tape->plan, &task[k], &w->spot[i]))
				HG__TRY(plan_probe(w, (int32_t)i, &task[k]));
	}
	return choose_probe_rows(w);
}
