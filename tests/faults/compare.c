#include "faults/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"

/* Leaves that are bad before the step and weights that become bad after it belong to no node of the
 * tape. */
static int has_node(const struct fault *f)
{
	return f->cause != HG_CAUSE_INPUT && f->cause != HG_CAUSE_OPTIMISER;
}

static void differ(struct mismatch *m, const char *what, const char *found, const char *expected)
{
	const size_t length = strlen(m->text);
	m->count++;
	(void)snprintf(m->text + length, sizeof m->text - length, "%s%s is %s, expected %s",
	               length ? "; " : "", what, found, expected);
}

static void compare_text(struct mismatch *m, const char *what, const char *found,
                         const char *expected)
{
	if (!found || strcmp(found, expected) != 0)
		differ(m, what, found ? found : "NULL", expected);
}

static void compare_range(struct mismatch *m, const char *what, int64_t found,
                          struct range expected)
{
	char a[32], b[64];
	if (found >= expected.first && found <= expected.last)
		return;
	(void)snprintf(a, sizeof a, "%lld", (long long)found);
	(void)snprintf(b, sizeof b, "%lld to %lld", (long long)expected.first,
	               (long long)expected.last);
	differ(m, what, a, b);
}

/* The tolerance is 1 %, because a planter computes with exact numbers, while the operands of the op
 * were rounded to f16. */
static void compare_value(struct mismatch *m, const char *what, double found, double expected)
{
	char a[32], b[32];
	if (fabs(found - expected) <= 0.01 * fabs(expected))
		return;
	(void)snprintf(a, sizeof a, "%g", found);
	(void)snprintf(b, sizeof b, "%g", expected);
	differ(m, what, a, b);
}

/* If the planter knows which element is bad, there is only one. */
static void compare_bad_count(struct mismatch *m, const hg_finding *finding,
                              const struct expected *expected)
{
	const struct range *row = &expected->row, *col = &expected->col;
	if (row->first == row->last && col->first == col->last)
		compare_range(m, "the number of bad elements", finding->bad, only(1));
}

static int is_loss(const char *op)
{
	return strcmp(op, "softmax_xent") == 0 || strcmp(op, "mse") == 0 || strcmp(op, "mae") == 0 ||
	       strcmp(op, "bce_logits") == 0;
}

/* The chain of a forward fault begins at its node and contains the loss. */
static void compare_chain(struct mismatch *m, const hg_finding *finding, const struct fault *f)
{
	int has_loss = 0;
	for (int i = 0; i < finding->links; i++)
		has_loss |= is_loss(finding->chain[i].op);
	if (finding->links < 1)
		differ(m, "the chain", "empty", "at least one op");
	else if (!f->backward &&
	         (finding->chain[0].node != finding->node || finding->chain[0].backward))
		differ(m, "the chain's first op", finding->chain[0].op, f->op);
	else if (!f->backward && !has_loss)
		differ(m, "the chain", "without the loss", "one that contains the loss");
}

/* The finding may count the term at which a running sum overflows, or only the terms before it. */
static void compare_sum(struct mismatch *m, const hg_finding *finding,
                        const struct expected *expected)
{
	if (expected->terms)
		compare_range(m, "the number of terms", finding->terms, only(expected->terms));
	if (expected->stops_at)
		compare_range(m, "the term at which the sum stops", finding->partial_at,
		              (struct range){expected->stops_at - 1, expected->stops_at});
	if (expected->terms || expected->top_row >= 0)
		compare_range(m, "the number of listed terms", finding->tops,
		              (struct range){1, HG_DOCTOR_TOP});
	if (expected->top_row >= 0 && finding->tops > 0)
		compare_range(m, "the largest term's row", finding->top[0].row, only(expected->top_row));
	if (expected->top > 0.0 && expected->terms && finding->tops > 0)
		compare_value(m, "the largest term", fabs(finding->top[0].value), expected->top);
}

static void compare_place(struct mismatch *m, const hg_finding *finding, const struct fault *f,
                          const struct expected *expected)
{
	if (has_node(f)) {
		compare_text(m, "op", finding->op, f->op);
		compare_text(m, "layer", finding->layer, f->layer);
		compare_range(m, "backward", finding->backward, only(f->backward));
	} else
		compare_range(m, "node", finding->node, only(-1));
	if (expected->tensor)
		compare_text(m, "tensor", finding->tensor, expected->tensor);
	compare_range(m, "row", finding->row, expected->row);
	compare_range(m, "col", finding->col, expected->col);
	if (expected->edge_row >= 0) {
		compare_range(m, "row_is", finding->row_is, only(HG_ROW_EDGE));
		compare_range(m, "edge_row", finding->edge_row, only(expected->edge_row));
		compare_range(m, "edge_col", finding->edge_col, only(expected->edge_col));
	}
}

struct mismatch compare(const hg_doctor_report *report, const struct fault *f,
                        const struct expected *expected)
{
	struct mismatch m = {0, ""};
	const hg_finding *finding = report->finding;
	if (report->findings < 1) {
		differ(&m, "the number of findings", "0", "at least 1");
		return m;
	}
	compare_text(&m, "cause", hg_cause_name(finding->cause), hg_cause_name(f->cause));
	compare_range(&m, "step", finding->step, only(expected->step));
	compare_value(&m, "loss scale", finding->scale, expected->scale);
	compare_place(&m, finding, f, expected);
	compare_sum(&m, finding, expected);
	compare_bad_count(&m, finding, expected);
	if (has_node(f))
		compare_chain(&m, finding, f);
	if (!isnan(expected->wide))
		compare_value(&m, "the exact value", finding->wide, expected->wide);
	if (!finding->sentence || !*finding->sentence)
		differ(&m, "the sentence", "empty", "a text");
	return m;
}

void check_compare(const hg_doctor_report *report, const struct fault *f,
                   const struct expected *expected)
{
	struct fault other[] = {*f, *f, *f, *f};
	struct expected changed[] = {*expected, *expected, *expected, *expected, *expected};
	other[0].cause = (hg_cause)((f->cause + 1) % HG_CAUSE_COUNT);
	other[1].op = "no op";
	other[2].layer = "no layer";
	other[3].backward = !f->backward;
	for (int i = 0; i < (has_node(f) ? 4 : 1); i++)
		CHECK(compare(report, &other[i], expected).count);
	changed[0].row = only(report->finding->row + 1);
	changed[1].col = only(report->finding->col + 1);
	changed[2].step++;
	changed[3].scale *= 2.0;
	changed[4].tensor = "no tensor";
	for (int i = 0; i < 5; i++)
		CHECK(compare(report, f, &changed[i]).count);
}
