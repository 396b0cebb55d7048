/* What the observer saw last, as the page's table of tensors wants it. */
#include "observed.h"

#include <stdlib.h>
#include <string.h>

/* The verdict on a tensor; those of which the tape says nothing are in f32 by choice. */
static hg_verdict verdict_of(const hg_tape *tape, const hg_observation *o)
{
	const int64_t count = hg_tape_narrowings(tape);
	hg_narrowing n = HG_NARROWING_INIT;
	for (int64_t i = 0; i < count && o->node >= 0; i++)
		if (hg_tape_narrowing(tape, i, &n) >= 0 && n.node == o->node && !n.backward == !o->backward)
			return n.verdict;
	return o->dtype == HG_F16 ? HG_GUARDED : HG_EXACT;
}

static hg_status keep_tensor(const hg_tape *tape, const hg_observation *o, hg_doctor_tensor *t)
{
	static const char of[] = "gradient of ";
	const char *prefix = o->backward && strncmp(o->name, of, sizeof of - 1) != 0 ? of : "";
	const size_t size = sizeof of + strlen(o->name);
	char *name = malloc(size);
	if (!name)
		return HG_ERR_NOMEM;
	memcpy(name, prefix, strlen(prefix));
	memcpy(name + strlen(prefix), o->name, strlen(o->name) + 1);
	*t = (hg_doctor_tensor){.name = name,
	                        .op = "",
	                        .layer = "",
	                        .node = o->node,
	                        .backward = o->backward,
	                        .dtype = o->dtype,
	                        .rows = o->rows,
	                        .cols = o->cols,
	                        .zeros = (int64_t)o->zeros,
	                        .subnormals = (int64_t)o->subnormals,
	                        .nonfinite = (int64_t)o->nonfinite,
	                        .amax = o->amax,
	                        .bound = o->bound,
	                        .headroom = o->headroom,
	                        .verdict = verdict_of(tape, o),
	                        .shift = o->shift};
	for (int k = 0; k < HG_OBSERVED_BINS; k++)
		t->bin[k] = (int64_t)o->bin[k];
	return HG_OK;
}

hg_status observed_take(struct observed *o, hg_train *train)
{
	hg_step *step = hg_train_step(train);
	const hg_tape *tape = hg_train_tape(train);
	hg_observer observer = HG_OBSERVER_INIT;
	*o = (struct observed){0};
	hg_status status = hg_step_observer(step, &observer);
	if (status < 0 || !observer.every || observer.steps < 1)
		return status;
	o->tensor = calloc((size_t)observer.tensors + 1, sizeof *o->tensor);
	if (!o->tensor)
		return HG_ERR_NOMEM;
	for (int64_t i = 0; i < observer.tensors && status >= 0; i++) {
		hg_observation seen = HG_OBSERVATION_INIT;
		status = hg_step_observed(step, 0, i, &seen);
		if (status >= 0)
			status = keep_tensor(tape, &seen, &o->tensor[o->count]);
		o->count += status >= 0;
		o->step = seen.step;
		o->loss_scale = seen.loss_scale;
	}
	return status;
}

void observed_free(struct observed *o)
{
	for (int i = 0; i < o->count; i++)
		free((void *)(uintptr_t)o->tensor[i].name);
	free(o->tensor);
	*o = (struct observed){0};
}
