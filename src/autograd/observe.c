#include "autograd/observe.h"
#include "autograd/tape.h"

#include <string.h>

/* The plan of the observer: which tensors it inspects, and after which tasks. observe.h explains
 * the terms. */

/* ---- which tensors ---- */

int hg__is_watched(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                   int64_t entry)
{
	const int32_t out = recording->entry[entry].node.out;
	return plan->entry[entry].alive && hg__is_float(recording->value[out].dtype) &&
	       plan->value[out].span >= 0;
}

/* Does the backward of this entry contribute to the gradient of operand i? */
static int contributes(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                       int64_t k, int i)
{
	const struct hg__entry *entry = &recording->entry[k];
	return plan->entry[k].back && entry->node.in[i] >= 0 && entry->grads >> i & 1u &&
	       plan->value[entry->node.in[i]].grad;
}

int hg__completes(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                  int64_t k, int i)
{
	if (!contributes(recording, plan, k, i))
		return 0;
	const int32_t root = hg__root_of(recording, k, i);
	for (int64_t before = 0; before < k; before++)
		for (int j = 0; j < recording->entry[before].node.n_in; j++)
			if (contributes(recording, plan, before, j) &&
			    hg__root_of(recording, before, j) == root)
				return 0;
	return 1;
}

static hg_status add_spot(struct hg__watch *w, const struct hg__spot *spot)
{
	void *list = w->spot;
	const hg_status grown = hg__host_grow(w->tape->ctx, &list, sizeof *w->spot, w->spots,
	                                      &w->spot_capacity, "observer");
	w->spot = list;
	HG__TRY(grown);
	struct hg__spot *made = &w->spot[w->spots++];
	*made = *spot;
	(void)hg__value_name(w->tape, &w->tape->recording.value[spot->value], made->name,
	                     sizeof made->name);
	return HG_OK;
}

/* Adds the result of an entry, which is ready after its forward. */
static hg_status add_value(struct hg__watch *w, int64_t k)
{
	const struct hg__recording *recording = &w->tape->recording;
	const struct hg__tape_plan *plan = &w->tape->plan;
	const int32_t out = recording->entry[k].node.out;
	const struct hg__spot spot = {.entry = recording->value[out].node,
	                              .value = out,
	                              .ready = plan->entry[k].position,
	                              .dies = hg__last_of(plan, plan->value[out].span),
	                              .mat = w->tape->program.view[out].value.mat};
	return hg__is_watched(recording, plan, k) ? add_spot(w, &spot) : HG_OK;
}

/* Is this gradient listed already, under its own value or under another one that shares its buffer
 * (shares_gradient in plan.c)? */
static int is_listed(const struct hg__watch *w, int32_t root)
{
	const struct hg__planned_value *value = w->tape->plan.value;
	for (int64_t i = 0; i < w->spots; i++) {
		const int32_t other = w->spot[i].value;
		if (w->spot[i].gradient &&
		    (other == root ||
		     (value[root].grad_span >= 0 && value[other].grad_span == value[root].grad_span)))
			return 1;
	}
	return 0;
}

static hg_status add_gradients(struct hg__watch *w, int64_t k)
{
	const struct hg__recording *recording = &w->tape->recording;
	const struct hg__tape_plan *plan = &w->tape->plan;
	for (int i = 0; i < recording->entry[k].node.n_in; i++) {
		if (!hg__completes(recording, plan, k, i))
			continue;
		const int32_t root = hg__root_of(recording, k, i);
		const struct hg__value *value = &recording->value[root];
		const int is_param = value->kind == HG__PARAM;
		const struct hg__spot spot = {
		    .entry = value->node,
		    .value = root,
		    .gradient = 1,
		    .ready = hg__position_back(plan, k),
		    .dies = is_param ? INT32_MAX : hg__last_of(plan, plan->value[root].grad_span),
		    .mat = is_param ? value->param->grad->mat : w->tape->program.view[root].grad.mat};
		if (!plan->value[root].inside && !plan->value[root].partial &&
		    plan->value[root].through < 0 && !is_listed(w, root))
			HG__TRY(add_spot(w, &spot));
	}
	return HG_OK;
}

static hg_status find_spots(struct hg__watch *w)
{
	const int64_t entries = w->tape->recording.entries;
	for (int64_t k = 0; k < entries; k++)
		HG__TRY(add_value(w, k));
	for (int64_t k = entries - 1; k >= 0; k--)
		HG__TRY(add_gradients(w, k));
	return HG_OK;
}

/* ---- when ---- */

static const struct hg__task *task_at(const struct hg__program *program, int64_t i)
{
	return i < program->forwards ? &program->forward[i] : &program->backward[i - program->forwards];
}

static int32_t position_of(const hg_tape *tape, int64_t i)
{
	const struct hg__program *program = &tape->program;
	const int32_t entry = task_at(program, i)->entry;
	if (i < program->forwards)
		return tape->plan.entry[entry].position;
	if (!task_at(program, i)->recompute)
		return hg__position_back(&tape->plan, entry);
	while (task_at(program, i)->recompute) /* it runs at the time of the next task */
		i++;
	return position_of(tape, i);
}

/* Probes are in the order of the spots that they record to. */
static hg_status add_inspection(struct hg__watch *w, int64_t after, int64_t first, int64_t end)
{
	const struct hg__inspection *before =
	    w->inspections ? &w->inspection[w->inspections - 1] : NULL;
	struct hg__inspection inspection = {
	    .after = after, .first = (int32_t)first, .count = (int32_t)(end - first)};
	inspection.probe_first = before ? before->probe_first + before->probe_count : 0;
	while (inspection.probe_first + inspection.probe_count < w->probes &&
	       w->probe[inspection.probe_first + inspection.probe_count].record < end)
		inspection.probe_count++;
	void *list = w->inspection;
	const hg_status grown = hg__host_grow(w->tape->ctx, &list, sizeof *w->inspection,
	                                      w->inspections, &w->inspection_capacity, "observer");
	w->inspection = list;
	HG__TRY(grown);
	w->inspection[w->inspections++] = inspection;
	return HG_OK;
}

/* Delays each inspection as long as possible: complete tensors wait until the next task would
 * overwrite one of them. */
static hg_status find_inspections(struct hg__watch *w)
{
	const hg_tape *tape = w->tape;
	const int64_t launches = tape->program.forwards + tape->program.backwards;
	int64_t first = 0, end = 0;
	int32_t dies = INT32_MAX;
	for (int64_t i = 0; i < launches; i++) {
		const int32_t now = position_of(tape, i), then = i + 1 < launches
		                                                     ? position_of(tape, i + 1)
		                                                     : hg__position_end(&tape->plan);
		for (; then > now && end < w->spots && w->spot[end].ready <= now; end++)
			dies = w->spot[end].dies < dies ? w->spot[end].dies : dies;
		if (dies >= then)
			continue;
		HG__TRY(add_inspection(w, i, first, end));
		first = end;
		dies = INT32_MAX;
	}
	return add_inspection(w, launches, first, end);
}

hg_status hg__watch_plan(struct hg__watch *w)
{
	HG__TRY(find_spots(w));
	HG__TRY(hg__watch_sums(w));
	return find_inspections(w);
}
