#ifndef HG_TESTS_WARD_H
#define HG_TESTS_WARD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "graphs.h"
#include "halfgraph/doctor.h"
#include "nn/state.h"
#include "unit/tape.h"

/* A tape of a case's own with its optimiser and the doctor that examines its steps. */

/* What a case records: it is called for the run's tape and for the doctor's. */
typedef hg_var (*scene_fn)(struct bench *b, hg_tape *tape);

struct ward {
	struct bench bench;
	scene_fn record;
	hg_optim *optim;
	hg_doctor *doctor;
	const hg_doctor_report *report;
};

static inline hg_var record_scene(void *user, hg_tape *tape)
{
	struct ward *w = user;
	return w->record(&w->bench, tape);
}

static inline void ward_open(struct ward *w, hg_policy policy, scene_fn record)
{
	*w = (struct ward){.record = record};
	bench_open(&w->bench, test_context(), policy, HG_TRAIN);
}

/* After the case has made its graph, tensors and parameters. */
static inline void ward_compile_with(struct ward *w, hg_optim_config config)
{
	CHECK_OK(hg_tape_compile(w->bench.tape, w->record(&w->bench, w->bench.tape)));
	CHECK_OK(hg_optim_create(w->bench.params, &config, &w->optim));
	CHECK_STATUS(hg_doctor_create(w->bench.params, w->optim, record_scene, w, NULL, &w->doctor),
	             HG_OK);
}

static inline void ward_compile(struct ward *w)
{
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	ward_compile_with(w, config);
}

static inline const hg_finding *ward_examine(struct ward *w)
{
	const hg_status status = hg_doctor_examine(w->doctor, 0, &w->report);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(w->bench.ctx));
	return w->report->findings ? w->report->finding : NULL;
}

static inline void ward_close(struct ward *w)
{
	hg_doctor_free(w->doctor);
	hg_optim_free(w->optim);
	bench_close(&w->bench);
}

/* The first finding, with what must be said of it; a cause of HG_CAUSE_COUNT: there is none. */
static inline const hg_finding *ward_expect(struct ward *w, hg_cause cause, int backward,
                                            const char *op, const char *layer, int64_t row,
                                            int64_t col)
{
	const hg_finding *f = ward_examine(w);
	for (int i = 0; i < w->report->findings; i++)
		test_note("%s", w->report->finding[i].sentence);
	if (cause == HG_CAUSE_COUNT) {
		CHECK(f == NULL);
		return NULL;
	}
	CHECK(f != NULL);
	CHECK_STR(hg_cause_name(f->cause), hg_cause_name(cause));
	CHECK_EQ_I(f->backward, backward);
	CHECK_STR(f->op, op);
	CHECK_STR(f->layer, layer);
	CHECK_EQ_I(f->row, row);
	CHECK_EQ_I(f->col, col);
	CHECK(f->links > 0 && *f->sentence);
	CHECK(backward || f->chain[0].node == f->node);
	return f;
}

/* This op, in this layer, is stored x 2^-shift from now on. */
static inline void ward_rescale(struct ward *w, const char *op, const char *layer, int shift)
{
	hg_state *state = NULL;
	struct hg__basis basis;
	hg_promotion node = {.shift = shift};
	(void)snprintf(node.op, sizeof node.op, "%s", op);
	(void)snprintf(node.layer, sizeof node.layer, "%s", layer);
	CHECK_OK(hg_state_create(&state));
	CHECK_OK(hg_state_add_promotion(state, &node));
	CHECK_OK(hg__basis_make(w->bench.params, state, &basis));
	hg__basis_swap_promotions(w->bench.params, &basis);
	hg__basis_fini(w->bench.ctx, &basis);
	hg_state_free(state);
}

static inline hg_graph *star(hg_context *ctx, int32_t n)
{
	return coo_graph(ctx, coo_star_loops(n));
}

static inline hg_tensor *constant_tensor(struct bench *b, int64_t rows, int64_t cols, float x)
{
	CHECK(rows > 0 && cols > 0);
	float *values = calloc((size_t)(rows * cols), sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		values[i] = x;
	hg_tensor *tensor = tensor_of(b, HG_F16, rows, cols, values, HG_F32);
	free(values);
	return tensor;
}

#endif
