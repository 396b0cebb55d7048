/* The interface of the doctor: examinations that are stopped, that go back to the last step or
 * fail, and the sentence of a finding. The run that is examined keeps every bit. */
#include "halfgraph/doctor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/doctor_subject.h"
#include "unit/faulty.h"

/* ---- sentences ---- */

static void name_row(void *user, const hg_finding *f, char *name, size_t room)
{
	(void)snprintf(name, room, "%s %lld", (const char *)user, (long long)f->row);
}

/* A sentence that does not fit is cut, and its whole length is returned. */
static void sentence_uses_the_callers_names(void)
{
	char text[512], name[] = "paper", small[8];
	struct subject s;
	subject_star(&s, hg_policy_fp16_naive(), 2001, 40.0f);
	const hg_finding *f = subject_examine(&s);
	const int length = hg_finding_sentence(f, name_row, name, text, sizeof text);
	CHECK_EQ_I(length, strlen(text));
	CHECK(strstr(text,
	             "(result of spmm: sum over neighbours in conv1) at paper 0, feature 0 is inf: ") !=
	      NULL);
	CHECK_EQ_I(hg_finding_sentence(f, name_row, name, small, sizeof small), length);
	CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
	CHECK_EQ_I(hg_finding_sentence(f, name_row, name, NULL, 0), length);
	(void)hg_finding_sentence(f, NULL, NULL, text, sizeof text);
	CHECK(strncmp(f->sentence, text, strlen(text)) == 0);
	subject_close(&s);
}

/* ---- stopping ---- */

struct watch {
	int64_t calls, total;
	int64_t stop_at; /* the call that asks to stop, from 1; 0: none does */
};

static int on_replay(void *user, const char *what, int64_t done, int64_t total)
{
	struct watch *w = user;
	CHECK_STR(what, "replay");
	CHECK(done < total && done == w->calls);
	w->total = total;
	return ++w->calls == w->stop_at;
}

/* A replay that is stopped leaves weights and counters as they were, and the next one finds the
 * same. */
static void replay_can_be_stopped_before_every_node(void)
{
	struct subject s;
	struct watch watch = {0};
	const hg_progress progress = {on_replay, &watch};
	hg_doctor *doctor = NULL;
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	config.progress = &progress;
	subject_star(&s, hg_policy_fp16_naive(), 2001, 40.0f);
	(void)subject_examine(&s);
	const int findings = s.report->findings;
	CHECK_OK(hg_doctor_create(s.bench.params, s.optim, record_subject, &s, &config, &doctor));
	CHECK_OK(hg_doctor_examine(doctor, 0, &s.report));
	CHECK_EQ_I(s.report->findings, findings);
	CHECK_EQ_I(watch.calls, watch.total);
	for (int64_t k = 1; k <= watch.total; k++) {
		watch = (struct watch){.stop_at = k, .total = watch.total};
		CHECK_STATUS(hg_doctor_examine(doctor, 0, &s.report), HG_ERR_STATE);
		CHECK_CONTAINS(hg_context_error(s.bench.ctx), "stopped on request");
		CHECK(!s.report && watch.calls == k);
	}
	watch.stop_at = watch.calls = 0;
	CHECK_OK(hg_doctor_examine(doctor, 0, &s.report));
	CHECK_EQ_I(s.report->findings, findings);
	CHECK_EQ_I(s.report->step, 0);
	hg_doctor_free(doctor);
	subject_close(&s);
}

/* ---- going back ---- */

/* The sum of 80000 overflows. Without a guard the step is skipped because of its gradients, and the
 * loss scale falls. */
