/* The doctor beside training runs: models that are well have no finding, and the run keeps every
 * bit, whether somebody looks or not; models that are not are told apart. */
#include "halfgraph/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "unit/faulty.h"

/* Four planted communities, and node 0, which hears `hub` others. */
enum { N = 240, M = 2400, D = 12, C = 4, HUB = 3000 };

struct task {
	int32_t dst[M + HUB], src[M + HUB], label[N];
	float x[N][D];
	uint8_t train[N], val[N];
};

static void task_make(struct task *t, int64_t hub)
{
	test_reseed(5);
	memset(t, 0, sizeof *t);
	for (int64_t e = 0; e < M + hub; e++) {
		t->dst[e] = e < M ? (int32_t)test_below(N) : 0;
		t->src[e] = (int32_t)(e % 4 ? (t->dst[e] + C * test_below(N)) % N : test_below(N));
	}
	for (int i = 0; i < N; i++) {
		t->label[i] = i % C;
		(i < 80 ? t->train : t->val)[i] = 1;
		for (int c = 0; c < D; c++)
			t->x[i][c] = test_uniform() < 0.5
			                 ? 0.0f
			                 : (float)(test_normal() * 0.7 + (c % C == i % C ? 1.5 : 0.0));
	}
}

struct run {
	hg_context *ctx;
	hg_graph *x_sparse;
	hg_tensor *x;
	hg_train_data data;
	hg_train *train;
	hg_doctor *doctor;
	int every; /* examine the next step so often; 0: never */
	int skipped_too;
	int looks, findings;
	double loss[256];
	char said[1024];
	hg_finding first; /* its texts are gone with the report */
};

static void sparse_features(struct run *r, const struct task *t)
{
	int32_t row[N * D], col[N * D];
	float value[N * D];
	int64_t m = 0;
	for (int32_t i = 0; i < N * D; i++) {
		if (t->x[i / D][i % D] == 0.0f)
			continue;
		row[m] = i / D;
		col[m] = i % D;
		value[m++] = t->x[i / D][i % D];
	}
	CHECK_OK(hg_graph_from_coo(r->ctx, N, D, m, row, col, value, NULL, &r->x_sparse));
}

static void run_data(struct run *r, hg_context *ctx, const struct task *t, int64_t hub, int sparse)
{
	memset(r, 0, sizeof *r);
	r->ctx = ctx;
	r->data = (hg_train_data)HG_TRAIN_DATA_INIT;
	CHECK_OK(
	    hg_graph_from_coo(ctx, N, N, M + hub, t->dst, t->src, NULL, NULL, &r->data.input.graph));
	if (sparse)
		sparse_features(r, t);
	else {
		CHECK_OK(hg_tensor_create(ctx, HG_F32, N, D, &r->x));
		CHECK_OK(hg_tensor_upload(r->x, t->x, HG_F32));
	}
	r->data.input.x = r->x;
	r->data.input.x_sparse = r->x_sparse;
	r->data.labels = t->label;
	r->data.train_mask = t->train;
	r->data.val_mask = t->val;
}

static void examine(struct run *r, int back)
{
	const hg_doctor_report *report = NULL;
	const hg_status status = hg_doctor_examine(r->doctor, back, &report);
	CHECK_MSG(status == HG_OK, "%s", hg_context_error(r->ctx));
	r->looks++;
	if (report->findings && !r->findings) {
		r->first = report->finding[0];
		snprintf(r->said, sizeof r->said, "%s", report->finding[0].sentence);
	}
	r->findings += report->findings;
}

static int watch(void *user, const hg_train_event *event)
{
	struct run *r = user;
	r->loss[event->epoch % 256] = event->loss;
	if (r->every && event->epoch % r->every == 0)
		examine(r, 0);
	if (r->skipped_too && !event->step.applied)
		examine(r, 1);
	return 0;
}

static void run_all(struct run *r, hg_train_config c)
{
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	c.progress = watch;
	c.user = r;
	c.step.per_launch = 1;
	CHECK_MSG(hg_train_create(r->ctx, &c, &r->data, &r->train) == HG_OK, "%s",
	          hg_context_error(r->ctx));
	CHECK_OK(hg_doctor_create_train(r->train, NULL, &r->doctor));
	CHECK_MSG(hg_train_run(r->train, &report) >= 0, "%s", hg_context_error(r->ctx));
}

