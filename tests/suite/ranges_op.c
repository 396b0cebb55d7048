#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/result_range.h"
#include "precision/bound.h"
#include "suite/ranges.h"

/* ---- the plan of a case ---- */

/* The largest number of elements of an operand. Wider samples, with hundreds of columns, are drawn
 * rarely. */
enum { USUAL = 400 };

static int64_t largest(const struct hg__sample *s)
{
	int64_t most = 0;
	for (int i = 0; i < s->n_in; i++) {
		const int64_t size = s->in[i].shape.rows * s->in[i].shape.cols;
		most = s->in[i].shape.present && size > most ? size : most;
	}
	return most;
}

static void draw_sample(struct ranges_plan *plan, const struct ranges_world *w)
{
	const hg_dtype state = plan->policy == 0 ? HG_F32 : HG_F16;
	do {
		struct hg__extent x = {.n = test_below(16) ? 1 + test_below(6) : test_below(70),
		                       .d = 1 + test_below(test_below(4) ? 4 : 12),
		                       .heads = 1 + (int)test_below(3),
		                       .state = state};
		if (w->graph) {
			x.n = hg_graph_rows(w->graph);
			x.m = hg_graph_edges(w->graph);
			x.graphs = hg_graph_batch(w->graph);
		}
		int count = 0;
		while (plan->op->sample(count, &x, &plan->sample))
			count++;
		plan->op->sample((int)test_below(count), &x, &plan->sample);
	} while (plan->sample.expect != HG_OK || (largest(&plan->sample) > USUAL && test_below(64)));
}

static void draw_plan(struct ranges_plan *plan, const struct ranges_world *w,
                      const struct hg__op *op, int may_line_up)
{
	*plan = (struct ranges_plan){.op = op,
	                             .policy = (int)test_below(RANGES_POLICIES),
	                             .mode = test_below(8) ? HG_TRAIN : HG_EVAL,
	                             .wide = (unsigned)test_u64(),
	                             .knows_least = (int)test_below(2)};
	draw_sample(plan, w);
	plan->lined_up = may_line_up && test_below(2) && ranges_is_linear(op, plan->sample.attr);
	if (!plan->lined_up && test_below(2))
		ranges_attr(op, plan->sample.attr);
}

/* ---- results and bounds ---- */

static const char *const policy_name[RANGES_POLICIES] = {"fp32", "fp16", "fp16-discretized",
                                                         "fp16-naive"};
static const char *const result_name[] = {"dX0", "dX1", "dX2", "dX3", "dX4", "dX5", "Y"};

static void describe(const struct ranges_case *c, int which, double bound, double found, char *text,
                     size_t size)
{
	const struct ranges_plan *plan = c->plan;
	snprintf(text, size, "%s, %s, %s, [%lld, %lld], |in| <= %.4g %.4g: %s %.9g, bound %.9g",
	         plan->sample.what, policy_name[plan->policy], plan->mode == HG_EVAL ? "eval" : "train",
	         (long long)c->in[0].rows, (long long)c->in[0].cols, c->amax[0], c->amax[1],
	         result_name[which], found, bound);
}

/* Above this magnitude the roundings of halves are relative. An element that dropout has dropped is
 * 0 all the same. */
#define RELATIVE 0x1p-10

/* Compares a result with its bound and returns measured / bound, or -1 if nothing is promised:
 * where the rule says INFINITY, or of an f16 result that may overflow. */
static double exceeds(const struct ranges_case *c, int which, const struct hg__mat *found,
                      double bound, int claimed, struct ranges_score *score)
{
	int64_t others = 0;
	const double amax = ranges_amax(found, &others);
	score->claims++;
	if (!claimed || !(bound < (double)INFINITY)) {
		score->unknown++;
		return -1.0;
	}
	const double ratio = others ? (double)INFINITY : amax == 0.0 ? 0.0 : amax / bound;
	if (ratio > score->tightest) {
		score->tightest = ratio;
		describe(c, which, bound, others ? (double)INFINITY : amax, score->where,
		         sizeof score->where);
	}
	return ratio;
}

/* The same. Also records how near the result came to the bound. */
static void claim(const struct ranges_case *c, int which, const struct hg__mat *found, double bound,
                  int claimed, struct ranges_score *score)
{
	int64_t others = 0;
	const double ratio = exceeds(c, which, found, bound, claimed, score),
	             amax = ranges_amax(found, &others);
	if (ratio < 0.0)
		return;
	if (bound > RELATIVE && bound < 1.0 / RELATIVE)
		score->reached[which] = fmax(score->reached[which], ratio);
	if (c->plan->lined_up && bound > RELATIVE && amax > 0.0 && bound / amax > score->loosest) {
		score->loosest = bound / amax;
		describe(c, which, bound, amax, score->loose, sizeof score->loose);
	}
}