static void last_step_can_be_examined_if_its_gradients_overflowed(void)
{
	struct subject s;
	hg_step_info info = HG_STEP_INFO_INIT;
	hg_policy policy = hg_policy_fp16();
	policy.replan = 0;
	subject_star(&s, policy, 2001, 40.0f);
	CHECK_STATUS(hg_doctor_examine(s.doctor, 1, &s.report), HG_ERR_STATE); /* no step before */
	subject_step(&s);
	CHECK_OK(hg_optim_info(s.optim, &info));
	CHECK(!info.applied && info.loss_scale == 32768.0f);
	CHECK_OK(hg_doctor_examine(s.doctor, 1, &s.report));
	CHECK(s.report->findings >= 1 && s.report->step == 0 && s.report->loss_scale == 65536.0);
	CHECK_EQ_I(s.report->finding[0].cause, HG_CAUSE_STORE);
	CHECK_OK(hg_doctor_examine(s.doctor, 0, &s.report));
	CHECK(s.report->step == 1 && s.report->loss_scale == 32768.0);
	CHECK_STATUS(hg_doctor_examine(s.doctor, 2, &s.report), HG_ERR_ARG);
	subject_close(&s);
}

/* With a guard the loss scale stays, and the step reports the node that the doctor finds. */
static void last_step_can_be_examined_if_a_guard_skipped_it(void)
{
	struct subject s;
	hg_step_info info = HG_STEP_INFO_INIT;
	subject_star(&s, hg_policy_fp16(), 2001, 40.0f);
	subject_step(&s);
	CHECK_OK(hg_optim_info(s.optim, &info));
	CHECK(info.reason == HG_STEP_SKIPPED_FORWARD && info.loss_scale == 65536.0f &&
	      info.overflow_amax == 80000.0f);
	CHECK_OK(hg_doctor_examine(s.doctor, 1, &s.report));
	CHECK_EQ_I(s.report->finding[0].node, info.overflow_node);
	subject_close(&s);
}

static void applied_step_cannot_be_examined_afterwards(void)
{
	struct subject s;
	subject_star(&s, hg_policy_fp16(), 21, 1.0f);
	subject_step(&s);
	CHECK_STATUS(hg_doctor_examine(s.doctor, 1, &s.report), HG_ERR_STATE);
	subject_close(&s);
}

/* ---- empty graphs, memory, arguments ---- */

static void empty_graphs_are_healthy(void)
{
	struct subject s;
	subject_open(&s, hg_policy_fp16_naive(), record_sum);
	s.bench.graph = coo_graph(s.bench.ctx, coo_empty(0, 0));
	tensor_of(&s.bench, HG_F16, 0, 3, NULL, HG_F32);
	tensor_of(&s.bench, HG_F16, 0, 2, NULL, HG_F32);
	subject_compile(&s);
	expect_healthy(&s);
	subject_close(&s);
	subject_star(&s, hg_policy_fp16_naive(), 1, 1.0f);
	expect_healthy(&s);
	subject_close(&s);
}

static void examinations_free_their_memory(void)
{
	hg_memory_info before = HG_MEMORY_INFO_INIT, after = HG_MEMORY_INFO_INIT;
	struct subject s;
	subject_star(&s, hg_policy_fp16_naive(), 2001, 40.0f);
	(void)subject_examine(&s);
	CHECK_OK(hg_context_memory(s.bench.ctx, &before));
	for (int i = 0; i < 3; i++)
		(void)subject_examine(&s);
	CHECK_OK(hg_context_memory(s.bench.ctx, &after));
	CHECK_EQ_I(before.current_bytes, after.current_bytes);
	subject_close(&s);
}