static void run_close(struct run *r)
{
	hg_doctor_free(r->doctor);
	hg_train_free(r->train);
	hg_tensor_free(r->x);
	hg_graph_free(r->x_sparse);
	hg_graph_free(r->data.input.graph);
	hg_context_free(r->ctx);
}

static hg_train_config config_of(const char *model, const char *policy, int epochs)
{
	hg_train_config c = hg_train_config_default(model);
	CHECK_OK(hg_policy_parse(policy, &c.policy));
	c.epochs = epochs;
	c.model.hidden = 16;
	c.model.heads = 4;
	return c;
}

/* Bits of everything that a step writes. */
static void same_state(const struct run *a, const struct run *b)
{
	hg_params *p = hg_train_params(a->train), *q = hg_train_params(b->train);
	for (int64_t i = 0; i < hg_params_count(p); i++) {
		hg_param *const x = hg_params_at(p, i), *const y = hg_params_at(q, i);
		const size_t bytes = hg_tensor_bytes(hg_param_master(x));
		unsigned char *u = malloc(bytes), *v = malloc(bytes);
		CHECK(u && v);
		CHECK_OK(hg_tensor_download(hg_param_master(x), u, HG_F32));
		CHECK_OK(hg_tensor_download(hg_param_master(y), v, HG_F32));
		const size_t compact =
		    (size_t)(hg_tensor_rows(hg_param_master(x)) * hg_tensor_cols(hg_param_master(x))) *
		    sizeof(float);
		CHECK_MSG(memcmp(u, v, compact) == 0, "%s differs", hg_param_name(x));
		free(u);
		free(v);
	}
	CHECK(memcmp(a->loss, b->loss, sizeof a->loss) == 0);
}

static void healthy_models_have_no_finding_and_keep_their_bits(void)
{
	static const char *const policies[] = {"fp32", "fp16", "fp16-discretized", "fp16-naive"};
	static struct task t;
	task_make(&t, 0);
	for (const char *const *model = hg_model_names(); *model; model++)
		for (int k = 0; k < 8; k++) {
			const hg_train_config c = config_of(*model, policies[k / 2], 40);
			struct run plain, seen;
			run_data(&plain, test_context(), &t, 0, k % 2);
			run_data(&seen, test_context(), &t, 0, k % 2);
			seen.every = 13;
			run_all(&plain, c);
			run_all(&seen, c);
			CHECK(seen.looks == 3);
			CHECK_MSG(seen.findings == 0, "%s %s %s: %d findings, first: %s", *model,
			          policies[k / 2], k % 2 ? "sparse" : "dense", seen.findings, seen.said);
			same_state(&plain, &seen);
			run_close(&seen);
			run_close(&plain);
		}
}

/* gcn without a norm, or gin, on a hub of 3000: naive sums of positive numbers overflow or
 * stick. */
static void a_hub_in_naive_sums_is_named(void)
{
	static struct task t;
	task_make(&t, HUB);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < D; c++)
			t.x[i][c] = fabsf(t.x[i][c]) + 1.0f;
	hg_train_config c = config_of("gin", "fp16-naive", 6);
	struct run r;
	run_data(&r, test_context(), &t, HUB, 0);
	r.every = 1;
	run_all(&r, c);
	test_note("%s", r.said);
	CHECK(r.findings > 0);
	CHECK(r.first.row == 0 && r.first.row_is == HG_ROW_NODE && r.first.terms >= HUB);
	CHECK(r.first.cause == HG_CAUSE_SWAMPING || r.first.cause == HG_CAUSE_ACCUMULATION);
	run_close(&r);
}

/* What hg_doctor_try shall try. */
static hg_doctor_trial trial_of(const struct run *r, const hg_train_config *c)
{
	hg_doctor_trial trial = HG_DOCTOR_TRIAL_INIT;
	trial.config = c;
	trial.data = &r->data;
	trial.steps = 4;
	return trial;
}