/* The bounds on gradients, given the largest element of the incoming gradient. They hold at loss
 * scale 1 (halfgraph/tape.h), and this gradient is `scale` times as large. */
static void range_back(const struct ranges_case *c, double scale,
                       struct hg__known_gradient grad[HG__MAX_IN])
{
	const struct hg__node *node = &c->line->node;
	hg_dtype part[HG__MAX_IN];
	int64_t others = 0;
	for (int i = 0; i < node->n_in; i++)
		part[i] = c->din[i].dtype;
	const double dout = ranges_amax(&c->dout, &others) / scale;
	CHECK_OK(hg__tape_range_back(c->tape, node, HG__UNCONDITIONAL, dout, part, grad));
}

/* A bound at loss scale 1, times the scale, holds at every scale at which it has headroom. The f32
 * policy has scale 1 only. */
static void judge_gradients(const struct ranges_case *c, struct ranges_score *score)
{
	const struct hg__node *node = &c->line->node;
	const double overflow = hg_dtype_get(HG_F16)->overflow,
	             scale = ldexp(1.0, (int)test_below(c->plan->policy ? 25 : 1));
	struct hg__known_gradient r[HG__MAX_IN], at_one[HG__MAX_IN];
	if (node->op->traits & HG__LOSS)
		CHECK_OK(hg__tape_count(c->tape, &c->tape->recording.entry[0].node));
	range_back(c, 1.0, r);
	range_back(c, scale, at_one);
	for (int i = 0; i < node->n_in; i++) {
		if (!c->din[i].data)
			continue;
		claim(c, i, &c->din[i], r[i].largest, c->din[i].dtype != HG_F16 || r[i].largest < overflow,
		      score);
		const double bound = scale * at_one[i].largest;
		const int claimed = bound < hg_dtype_get(c->din[i].dtype)->overflow &&
		                    scale * at_one[i].largest_half < overflow;
		(void)exceeds(c, i, &c->din[i], bound, claimed, score);
	}
}

static void judge(const struct ranges_case *c, struct ranges_score *score)
{
	const struct hg__node *node = &c->line->node;
	const struct hg__known *known = c->tape->recording.value[node->out].known;
	int64_t others = 0;
	score->cases++;
	score->lined_up += c->plan->lined_up;
	score->proved += node->verdict == HG_PROVED;
	claim(c, RANGES_OUT, &c->out, known[HG__ASSUMED].largest, node->verdict != HG_GUARDED, score);
	(void)ranges_amax(&c->out, &others);
	score->cramped +=
	    node->verdict == HG_PROVED &&
	    !(hg__headroom(HG_F16, ldexp(node->rule_bound[HG__ASSUMED], -node->shift)) >= 0.0);
	score->wrong += !others && !ranges_keeps(&c->out, known[HG__UNCONDITIONAL].least,
	                                         known[HG__UNCONDITIONAL].sign);
	/* A guarded result may be infinite, and so may halves that are kept with it. Then its guard
	 * trips, and bounds of later results do not hold. */
	for (int i = 0; i < HG__MAX_AUX && node->verdict == HG_GUARDED; i++)
		if (c->line->saves & HG__SAVE_AUX(i) && c->aux[i].dtype == HG_F16)
			(void)ranges_amax(&c->aux[i], &others);
	if (c->plan->mode == HG_EVAL || others)
		return;
	judge_gradients(c, score);
}

void ranges_run(hg_context *ctx, const struct hg__op *op, int64_t count, struct ranges_score *score)
{
	struct ranges_world w;
	int may_line_up = 0;
	ranges_world_open(&w, ctx);
	for (int i = 0; i < RANGES_RESULTS && score->cases == 0; i++)
		score->reached[i] = -1.0;
	for (int64_t k = 0; k < count; k++) {
		struct ranges_plan plan;
		struct ranges_case c;
		if (k % RANGES_PER_GRAPH == 0) {
			may_line_up = (int)test_below(2);
			hg_graph_free(w.graph);
			w.graph = op->traits & HG__GRAPH
			              ? ranges_graph(ctx, may_line_up, (op->traits & HG__COUNTS_EDGES) != 0)
			              : NULL;
		}
		draw_plan(&plan, &w, op, may_line_up);
		ranges_case_open(&c, &w, &plan);
		judge(&c, score);
		ranges_case_close(&c);
	}
	ranges_world_close(&w);
}

int64_t ranges_count(const hg_context *ctx)
{
	const char *asked = getenv("HG_TEST_CASES");
	if (asked && *asked)
		return strtoll(asked, NULL, 10);
#if defined(__SANITIZE_ADDRESS__)
	(void)ctx;
	return 1000;
#else
	return ctx->backend->kind == HG_DEVICE_CPU ? 100000 : 3000;
#endif
}
