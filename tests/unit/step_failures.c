/* Captures that fail or are refused: the step runs call by call from then on, or reports the
 * failure. */
#include "unit/log_record.h"
#include "unit/step_rig.h"

/* ---- a device whose captures fail ---- */

/* What the functions below were asked for. A backend's functions get nothing but the context. */
struct refusal {
	int begun, dropped;
	struct log_record log;
};
static struct refusal refusal;

static hg_status begin_refused(hg_context *ctx)
{
	refusal.begun++;
	return hg__fail(ctx, HG_ERR_DEVICE, "capture: the stream is in use");
}

static hg_status begin_accepted(hg_context *ctx)
{
	(void)ctx;
	refusal.begun++;
	return HG_OK;
}

/* Fails to make the captured work ready for launches. work NULL: the caller drops the capture. */
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

/* Gives the context a backend whose captures fail. Its kernels are those of the old backend. */
static void refuse_captures(struct rig *r, struct hg__backend *backend,
                            hg_status (*begin)(hg_context *))
{
	*backend = *r->ctx->backend;
	backend->capture_begin = begin;
	backend->capture_end = end_refused;
	r->ctx->backend = backend;
	refusal = (struct refusal){0};
	r->ctx->log = log_record_line;
	r->ctx->log_user = &refusal.log;
	r->ctx->log_level = HG_LOG_WARN;
}

static void check_one_warning(void)
{
	CHECK_EQ_I(refusal.log.warnings, 1);
	CHECK_CONTAINS(refusal.log.line[0],
	               "step: 1 could not be captured and will be queued call by call: capture");
}

/* After the first refusal nothing is captured any more. The log gets one warning, and every step
 * runs. */
static void refused_capture_changes_no_result(const void *item)
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
	CHECK(refusal.begun == 1 && refusal.dropped == 0);
	check_one_warning();
	check_same_trace(&plain, &other, "refused");
	hg_step_launch launch = HG_STEP_LAUNCH_INIT;
	CHECK_OK(hg_step_get_launch(r.step, &launch));
	CHECK(!launch.captured && launch.operations == 0);
	rig_close(&r);
}

/* A kernel fails while it is captured. The capture is dropped, the step runs call by call, and then
 * the failure is reported. */
static hg_status failing_gemm(hg_context *ctx, const struct hg__gemm_args *args)
{
	(void)args;
	return hg__fail(ctx, HG_ERR_DEVICE, "captured gemm: the test lets it fail");
}

static void failure_while_capturing_is_reported(const void *item)
{
	const open_fn open = *(const open_fn *)item;
	struct rig r;
	struct hg__backend backend;
	rig_open(&r, open(), "gcn", 0.0f);
	rig_step(&r, 0, 0);
	CHECK_OK(hg_step_run(r.step, 1));
	refuse_captures(&r, &backend, begin_accepted);
	struct hg__kernels kernels = *r.ctx->backend->kernels;
	kernels.gemm.run = failing_gemm;
	for (int64_t i = 0; i < r.tape->program.forwards; i++)
		r.tape->program.forward[i].call.k = &kernels;
	CHECK_STATUS(hg_step_run(r.step, 1), HG_ERR_DEVICE);
	CHECK_CONTAINS(hg_context_error(r.ctx), "the test lets it fail");
	CHECK(refusal.begun == 1 && refusal.dropped == 1);
	check_one_warning();
	rig_close(&r);
}

/* A kernel call that waits breaks the capture, as on a GPU. The step runs call by call from then
 * on. */
static hg_status waiting_fill(hg_context *ctx, void *memory, int byte, size_t bytes)
{
	HG__TRY(hg_context_synchronize(ctx));
	return capturing.real->fill(ctx, memory, byte, bytes);
}

static void waiting_breaks_a_capture(void)
{
	struct rig r;
	hg_param *unused = NULL;
	rig_open(&r, capturing_context(), "gcn", 0.0f);
	hg_optim_free(r.optim);
	hg_tape_free(r.tape);
	/* The gradient of an unused parameter is filled with 0 in every step, by the function below. */
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
	    ON_BOTH(refused_capture_changes_no_result),
	    ON_BOTH(failure_while_capturing_is_reported),
	    TEST(waiting_breaks_a_capture),
	};
	return RUN_TESTS(argc, argv, cases);
}