static const hg_doctor_report *report_of(struct run *r)
{
	const hg_doctor_report *report = NULL;
	CHECK_OK(hg_doctor_examine(r->doctor, 0, &report));
	for (int i = 0; i < report->findings; i++)
		test_note("%s", report->finding[i].sentence);
	CHECK(report->findings > 0 && report->finding[0].remedies > 0);
	return report;
}

static const hg_remedy *remedy_of(const hg_finding *f, const char *option)
{
	for (int i = 0; i < f->remedies; i++)
		if (strcmp(f->remedy[i].option, option) == 0)
			return &f->remedy[i];
	return NULL;
}

static void remedies_are_tried(void)
{
	static struct task t;
	task_make(&t, HUB);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < D; c++)
			t.x[i][c] = fabsf(t.x[i][c]) + 1.0f;
	const hg_train_config c = config_of("gin", "fp16-naive", 4);
	struct run r;
	run_data(&r, test_context(), &t, HUB, 0);
	run_all(&r, c);
	const hg_finding *f = report_of(&r)->finding;
	const hg_doctor_trial trial = trial_of(&r, &c);
	CHECK_STR(f->remedy[0].option, "--precision fp16");
	CHECK_OK(hg_doctor_try(r.ctx, &trial, f, 1));
	CHECK(f->remedy[0].tried && f->remedy[0].worked);
	run_close(&r);
}

/* Features of 2e4, whose sums over ten neighbours are beyond f16; divided by their rows' sums they
 * are well. */
static void large_features(struct task *t)
{
	task_make(t, 0);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < D; c++)
			t->x[i][c] = 1e4f * (fabsf(t->x[i][c]) + 1.0f);
}

/* In fp16 the first steps overflow until the sum is stored rescaled: what has worked is told by the
 * first loss that is a number. */
static void a_loss_is_held_against_the_first_number(void)
{
	static struct task t;
	large_features(&t);
	struct run r;
	hg_train_config c = config_of("gcn", "fp16-naive", 1);
	c.model.norm = HG_NORM_NONE;
	c.model.dropout = 0.0f;
	run_data(&r, test_context(), &t, 0, 0);
	run_all(&r, c);
	const hg_finding *f = report_of(&r)->finding;
	hg_doctor_trial trial = trial_of(&r, &c);
	trial.steps = 30;
	CHECK_OK(hg_doctor_try(r.ctx, &trial, f, 1));
	const hg_remedy *m = remedy_of(f, "--precision fp16");
	CHECK(m != NULL);
	test_note("%s: loss %g to %g %s", m->option, m->loss_first, m->loss_last, m->failure);
	CHECK(m->tried && isfinite(m->loss_first) && m->loss_last < m->loss_first);
	run_close(&r);
}

struct trials {
	int epochs, first; /* calls of progress; those for a first epoch, one a run */
};

static int count_epochs(void *user, const hg_train_event *event)
{
	struct trials *trials = user;
	trials->epochs++;
	trials->first += event->epoch == 1;
	return 0;
}

static void narrow_features(struct run *r, const struct task *t)
{
	hg_tensor_free(r->x);
	CHECK_OK(hg_tensor_create(r->ctx, HG_F16, N, D, &r->x));
	CHECK_OK(hg_tensor_upload(r->x, t->x, HG_F32));
	r->data.input.x = r->x;
}

/* f32, halves, halves with what they were uploaded from, sparse. The run's own features stay what
 * they are. */
static void rows_are_normalised_for_a_trial(void)
{
	static struct task t;
	static float before[N][D], after[N][D];
	large_features(&t);
	for (int kind = 0; kind < 4; kind++) {
		hg_train_config c = config_of("gcn", "fp16", 1);
		struct run r;
		run_data(&r, test_context(), &t, 0, kind == 3);
		if (kind == 1 || kind == 2)
			narrow_features(&r, &t);
		if (r.x)
			CHECK_OK(hg_tensor_download(r.x, before, HG_F32));
		c.model.norm = HG_NORM_NONE;
		c.model.dropout = 0.0f;
		c.policy.replan = 0;
		run_all(&r, c);
		const hg_finding *f = report_of(&r)->finding;
		hg_doctor_trial trial = trial_of(&r, &c);
		trial.features = kind == 2 ? t.x : NULL;
		trial.steps = 8; /* the loss scale may have to fall */
		CHECK_EQ_I(f->cause, HG_CAUSE_STORE);
		CHECK_OK(hg_doctor_try(r.ctx, &trial, f, 1));
		const hg_remedy *m = remedy_of(f, "--row-normalize on");
		CHECK(m != NULL);
		test_note("%s: loss %g to %g", m->option, m->loss_first, m->loss_last);
		CHECK(m->tried && m->worked);
		if (r.x)
			CHECK_OK(hg_tensor_download(r.x, after, HG_F32));
		CHECK(memcmp(before, after, sizeof before) == 0);
		run_close(&r);
	}
}

