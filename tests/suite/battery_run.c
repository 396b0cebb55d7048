#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/range_rule.h"
#include "core/mat.h"
#include "suite/battery.h"

static float *download(const hg_tensor *t)
{
	float *host = calloc((size_t)(hg_tensor_rows(t) * hg_tensor_cols(t)) + 1, sizeof *host);
	CHECK_OK(hg_tensor_download(t, host, HG_F32));
	return host;
}

/* Computes err / bound of every element of a result. `m` holds the exact values and their errors
 * before the store. */
static void compare(const struct battery_case *c, const hg_tensor *t, const struct oracle_matrix *m,
                    const char *label, const char *what, struct battery_score *score)
{
	float *host = download(t);
	for (int64_t i = 0; i < m->rows * m->cols; i++) {
		const num y = num_store(hg_tensor_dtype(t) == HG_F16, m->at[i]);
		const double err = fabs((double)host[i] - y.v);
		const double ratio = err == 0 ? 0 : isnan(err) ? INFINITY : err / y.e;
		score->count++;
		if (ratio > score->worst) {
			score->worst = ratio;
			snprintf(score->where, sizeof score->where,
			         "%s, %s, %s[%lld,%lld]: %.9g, exactly %.9g, bound %.3g", label, c->sample.what,
			         what, (long long)(i / m->cols), (long long)(i % m->cols), (double)host[i], y.v,
			         y.e);
		}
	}
	free(host);
}

/* Fills a result with NaN before a run, so that an element that is not written is found. */
static void poison(hg_tensor *t)
{
	if (!t || !hg_dtype_get(hg_tensor_dtype(t))->is_float)
		return;
	const int64_t count = hg_tensor_rows(t) * hg_tensor_cols(t);
	float *host = calloc((size_t)count + 1, sizeof *host);
	for (int64_t i = 0; i < count; i++)
		host[i] = NAN;
	CHECK_OK(hg_tensor_upload(t, host, HG_F32));
	free(host);
}

static void run_back(struct battery_case *c, const char *label, unsigned adds)
{
	/* The backward pass gets what the op has asked to be saved, and nothing else. */
	struct hg__call back = c->call;
	back.adds = adds;
	for (int i = 0; i < HG__MAX_IN; i++)
		if (!(c->infer.saves & HG__SAVE_IN(i)))
			back.in[i].data = NULL;
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (!(c->infer.saves & (HG__SAVE_AUX(i) | HG__BACK_AUX(i))))
			back.aux[i].data = NULL;
	if (!(c->infer.saves & HG__SAVE_OUT))
		back.out.data = NULL;
	const hg_status status = c->op->backward(&back);
	CHECK_MSG(status == HG_OK, "%s, %s: backward gave %s: %s", label, c->sample.what,
	          hg_status_name(status), hg_context_error(c->ctx));
}

static void run(struct battery_case *c, const char *label)
{
	poison(c->out);
	for (int i = 0; i < HG__MAX_IN; i++)
		poison(c->din[i]);
	const hg_status status = c->op->forward(&c->call);
	CHECK_MSG(status == HG_OK, "%s, %s: forward gave %s: %s", label, c->sample.what,
	          hg_status_name(status), hg_context_error(c->ctx));
	if (c->mode == HG_TRAIN)
		run_back(c, label, 0);
}

/* Runs the backward pass again, to be added to the stored gradient: exact gradient plus stored
 * gradient, in one f32 sum. */
static void run_adding(struct battery_case *c, const char *label, struct battery_score *score)
{
	for (int i = 0; i < HG__MAX_IN; i++) {
		if (!c->din[i] || !(c->op->adds >> i & 1u))
			continue;
		struct oracle_matrix sum = c->o.din[i];
		float *before = download(c->din[i]);
		run_back(c, label, 1u << i);
		sum.at = calloc((size_t)(sum.rows * sum.cols) + 1, sizeof *sum.at);
		for (int64_t k = 0; k < sum.rows * sum.cols; k++)
			sum.at[k] = num_add(ORACLE_U32, c->o.din[i].at[k], num_exact((double)before[k]));
		compare(c, c->din[i], &sum, label, "dX added", score);
		free(sum.at);
		free(before);
	}
}

static void same_bits(const struct battery_case *c, const hg_tensor *t, const float *before,
                      const char *label, const char *what)
{
	float *now = download(t);
	const size_t bytes = (size_t)(hg_tensor_rows(t) * hg_tensor_cols(t)) * sizeof *now;
	const int same = memcmp(now, before, bytes) == 0;
	free(now);
	CHECK_MSG(same, "%s, %s: two runs give different bits in %s", label, c->sample.what, what);
}