/* A graph, a tape, a doctor and one examination on a context whose k-th allocation fails. */
static hg_status create_and_examine(hg_context *ctx)
{
	struct subject s = {.record = record_sum};
	const hg_policy policy = hg_policy_fp16_naive();
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	struct bench *b = &s.bench;
	struct coo edges = coo_star(40);
	float x[41 * 3], target[41 * 2] = {0};
	hg_param *made = NULL;
	for (int i = 0; i < 41 * 3; i++)
		x[i] = 2000.0f;
	b->ctx = ctx;
	hg_status status = coo_build(ctx, &edges, &b->graph);
	coo_free(&edges);
	for (int i = 0; i < 2 && status >= 0; i++) {
		status = hg_tensor_create(ctx, HG_F16, 41, 3 - i, &b->tensor[i]);
		b->tensors += status >= 0;
		if (status >= 0)
			status = hg_tensor_upload(b->tensor[i], i ? target : x, HG_F32);
	}
	if (status >= 0)
		status = hg_params_create(ctx, &policy, &b->params);
	if (status >= 0)
		status = hg_params_add(b->params, "w", 3, 2, HG_INIT_GLOROT_UNIFORM, 0, &made);
	if (status >= 0)
		status = hg_optim_create(b->params, &config, &s.optim);
	if (status >= 0)
		status = hg_doctor_create(b->params, s.optim, record_subject, &s, NULL, &s.doctor);
	if (status >= 0)
		status = hg_doctor_examine(s.doctor, 0, &s.report);
	if (status >= 0 && s.report->findings < 1)
		status = HG_ERR_INTERNAL;
	hg_doctor_free(s.doctor);
	hg_optim_free(s.optim);
	hg_params_free(b->params);
	for (int i = 0; i < b->tensors; i++)
		hg_tensor_free(b->tensor[i]);
	hg_graph_free(b->graph);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(create_and_examine);
	test_note("%lld allocations", (long long)count);
	CHECK(count > 50);
}

static void silent_findings_can_be_switched_off(void)
{
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	struct subject s;
	subject_star(&s, hg_policy_fp16_naive(), 4097, 1.0f);
	hg_doctor_free(s.doctor);
	config.silent = 0;
	CHECK_OK(hg_doctor_create(s.bench.params, s.optim, record_subject, &s, &config, &s.doctor));
	expect_healthy(&s);
	subject_close(&s);
}

static void wrong_arguments_are_refused(void)
{
	struct subject s;
	hg_doctor *doctor = NULL;
	hg_doctor_config config = HG_DOCTOR_CONFIG_INIT;
	subject_star(&s, hg_policy_fp16(), 5, 1.0f);
	CHECK_STATUS(hg_doctor_create(NULL, NULL, record_subject, &s, NULL, &doctor), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create(s.bench.params, NULL, NULL, &s, NULL, &doctor), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create(s.bench.params, NULL, record_subject, &s, NULL, NULL),
	             HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_create_train(NULL, NULL, &doctor), HG_ERR_ARG);
	config.most_findings = 0;
	CHECK_STATUS(hg_doctor_create(s.bench.params, NULL, record_subject, &s, &config, &doctor),
	             HG_ERR_ARG);
	config.size = 0;
	CHECK_STATUS(hg_doctor_create(s.bench.params, NULL, record_subject, &s, &config, &doctor),
	             HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_examine(NULL, 0, &s.report), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_examine(s.doctor, 0, NULL), HG_ERR_ARG);
	hg_doctor_free(NULL);
	subject_close(&s);
}

static void causes_have_names(void)
{
	for (int i = 0; i < HG_CAUSE_COUNT; i++)
		CHECK(*hg_cause_name((hg_cause)i) && *hg_cause_text((hg_cause)i));
	CHECK_STR(hg_cause_name(HG_CAUSE_LOSS_SCALE), "loss-scale");
	CHECK_STR(hg_cause_name(HG_CAUSE_COUNT), "unknown");
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(sentence_uses_the_callers_names),
	    TEST(replay_can_be_stopped_before_every_node),
	    TEST(last_step_can_be_examined_if_its_gradients_overflowed),
	    TEST(last_step_can_be_examined_if_a_guard_skipped_it),
	    TEST(applied_step_cannot_be_examined_afterwards),
	    TEST(empty_graphs_are_healthy),
	    TEST(examinations_free_their_memory),
	    TEST(every_allocation_may_fail),
	    TEST(silent_findings_can_be_switched_off),
	    TEST(wrong_arguments_are_refused),
	    TEST(causes_have_names),
	};
	return RUN_TESTS(argc, argv, cases);
}