/* Features of 1e-9 are nothing as halves; f32 keeps them, and so do their shares. Who does not know
 * what they were sees nothing of it. */
static void features_that_vanish_are_named(void)
{
	static struct task t;
	task_make(&t, 0);
	for (int i = 0; i < N; i++)
		for (int c = 0; c < D; c++)
			t.x[i][c] = 1e-9f * (fabsf(t.x[i][c]) + 1.0f);
	t.x[7][3] = -2e-8f; /* the largest that is lost */
	t.x[9][4] = 1e-7f;  /* and one that is not */
	for (int known = 0; known < 2; known++) {
		hg_train_config c = config_of("gcn", "fp16", 1);
		hg_doctor_config with = HG_DOCTOR_CONFIG_INIT;
		struct run r;
		run_data(&r, test_context(), &t, 0, 0);
		narrow_features(&r, &t);
		run_all(&r, c);
		hg_doctor_free(r.doctor);
		with.features = known ? t.x : NULL;
		CHECK_STATUS(hg_doctor_create_train(r.train, &with, &r.doctor), HG_OK);
		if (known) {
			const hg_finding *f = report_of(&r)->finding;
			hg_doctor_trial trial = trial_of(&r, &c);
			trial.features = t.x;
			CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node == -1 && f->row == 7 && f->col == 3 &&
			      f->got == 0.0 && f->wide == (double)-2e-8f);
			CHECK_EQ_I(f->bad, N * D - 1);
			CHECK_STR(f->tensor, "features");
			CHECK(f->links > 3);
			CHECK_EQ_I(f->remedies, 2);
			CHECK_OK(hg_doctor_try(r.ctx, &trial, f, 1));
			for (int i = 0; i < 2; i++)
				test_note("%s: %d, loss %g to %g", f->remedy[i].option, f->remedy[i].worked,
				          f->remedy[i].loss_first, f->remedy[i].loss_last);
			CHECK(remedy_of(f, "--row-normalize on")->worked &&
			      remedy_of(f, "--precision fp32")->worked);
		} else {
			const hg_doctor_report *report = NULL;
			CHECK_OK(hg_doctor_examine(r.doctor, 0, &report));
			for (int i = 0; i < report->findings; i++)
				CHECK(report->finding[i].node >= 0);
		}
		run_close(&r);
	}
}

/* Sparse features in another unit: nothing of them is left where dropout reads them, or of their
 * product with the weights; divided by their rows' sums all of it is. */
static void sparse_features_that_vanish_are_normalised(void)
{
	static struct task t;
	task_make(&t, 0);
	for (int i = 0; i < N * D; i++)
		t.x[i / D][i % D] = t.x[i / D][i % D] == 0.0f ? 0.0f : 1e-9f;
	for (int drops = 0; drops < 2; drops++) {
		hg_train_config c = config_of("gcn", "fp16", 1);
		struct run r;
		c.model.dropout = drops ? c.model.dropout : 0.0f;
		run_data(&r, test_context(), &t, 0, 1);
		run_all(&r, c);
		const hg_finding *f = report_of(&r)->finding;
		hg_doctor_trial trial = trial_of(&r, &c);
		CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->row_is == HG_ROW_NODE);
		CHECK_EQ_I(f->node < 0, drops);
		CHECK_STR(f->tensor, drops ? "features" : "conv0/spmm");
		CHECK(!drops || (f->wide == (double)1e-9f && t.x[f->row][f->col] == 1e-9f));
		CHECK_STR(f->remedy[0].option, "--row-normalize on");
		CHECK_OK(hg_doctor_try(r.ctx, &trial, f, 1));
		CHECK(f->remedy[0].tried && f->remedy[0].worked);
		run_close(&r);
	}
}