void battery_case_run(struct battery_case *c, const char *label, struct battery_score *score)
{
	static const char *const names[] = {"dX0", "dX1", "dX2", "dX3", "dX4", "dX5"};
	const struct oracle_op *oracle = oracle_find(c->op->name);
	CHECK_MSG(oracle != NULL, "the oracle does not know %s", c->op->name);
	run(c, label);
	oracle->forward(&c->o);
	compare(c, c->out, &c->o.out, label, "Y", score);
	score->samples++;
	if (c->mode == HG_EVAL)
		return;
	for (int64_t i = 0; i < c->o.out.rows * c->o.out.cols; i++)
		c->o.saved_out.at[i] = num_store(hg_tensor_dtype(c->out) == HG_F16, c->o.out.at[i]);
	oracle->backward(&c->o);
	float *y = download(c->out), *dx[HG__MAX_IN] = {0};
	for (int i = 0; i < HG__MAX_IN; i++)
		if (c->din[i]) {
			compare(c, c->din[i], &c->o.din[i], label, names[i], score);
			dx[i] = download(c->din[i]);
		}
	run(c, label);
	if (!score->unordered)
		same_bits(c, c->out, y, label, "Y");
	for (int i = 0; i < HG__MAX_IN; i++) {
		if (c->din[i] && !score->unordered)
			same_bits(c, c->din[i], dx[i], label, names[i]);
		free(dx[i]);
	}
	free(y);
	run_adding(c, label, score);
	/* The oracle's gradient is checked, too, where that is cheap. */
	if (c->o.out.rows * c->o.out.cols <= 64 && c->o.in[0].rows * c->o.in[0].cols <= 400 &&
	    score->samples % 7 == 0) {
		const double slope = oracle_self_check(oracle, &c->o);
		CHECK_MSG(slope <= 1,
		          "%s: the oracle's gradient of %s differs from central differences: %.3g", label,
		          c->op->name, slope);
		oracle->forward(&c->o);
	}
}

static double largest(const struct oracle_matrix *m)
{
	double most = 0;
	for (int64_t i = 0; m->at && i < m->rows * m->cols; i++)
		most = fmax(most, fabs(m->at[i].v));
	return most;
}

/* The least magnitude of the numbers; below, their common sign. */
static double smallest(const struct oracle_matrix *m)
{
	double least = INFINITY;
	for (int64_t i = 0; m->at && i < m->rows * m->cols; i++)
		least = fmin(least, fabs(m->at[i].v));
	return isinf(least) ? 1 : least;
}

static int sign_of(const struct oracle_matrix *m)
{
	int below = 0, above = 0;
	for (int64_t i = 0; m->at && i < m->rows * m->cols; i++) {
		below |= m->at[i].v < 0;
		above |= m->at[i].v > 0;
	}
	return !below ? 1 : !above ? -1 : 0;
}

void battery_case_range(const struct battery_case *c, const char *label)
{
	/* Factors such as 1/sqrt(d) are stored in f32, with a relative error of a few u, which is far
	 * below this slack. */
	const double slack = 1 + 1e-5;
	struct hg__range r = {.node = &c->node, .mode = c->mode, .facts = HG_GRAPH_FACTS_INIT};
	for (int i = 0; i < HG__MAX_IN; i++) {
		r.shape[i] = c->infer.in[i];
		r.in[i] = hg__at_most(largest(&c->o.in[i]));
		r.in[i].least = smallest(&c->o.in[i]);
		r.in[i].sign = sign_of(&c->o.in[i]);
	}
	if (c->node.graph) {
		CHECK_OK(hg_graph_facts_get(c->node.graph, &r.facts));
		r.batch_max = hg__graph_batch_max(c->node.graph);
	}
	struct hg__derivation how = {.rounding = hg__preset_rounding(&r)};
	struct hg__gradients grad = {.rounding.sums.whole = INFINITY};
	r.out = c->op->range(&r, &how);
	CHECK_MSG(largest(&c->o.out) <= r.out.largest * slack,
	          "%s, %s: max|Y| = %.9g exceeds the range rule's %.9g", label, c->sample.what,
	          largest(&c->o.out), r.out.largest);
	CHECK_MSG(c->o.out.rows * c->o.out.cols == 0 || smallest(&c->o.out) * slack >= r.out.least,
	          "%s, %s: min|Y| = %.9g is below the range rule's %.9g", label, c->sample.what,
	          smallest(&c->o.out), r.out.least);
	CHECK_MSG(r.out.sign == 0 || largest(&c->o.out) == 0 || sign_of(&c->o.out) == r.out.sign,
	          "%s, %s: the sign of Y is %d, the range rule's %d", label, c->sample.what,
	          sign_of(&c->o.out), r.out.sign);
	if (c->mode == HG_EVAL)
		return;
	r.dout = largest(&c->o.dout);
	c->op->range_back(&r, &grad);
	for (int i = 0; i < HG__MAX_IN; i++)
		CHECK_MSG(!c->din[i] || largest(&c->o.din[i]) <= grad.largest[i] * slack,
		          "%s, %s: max|dX%d| = %.9g exceeds the range rule's %.9g", label, c->sample.what,
		          i, largest(&c->o.din[i]), grad.largest[i]);
}
