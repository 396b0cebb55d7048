/* The time of what is done many times in one call. */
#include "repeat.h"

#include <stdlib.h>

#include "halfgraph/step.h"

#define SAMPLE_MS 20.0
#define WARM_UPS 3

static hg_status one_time(struct bench *b, struct marks *marks, repeat_fn run, void *what,
                          int64_t count, double *ms)
{
	HG__TRY(hg_context_synchronize(b->ctx));
	HG__TRY(device_host.mark(b->ctx, marks, 0));
	HG__TRY(run(what, count));
	HG__TRY(hg_context_synchronize(b->ctx));
	HG__TRY(device_host.mark(b->ctx, marks, 1));
	HG__TRY(device_host.elapsed(b->ctx, marks, 0, 1, ms));
	*ms /= (double)count;
	return HG_OK;
}

static hg_status sample(struct bench *b, struct marks *marks, repeat_fn run, void *what, double *ms)
{
	double one = 0;
	/* Runs of growing length, so that launches of several steps are captured, and results that
	 * outgrow fp16 after some steps are stored as a user gets them. Steps that take half a second
	 * are few in a training run. */
	for (int i = 0; i < WARM_UPS; i++)
		HG__TRY(one_time(b, marks, run, what, one < 500.0 ? (int64_t)1 << (3 * i) : 1, &one));
	const int64_t count = one < SAMPLE_MS ? (int64_t)(SAMPLE_MS / fmax(one, 0.002)) + 1 : 1;
	for (int64_t i = 0; i < b->options.repeat; i++)
		HG__TRY(one_time(b, marks, run, what, count, &ms[i]));
	return HG_OK;
}

hg_status repeat_measure(struct bench *b, repeat_fn run, void *what, struct timing *timing)
{
	struct marks *marks = NULL;
	double *ms = calloc((size_t)b->options.repeat, sizeof *ms);
	hg_status status = ms ? device_host.marks_create(b->ctx, 2, &marks)
	                      : hg__fail(b->ctx, HG_ERR_NOMEM, "no memory for %lld samples",
	                                 (long long)b->options.repeat);
	if (status == HG_OK)
		status = sample(b, marks, run, what, ms);
	if (status == HG_OK)
		*timing = timing_of(ms, (int)b->options.repeat);
	device_host.marks_free(marks);
	free(ms);
	return status;
}

hg_status repeat_steps(void *step, int64_t count)
{
	return hg_step_run(step, count);
}