/* Rows that have been divided are not to be divided again. */
static void normalised_rows_are_no_remedy(void)
{
	static struct task t;
	large_features(&t);
	for (int i = 0; i < N; i++) {
		float sum = 0.0f;
		for (int c = 0; c < D; c++)
			sum += t.x[i][c];
		for (int c = 0; c < D; c++)
			t.x[i][c] /= sum;
	}
	for (int sparse = 0; sparse < 2; sparse++) {
		hg_train_config c = config_of("gcn", "fp16", 1);
		struct run r;
		run_data(&r, test_context(), &t, 0, sparse);
		run_all(&r, c);
		hg_param *w = hg_params_at(hg_train_params(r.train), 0);
		float *weight = malloc((size_t)(D * 16) * sizeof *weight);
		CHECK(weight != NULL);
		for (int i = 0; i < D * 16; i++)
			weight[i] = 60000.0f;
		CHECK_OK(hg_param_set(w, weight));
		free(weight);
		CHECK(remedy_of(report_of(&r)->finding, "--row-normalize on") == NULL);
		run_close(&r);
	}
}

/* Two findings name some of the same options: each of these makes one run, and every finding learns
 * what came of it; the budget ends the others. */
static void each_option_runs_once(void)
{
	static struct task t;
	large_features(&t);
	hg_train_config c = config_of("gcn", "fp16-naive", 1);
	struct run r;
	run_data(&r, test_context(), &t, 0, 0);
	c.model.norm = HG_NORM_NONE;
	c.model.dropout = 0.0f;
	run_all(&r, c);
	const hg_finding *f = report_of(&r)->finding;
	hg_finding two[2] = {*f, *f};
	hg_remedy own[2][8];
	int options = 0;
	CHECK(f->remedies >= 4 && f->remedies <= 8);
	for (int i = 0; i < 2; i++) {
		memcpy(own[i], f->remedy, (size_t)f->remedies * sizeof *f->remedy);
		two[i].remedy = own[i];
	}
	two[0].remedies = 2; /* the others are the second one's alone */
	for (int i = 0; i < f->remedies; i++)
		options += *f->remedy[i].option != 0;
	struct trials trials = {0};
	hg_train_config counted = c;
	counted.progress = count_epochs;
	counted.user = &trials;
	hg_doctor_trial trial = trial_of(&r, &counted);
	trial.most = options - 1;
	CHECK_OK(hg_doctor_try(r.ctx, &trial, two, 2));
	CHECK_EQ_I(trials.first, options - 1);
	CHECK_EQ_I(trials.epochs, 4 * (options - 1));
	for (int i = 0; i < 2; i++)
		CHECK(own[1][i].worked == own[0][i].worked &&
		      memcmp(&own[1][i].loss_last, &own[0][i].loss_last, sizeof(double)) == 0);
	for (int i = 0; i < options; i++)
		CHECK_EQ_I(own[1][i].tried, i < options - 1);
	CHECK(!f->remedy[0].tried);
	run_close(&r);
}

/* A weight that a state holds is there in every run that begins from it: no remedy of it helps,
 * where from new weights all would; and where nothing has to be changed, the control says so. */
static void remedies_begin_from_a_state(void)
{
	static struct task t;
	task_make(&t, 0);
	for (int sick = 0; sick < 2; sick++) {
		hg_train_config c = config_of("gcn", "fp16", 5);
		struct run r;
		hg_state *state = NULL;
		hg_remedy control = {.option = ""};
		hg_remedy remedy[2] = {{.option = "--loss-scale 256"}, {.option = "--lr 0.001"}};
		hg_finding finding = {.size = sizeof finding, .remedy = remedy, .remedies = 2};
		run_data(&r, test_context(), &t, 0, 0);
		c.model.dropout = 0.0f;
		run_all(&r, c);
		CHECK_OK(hg_train_get_state(r.train, &state));
		for (int64_t i = 0; i < state->tensors && sick; i++)
			if (strcmp(state->tensor[i].name, "conv1.weight") == 0)
				state->tensor[i].master[3] = NAN;
		for (int from = 0; from < 2; from++) {
			hg_doctor_trial trial = trial_of(&r, &c);
			const int works = !(sick && from);
			trial.steps = 5;
			trial.from = from ? state : NULL;
			trial.control = &control;
			remedy[0].tried = remedy[1].tried = 0;
			CHECK_OK(hg_doctor_try(r.ctx, &trial, &finding, 1));
			CHECK(control.tried && remedy[0].tried && remedy[1].tried);
			CHECK(control.worked == works && remedy[0].worked == works &&
			      remedy[1].worked == works);
			if (from && !sick) /* it goes on from where the run was */
				CHECK(control.loss_first < r.loss[5] &&
				      control.loss_first < remedy[0].loss_first + 0.1);
		}
		hg_state_free(state);
		run_close(&r);
	}
}

