/* Captures that fail or are refused: the step goes on call by call, or reports the failure. */
#include "unit/step_rig.h"

/* ---- a device that cannot capture after all ---- */

struct refusal {
	int begun, dropped, warned;
};
static struct refusal refusal; /* the backend's functions know nothing but the context */

static hg_status begin_refused(hg_context *ctx)
{
	refusal.begun++;
	return hg__fail(ctx, HG_ERR_DEVICE, "capture: somebody else's stream");
}

static hg_status begin_accepted(hg_context *ctx)
{
	(void)ctx;
	refusal.begun++;
	return HG_OK;
}

/* What was caught cannot be made ready; or was not wanted. */
static hg_status end_refused(hg_context *ctx, void **work, int64_t *operations)
{
	if (!work) {
		refusal.dropped++;
		return HG_OK;
	}
	*work = NULL;
	*operations = 0;
	return hg__fail(ctx, HG_ERR_NOMEM, "captured work: no memory");
}

static void note_warning(void *user, hg_log_level level, const char *text)
{
	struct refusal *seen = user;
	if (level != HG_LOG_WARN)
		return;
	seen->warned++;
	CHECK_CONTAINS(text, "step: 1 could not be captured and will be queued call by call: capture");
}

/* Such a backend in front of the context's own, which keeps running the kernels. */
static void refuse_captures(struct rig *r, struct hg__backend *backend,
                            hg_status (*begin)(hg_context *))
{
	*backend = *r->ctx->backend;
	backend->capture_begin = begin;
	backend->capture_end = end_refused;
	r->ctx->backend = backend;
	r->ctx->log = note_warning;
	r->ctx->log_user = &refusal;
	r->ctx->log_level = HG_LOG_WARN;
	refusal = (struct refusal){0, 0, 0};
}

/* The capture is given up once and for all, with one line of the log, and every step runs. */
static void a_refused_capture_changes_nothing(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	static struct trace plain, other;
	struct rig r;
	struct hg__backend backend;
	trace_plain(&plain, open, "gcn", 0.0f);
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 8);
	refuse_captures(&r, &backend, begin_refused);
	other.steps = 0;
	step_run(&r, &other, 1);
	CHECK_EQ_I(refusal.begun, 0); /* the first step comes before any capture */
	step_run(&r, &other, STEPS - 1);
	trace_weights(&other, &r);
	CHECK(refusal.begun == 1 && refusal.warned == 1 && refusal.dropped == 0);
	same_trace(&plain, &other, "refused");
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	CHECK_OK(hg_step_get_launch(r.step, &launch));
	CHECK(!launch.captured && launch.operations == 0);
	rig_close(&r);
}

/* A kernel that fails while it is captured: what was caught is dropped, and the failure is reported
 * by the run that follows. */
static hg_status failing_gemm(hg_context *ctx, const struct hg__gemm_args *args)
{
	(void)args;
	return hg__fail(ctx, HG_ERR_DEVICE, "captured gemm: no such luck");
}

static void a_failure_while_capturing_is_reported(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	struct hg__backend backend;
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 0);
	CHECK_OK(hg_step_run(r.step, 1));
	refuse_captures(&r, &backend, begin_accepted);
	struct hg__kernels kernels = *r.ctx->backend->kernels;
	kernels.gemm = failing_gemm;
	for (int64_t i = 0; i < r.tape->program.forwards; i++)
		r.tape->program.forward[i].call.k = &kernels;
	CHECK_STATUS(hg_step_run(r.step, 1), HG_ERR_DEVICE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "no such luck");
	CHECK(refusal.begun == 1 && refusal.dropped == 1 && refusal.warned == 1);
	rig_close(&r);
}

/* What a GPU forbids in a capture breaks the pretended one: the step goes on call by call. */
static hg_status waiting_fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	HG__TRY(hg_context_synchronize(ctx));
	return capturing.real->fill(ctx, memory, byte, bytes);
}

static void a_wait_breaks_a_capture(void)
{
	struct rig r;
	hg_param *unused = NULL;
	rig_open(&r, capturing_context(), "gcn", 0.0f);
	hg_optim_free(r.optim);
	hg_tape_free(r.tape);
	/* its gradient is filled with 0 in every step */
	CHECK_OK(hg_params_add(r.params, "unused", 3, 3, HG_INIT_ONES, 0, &unused));
	CHECK_OK(hg_tape_create(r.params, HG_TRAIN, &r.tape));
	const hg_var logits = hg_model_record(r.model, r.tape, &r.input);
	(void)hg_tape_param(r.tape, unused);
	r.loss =
	    hg_softmax_xent(r.tape, logits, hg_tape_input(r.tape, r.label, "labels", -1.0), HG_NONE);
	CHECK_OK(hg_tape_compile(r.tape, r.loss));
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	CHECK_OK(hg_optim_create(r.params, &adam, &r.optim));
	rig_step(&r, 0, 4);
	capturing.backend.fill = waiting_fill;
	CHECK_OK(hg_step_run(r.step, 20));
	CHECK(capturing.captures == 1 && capturing.launches == 0 && capturing.kept == 0);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    ON_BOTH(a_refused_capture_changes_nothing),
	    ON_BOTH(a_failure_while_capturing_is_reported),
	    TEST(a_wait_breaks_a_capture),
	};
	return RUN_TESTS(argc, argv, cases);
}
