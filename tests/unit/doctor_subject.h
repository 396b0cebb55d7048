#ifndef HG_TESTS_DOCTOR_SUBJECT_H
#define HG_TESTS_DOCTOR_SUBJECT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "halfgraph/doctor.h"
#include "nn/state.h"
#include "unit/tape.h"

/* What the tests of the doctor examine: a tape that the case records, with its optimiser and a
 * doctor. */

/* Records the tape of a case. It is called twice: for the tape that is trained, and for the
 * doctor's. */
typedef hg_var (*record_fn)(struct bench *b, hg_tape *tape);

struct subject {
	struct bench bench;
	record_fn record;
	hg_optim *optim;
	hg_doctor *doctor;
	const hg_doctor_report *report; /* of the last examination */
};

static inline hg_var record_subject(void *user, hg_tape *tape)
{
	struct subject *s = user;
	return s->record(&s->bench, tape);
}

static inline void subject_open(struct subject *s, hg_policy policy, record_fn record)
{
	*s = (struct subject){.record = record};
	bench_open(&s->bench, test_context(), policy, HG_TRAIN);
}

/* Comes after the case has made its graph, tensors and parameters. */
static inline void subject_compile_with(struct subject *s, hg_optim_config config)
{
	CHECK_OK(hg_tape_compile(s->bench.tape, s->record(&s->bench, s->bench.tape)));
	CHECK_OK(hg_optim_create(s->bench.params, &config, &s->optim));
	CHECK_OK(hg_doctor_create(s->bench.params, s->optim, record_subject, s, NULL, &s->doctor));
}

static inline void subject_compile(struct subject *s)
{
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	subject_compile_with(s, config);
}

static inline void subject_close(struct subject *s)
{
	hg_doctor_free(s->doctor);
	hg_optim_free(s->optim);
	bench_close(&s->bench);
}

static inline void subject_step(struct subject *s)
{
	CHECK_OK(hg_tape_forward(s->bench.tape));
	CHECK_OK(hg_tape_backward(s->bench.tape));
	CHECK_OK(hg_optim_step(s->optim));
}

/* ---- examinations ---- */

/* Examines the next step, and notes what the findings say. Returns the first finding, or NULL. */
static inline const hg_finding *subject_examine(struct subject *s)
{
	const hg_status status = hg_doctor_examine(s->doctor, 0, &s->report);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(s->bench.ctx));
	for (int i = 0; i < s->report->findings; i++)
		test_note("%s", s->report->finding[i].sentence);
	return s->report->findings ? s->report->finding : NULL;
}

static inline void expect_healthy(struct subject *s)
{
	CHECK(subject_examine(s) == NULL);
}

/* Examines the next step and checks the first finding. */
static inline const hg_finding *expect_finding(struct subject *s, hg_cause cause, int backward,
                                               const char *op, const char *layer, int64_t row,
                                               int64_t col)
{
	const hg_finding *f = subject_examine(s);
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

/* The operand with this role; NULL: the finding lists none. */
static inline const hg_operand *operand_of(const hg_finding *f, const char *role)
{
	for (int i = 0; i < f->operands; i++)
		if (strcmp(f->operand[i].role, role) == 0)
			return &f->operand[i];
	test_note("%s has no %s", f->tensor, role);
	return NULL;
}

static inline void expect_operand(const hg_finding *f, const char *role, const char *tensor,
                                  int64_t row, int64_t col, double value)
{
	const hg_operand *o = operand_of(f, role);
	CHECK_MSG(o, "no %s", role);
	CHECK_STR(o->tensor, tensor);
	CHECK_EQ_I(o->row, row);
	CHECK_EQ_I(o->col, col);
	CHECK_MSG(fabs(o->value - value) <= 1e-3 * fabs(value), "%s is %g, expected %g", role, o->value,
	          value);
}

/* ---- parts of a case ---- */

/* From now on, tapes store the result of this op in this layer x 2^-shift. */
static inline void subject_rescale(struct subject *s, const char *op, const char *layer, int shift)
{
	hg_state *state = NULL;
	struct hg__basis basis;
	hg_promotion node = {.shift = shift};
	(void)snprintf(node.op, sizeof node.op, "%s", op);
	(void)snprintf(node.layer, sizeof node.layer, "%s", layer);
	CHECK_OK(hg_state_create(&state));
	CHECK_OK(hg_state_add_promotion(state, &node));
	CHECK_OK(hg__basis_make(s->bench.params, state, &basis));
	hg__basis_swap_promotions(s->bench.params, &basis);
	hg__basis_fini(s->bench.ctx, &basis);
	hg_state_free(state);
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

/* The usual inputs of a tape: tensor 0 is trained, tensor 1 has the targets. */
static inline hg_var x_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_variable(tape, b->tensor[0], "x");
}

static inline hg_var targets_of(struct bench *b, hg_tape *tape)
{
	return hg_tape_input(tape, b->tensor[1], "targets", -1.0);
}

/* Parameters of norms: gains and variances begin with 1, biases and means with 0. */
static inline hg_param *norm_param(struct bench *b, const char *name, int64_t cols, int buffer)
{
	const int ones = strcmp(name, "gamma") == 0 || strcmp(name, "var") == 0;
	hg_param *made = hg_params_find(b->params, name);
	if (!made)
		CHECK_OK(hg_params_add(b->params, name, 1, cols, ones ? HG_INIT_ONES : HG_INIT_ZEROS,
		                       HG_PARAM_F32 | (buffer ? HG_PARAM_BUFFER : 0u), &made));
	return made;
}

static inline hg_var batch_norm_of(struct bench *b, hg_tape *tape, hg_var x, int64_t cols,
                                   float eps)
{
	const hg_var gamma = hg_tape_param(tape, norm_param(b, "gamma", cols, 0)),
	             beta = hg_tape_param(tape, norm_param(b, "beta", cols, 0));
	return hg_batch_norm(tape, x, gamma, beta, norm_param(b, "mean", cols, 1),
	                     norm_param(b, "var", cols, 1), 0.1f, eps);
}

/* The sum over neighbours in layer "conv1", a linear layer "head" and a mean of squares. */
static inline hg_var record_sum(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	hg_var h = hg_spmm(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0), HG_NONE,
	                   HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "head");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)),
	              HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-12f), targets_of(b, tape), HG_NONE);
}

/* The same on a star of n nodes with 3 features each, all of them x. The sum of node 0 has n - 1
 * addends. */
static inline void subject_star(struct subject *s, hg_policy policy, int64_t n, float x)
{
	subject_open(s, policy, record_sum);
	s->bench.graph = coo_graph(s->bench.ctx, coo_star_loops(n));
	constant_tensor(&s->bench, n, 3, x);
	constant_tensor(&s->bench, n, 2, 0.0f);
	subject_compile(s);
}

#endif