static void bad_trials_are_refused(void)
{
	static struct task t;
	task_make(&t, 0);
	const hg_train_config c = config_of("gcn", "fp16", 1);
	struct run r;
	run_data(&r, test_context(), &t, 0, 0);
	const hg_doctor_trial good = trial_of(&r, &c);
	hg_doctor_trial bad[6] = {good, good, good, good, good, good};
	bad[0].size = 0;
	bad[1].config = NULL;
	bad[2].data = NULL;
	bad[3].steps = 0;
	bad[4].most = 0;
	bad[5].features = t.x;
	bad[5].features_dtype = HG_I32;
	for (int i = 0; i < 6; i++)
		CHECK_STATUS(hg_doctor_try(r.ctx, &bad[i], NULL, 0), i == 5 ? HG_ERR_DTYPE : HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(r.ctx, &good, NULL, 1), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(r.ctx, NULL, NULL, 0), HG_ERR_ARG);
	CHECK_STATUS(hg_doctor_try(NULL, &good, NULL, 0), HG_ERR_ARG);
	CHECK_OK(hg_doctor_try(r.ctx, &good, NULL, 0));
	run_close(&r);
}

/* A loss scale far too high: the first steps are skipped, each is taken again, and the run goes on
 * as if nobody had looked. */
static void skipped_steps_are_taken_again(void)
{
	static struct task t;
	task_make(&t, 0);
	hg_train_config c = config_of("gcn", "fp16", 12);
	c.policy.loss_scale.init_scale = c.policy.loss_scale.max_scale;
	struct run plain, seen;
	run_data(&plain, test_context(), &t, 0, 0);
	run_data(&seen, test_context(), &t, 0, 0);
	seen.skipped_too = 1;
	run_all(&plain, c);
	run_all(&seen, c);
	test_note("%d looks: %s", seen.looks, seen.said);
	CHECK(seen.looks > 0 && seen.findings >= seen.looks);
	CHECK(seen.first.cause == HG_CAUSE_LOSS_SCALE && seen.first.backward && seen.first.step == 0 &&
	      seen.first.scale == 16777216.0);
	same_state(&plain, &seen);
	run_close(&seen);
	run_close(&plain);
}

/* One epoch and one examination on a context whose k-th allocation fails. */
static hg_status whole_visit(hg_context *ctx)
{
	static int32_t dst[64], src[64], label[16];
	static float x[16][4];
	const hg_doctor_report *report = NULL;
	hg_train_report trained = HG_TRAIN_REPORT_INIT;
	hg_train_config c = config_of("gcn", "fp16", 1);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	hg_tensor *features = NULL;
	hg_train *train = NULL;
	hg_doctor *doctor = NULL;
	for (int32_t i = 0; i < 64; i++) {
		dst[i] = i % 16;
		src[i] = (i * 7 + 3) % 16;
		x[i / 4][i % 4] = 30000.0f;
		label[i / 4] = i / 4 % 4;
	}
	c.policy.replan = 0; /* sums beyond f16, in every step */
	c.model.norm = HG_NORM_NONE;
	hg_status status = hg_graph_from_coo(ctx, 16, 16, 64, dst, src, NULL, NULL, &data.input.graph);
	if (status >= 0)
		status = hg_tensor_create(ctx, HG_F16, 16, 4, &features);
	if (status >= 0)
		status = hg_tensor_upload(features, x, HG_F32);
	data.input.x = features;
	data.labels = label;
	if (status >= 0)
		status = hg_train_create(ctx, &c, &data, &train);
	if (status >= 0)
		status = hg_train_run(train, &trained);
	if (status >= 0)
		status = hg_doctor_create_train(train, NULL, &doctor);
	if (status >= 0)
		status = hg_doctor_examine(doctor, 0, &report);
	if (status >= 0 && (report->findings < 1 || report->finding[0].cause != HG_CAUSE_STORE))
		status = HG_ERR_INTERNAL;
	hg_doctor_free(doctor);
	hg_train_free(train);
	hg_tensor_free(features);
	hg_graph_free(data.input.graph);
	return status;
}

