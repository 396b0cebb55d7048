/* The doctor: faults of each cause on small tapes and models, found where they were put; and the run that it watches keeps every bit. */
#include "halfgraph/doctor.h"

#include <math.h>

#include "tape.h"

/* What a case records: it is called for the run's tape and for the doctor's. */
typedef hg_var (*scene_fn)(struct bench *b, hg_tape *tape);

struct ward {
	struct bench bench;
	scene_fn record;
	hg_optim *optim;
	hg_doctor *doctor;
	const hg_doctor_report *report;
};

static hg_var record_scene(void *user, hg_tape *tape)
{
	struct ward *w = user;
	return w->record(&w->bench, tape);
}

static void ward_open(struct ward *w, hg_policy policy, scene_fn record)
{
	*w = (struct ward){.record = record};
	bench_open(&w->bench, test_context(), policy, HG_TRAIN);
}

/* After the case has made its graph, tensors and parameters. */
static void ward_compile(struct ward *w)
{
	const hg_optim_config config = HG_OPTIM_CONFIG_INIT;
	CHECK_OK(hg_tape_compile(w->bench.tape, w->record(&w->bench, w->bench.tape)));
	CHECK_OK(hg_optim_create(w->bench.params, &config, &w->optim));
	CHECK_STATUS(hg_doctor_create(w->bench.params, w->optim, record_scene, w, NULL, &w->doctor), HG_OK);
}

static const hg_finding *ward_examine(struct ward *w)
{
	const hg_status status = hg_doctor_examine(w->doctor, 0, &w->report);
	CHECK_MSG(status == HG_OK, "%s: %s", hg_status_name(status), hg_context_error(w->bench.ctx));
	return w->report->findings ? w->report->finding : NULL;
}

static void ward_close(struct ward *w)
{
	hg_doctor_free(w->doctor);
	hg_optim_free(w->optim);
	bench_close(&w->bench);
}

static void tell(const struct ward *w)
{
	for (int i = 0; i < w->report->findings; i++)
		test_note("%s", w->report->finding[i].sentence);
}

/* A hub, node 0, that hears all others; everybody hears itself. */
static hg_graph *star(hg_context *ctx, int32_t n)
{
	int32_t *dst = calloc((size_t)(2 * n), sizeof *dst), *src = calloc((size_t)(2 * n), sizeof *src);
	int64_t m = 0;
	CHECK(dst && src);
	for (int32_t i = 1; i < n; i++) {
		dst[m] = 0;
		src[m++] = i;
		dst[m] = src[m] = i;
		m++;
	}
	hg_graph *graph = NULL;
	const hg_status status = hg_graph_from_coo(ctx, n, n, m, dst, src, NULL, NULL, &graph);
	free(dst);
	free(src);
	CHECK_OK(status);
	return graph;
}

static hg_tensor *constant_tensor(struct bench *b, int64_t rows, int64_t cols, float x)
{
	float *values = calloc((size_t)(rows * cols), sizeof *values);
	CHECK(values != NULL);
	for (int64_t i = 0; i < rows * cols; i++)
		values[i] = x;
	hg_tensor *tensor = tensor_of(b, HG_F16, rows, cols, values, HG_F32);
	free(values);
	return tensor;
}

/* mean of (spmm(x) w)^2 in a layer "conv1" */
static hg_var sum_scene(struct bench *b, hg_tape *tape)
{
	hg_tape_scope(tape, "conv1");
	hg_var h = hg_spmm(tape, b->graph, hg_tape_input(tape, b->tensor[0], "features", -1.0), HG_NONE, HG_NORM_NONE, 1.0f);
	hg_tape_scope(tape, "head");
	h = hg_linear(tape, h, hg_tape_param(tape, param(b, "w", hg_tensor_cols(b->tensor[0]), 2)), HG_NONE);
	hg_tape_scope(tape, NULL);
	return hg_mse(tape, hg_scale(tape, h, 0x1p-12f), hg_tape_input(tape, b->tensor[1], "targets", -1.0), HG_NONE);
}

static void sum_ward(struct ward *w, hg_policy policy, int32_t n, float x)
{
	ward_open(w, policy, sum_scene);
	w->bench.graph = star(w->bench.ctx, n);
	constant_tensor(&w->bench, n, 3, x);
	constant_tensor(&w->bench, n, 2, 0.0f);
	ward_compile(w);
}

static void star_sticks_at_2048(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 13001, 1.0f);
	const hg_finding *f = ward_examine(&w);
	tell(&w);
	CHECK(f != NULL);
	CHECK_EQ_I(f->cause, HG_CAUSE_SWAMPING);
	CHECK_STR(f->op, "spmm");
	CHECK_STR(f->layer, "conv1");
	CHECK_EQ_I(f->row, 0);
	CHECK_EQ_I(f->partial_at, 2048);
	CHECK(f->partial == 2048.0 && f->got == 2048.0 && f->wide == 13000.0 && f->limit == 1.0);
	ward_close(&w);
}

static void star_overflows_in_accumulation(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16_naive(), 2001, 40.0f);
	const hg_finding *f = ward_examine(&w);
	tell(&w);
	CHECK(f != NULL);
	CHECK_EQ_I(f->cause, HG_CAUSE_STORE); /* 80000 is beyond f16 however it is summed */
	CHECK_EQ_I(f->terms, 2000);
	ward_close(&w);
}

static void healthy_has_no_finding(void)
{
	struct ward w;
	sum_ward(&w, hg_policy_fp16(), 101, 1.0f);
	const hg_finding *f = ward_examine(&w);
	tell(&w);
	CHECK(f == NULL);
	for (int i = 0; i < w.report->tensors; i++)
		test_note("%s %s %s %lld x %lld amax %g headroom %g", w.report->tensor[i].name, w.report->tensor[i].op, w.report->tensor[i].layer,
		          (long long)w.report->tensor[i].rows, (long long)w.report->tensor[i].cols, w.report->tensor[i].amax, w.report->tensor[i].headroom);
	ward_close(&w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(star_sticks_at_2048), TEST(star_overflows_in_accumulation), TEST(healthy_has_no_finding)};
	return RUN_TESTS(argc, argv, cases);
}