static void every_allocation_may_fail(void)
{
	const int64_t count = faulty_sweep(whole_visit);
	test_note("%lld allocations", (long long)count);
	CHECK(count > 100);
}

/* Half of the columns, or a third, below 2^-25: they are 0 as halves, and have next to no part
 * in the mass of all. A column that is 0 anyway, one whose smaller numbers vanish and one of
 * subnormal floats are none. */
static void columns_that_vanish_are_named(void)
{
	static struct task t;
	for (int every = 2; every <= 4; every++) {
		hg_train_config c = config_of("gcn", "fp16", 1);
		hg_doctor_config with = HG_DOCTOR_CONFIG_INIT;
		struct run r;
		task_make(&t, 0);
		for (int i = 0; i < N; i++)
			for (int col = 0; col < D; col++)
				t.x[i][col] =
				    (float)(1.0 + test_uniform()) * (every < 4 && col % every == 0 ? -3e-9f
				                                     : col == 1 && i % 3           ? 1e-9f
				                                     : col == 5                    ? 0.0f
				                                     : col == 7                    ? 1e-42f
				                                                                   : 1.0f);
		t.x[31][0] *= every < 4 ? 2.0f : 1.0f;
		run_data(&r, test_context(), &t, 0, 0);
		narrow_features(&r, &t);
		run_all(&r, c);
		hg_doctor_free(r.doctor);
		with.features = t.x;
		CHECK_STATUS(hg_doctor_create_train(r.train, &with, &r.doctor), HG_OK);
		const hg_doctor_report *report = NULL;
		CHECK_STATUS(hg_doctor_examine(r.doctor, 0, &report), HG_OK);
		if (every == 4) {
			CHECK_MSG(report->findings == 0, "%s", report->finding[0].sentence);
		} else {
			const hg_finding *f = report->finding;
			CHECK(report->findings == 1);
			test_note("%s", f->sentence);
			CHECK(f->cause == HG_CAUSE_UNDERFLOW && f->node == -1 && f->row == 31 && f->col == 0 &&
			      f->wide == (double)t.x[31][0]);
			CHECK_STR(f->tensor, "features");
			CHECK_EQ_I(f->columns, D / every);
			CHECK_EQ_I(f->bad, N * (D / every));
		}
		run_close(&r);
	}
}

static const hg_doctor_report *look_now(struct run *r)
{
	const hg_doctor_report *report = NULL;
	CHECK_STATUS(hg_doctor_examine(r->doctor, 0, &report), HG_OK);
	return report;
}

static void set_at(hg_params *params, const char *name, int col, float value)
{
	hg_param *p = hg_params_find(params, name);
	float values[64];
	CHECK(p != NULL && hg_tensor_cols(hg_param_master(p)) <= 64);
	CHECK_OK(hg_tensor_download(hg_param_master(p), values, HG_F32));
	values[col] = value;
	CHECK_OK(hg_param_set(p, values));
}

static const hg_doctor_report *look_at_evaluation(struct run *r)
{
	const hg_doctor_report *report = NULL;
	CHECK_STATUS(hg_doctor_examine_evaluation(r->doctor, &report), HG_OK);
	return report;
}

static void is_statistic(const hg_finding *f, const char *name, float value)
{
	test_note("%s", f->sentence);
	CHECK_MSG(f->cause == HG_CAUSE_INPUT, "%s %g", name, (double)value);
	CHECK_STR(f->tensor, name);
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "conv1");
	CHECK(f->evaluation && !f->backward && f->col == 5 && f->bad == 1);
	CHECK(isnan(value) ? isnan(f->got) : f->got == (double)value);
	CHECK_EQ_I(f->remedies, 1);
	CHECK_STR(f->remedy[0].option, ""); /* nothing that can be typed mends it */
	CHECK_STR(f->remedy[0].call, "");
}

/* Running statistics that no column had: no step of training reads them, and every evaluation
 * does. The replay of a step finds all of them. An evaluation finds those that are impossible, and
 * those that are far from what it reads and have made something infinite of it. */
static void running_statistics_are_examined(void)
{
	static const struct {
		const char *name;
		float value;
		int fp16, fp32; /* does an evaluation find it? */
	} bad[] = {{"running_mean", 1e30f, 1, 0},  {"running_mean", -1e5f, 1, 0},
	           {"running_mean", NAN, 1, 1},    {"running_mean", -INFINITY, 1, 1},
	           {"running_var", 1e30f, 0, 0},   {"running_var", -1.0f, 1, 1},
	           {"running_var", 0.0f, 0, 0},    {"running_var", NAN, 1, 1},
	           {"running_var", INFINITY, 1, 1}};
	static struct task t;
	task_make(&t, 0);
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
		for (int precision = 0; precision < 2; precision++) {
			char name[64];
			struct run r;
			run_data(&r, test_context(), &t, 0, 0);
			run_all(&r, config_of("gin", precision ? "fp16" : "fp32", 30));
			CHECK_EQ_I(look_now(&r)->findings, 0);
			CHECK_EQ_I(look_at_evaluation(&r)->findings, 0);
			(void)snprintf(name, sizeof name, "conv1.bn2.%s", bad[k].name);
			set_at(hg_train_params(r.train), name, 5, bad[k].value);
			const hg_doctor_report *report = look_now(&r);
			CHECK_EQ_I(report->findings, 1);
			is_statistic(report->finding, name, bad[k].value);
			CHECK(fabs(report->finding->wide) < 1e4);
			report = look_at_evaluation(&r);
			CHECK_EQ_I(report->findings, precision ? bad[k].fp16 : bad[k].fp32);
			if (report->findings)
				is_statistic(report->finding, name, bad[k].value);
			run_close(&r);
		}
}

/* What overflows in an evaluation alone: a gain of 8000, and a running variance that is none of
 * the column's. */
static void evaluations_are_examined(void)
{
	static struct task t;
	task_make(&t, 0);
	struct run r;
	run_data(&r, test_context(), &t, 0, 0);
	hg_train_config c = config_of("gin", "fp16", 30);
	c.model.dropout = 0.0f;
	run_all(&r, c);
	set_at(hg_train_params(r.train), "conv1.bn2.running_var", 5, 0.02f);
	set_at(hg_train_params(r.train), "conv1.bn2.gamma", 5, 8000.0f);
	const hg_doctor_report *report = look_now(&r);
	CHECK_MSG(report->findings == 0 || report->finding[0].backward, "%s",
	          report->finding[0].sentence); /* the loss is large now */
	CHECK_OK(hg_doctor_examine_evaluation(r.doctor, &report));
	CHECK(report->findings > 0);
	const hg_finding *f = report->finding;
	test_note("%s", f->sentence);
	CHECK(f->evaluation && f->cause == HG_CAUSE_STORE && !f->backward);
	CHECK_STR(f->op, "batch_norm");
	CHECK_STR(f->layer, "conv1");
	run_close(&r);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(healthy_models_have_no_finding_and_keep_their_bits),
	    TEST(a_hub_in_naive_sums_is_named),
	    TEST(remedies_are_tried),
	    TEST(a_loss_is_held_against_the_first_number),
	    TEST(rows_are_normalised_for_a_trial),
	    TEST(features_that_vanish_are_named),
	    TEST(columns_that_vanish_are_named),
	    TEST(running_statistics_are_examined),
	    TEST(evaluations_are_examined),
	    TEST(sparse_features_that_vanish_are_normalised),
	    TEST(normalised_rows_are_no_remedy),
	    TEST(each_option_runs_once),
	    TEST(remedies_begin_from_a_state),
	    TEST(bad_trials_are_refused),
	    TEST(skipped_steps_are_taken_again),
	    TEST(every_allocation_may_fail)};
	return RUN_TESTS(argc, argv, cases);
}
