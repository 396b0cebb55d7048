/* What is known of a run before its first step: three plain sentences, then a row for each tensor
 * that is stored in fp16, the one closest to overflow first. --explain=full prints hg_tape_explain,
 * with the rule of every bound. */
#include "explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BRIEF = 1, FULL = 2 };

static void print_line(void *user, const char *text)
{
	const size_t length = strlen(text);
	fprintf(user, "%s%s", text, length && text[length - 1] == '\n' ? "" : "\n");
}

/* ---- brief ---- */

/* All narrowings of a step, those closest to overflow first. */
struct rows {
	hg_narrowing *row;
	int64_t count;
	int half, proved, guarded, promoted; /* of the forward pass */
	/* the fp16 tensor of the forward pass closest to overflow; NULL: none */
	const hg_narrowing *nearest;
};

static int by_headroom(const void *a, const void *b)
{
	const hg_narrowing *x = a, *y = b;
	const int order = (x->headroom > y->headroom) - (x->headroom < y->headroom);
	return order                ? order
	       : x->node != y->node ? (x->node > y->node) - (x->node < y->node)
	                            : strcmp(x->name, y->name);
}

static void count_verdicts(struct rows *rows)
{
	for (int64_t i = 0; i < rows->count; i++) {
		const hg_narrowing *r = &rows->row[i];
		if (r->backward)
			continue;
		rows->promoted += r->verdict == HG_PROMOTED;
		if (r->state != HG_F16)
			continue;
		rows->half++;
		rows->proved += r->verdict == HG_PROVED;
		rows->guarded += r->verdict == HG_GUARDED;
		rows->nearest = rows->nearest ? rows->nearest : r;
	}
}

static hg_status rows_read(const hg_tape *tape, struct rows *rows)
{
	*rows = (struct rows){.count = hg_tape_narrowings(tape)};
	rows->row = calloc((size_t)rows->count + 1, sizeof *rows->row);
	if (!rows->row)
		return HG_ERR_NOMEM;
	for (int64_t i = 0; i < rows->count; i++) {
		const hg_narrowing unset = HG_NARROWING_INIT;
		rows->row[i] = unset;
		const hg_status status = hg_tape_narrowing(tape, i, &rows->row[i]);
		if (status < 0)
			return status;
	}
	qsort(rows->row, (size_t)rows->count, sizeof *rows->row, by_headroom);
	count_verdicts(rows);
	return HG_OK;
}

static void print_counts(const struct rows *r, FILE *out)
{
	if (!r->half) {
		fputs("No tensor is stored in fp16: none can overflow it.\n", out);
		return;
	}
	fprintf(out,
	        "%d of %d fp16 tensors can never overflow (proved); %d are watched in every step "
	        "(guarded).\n",
	        r->proved, r->half, r->guarded);
}

static void print_nearest(const struct rows *r, FILE *out)
{
	const hg_narrowing *n = r->nearest;
	if (!n)
		fputs("The largest number in fp32 is 3.4e38.\n", out);
	else if (!isfinite(n->bound))
		fprintf(out, "Closest to overflow: %.44s, for which no bound is known.\n", n->name);
	else if (n->headroom < 0)
		fprintf(out, "Closest to overflow: %.44s may reach %.3g at worst; fp16 ends at 65504.\n",
		        n->name, n->bound);
	else
		fprintf(out,
		        "Closest to overflow: %.44s, at most %.3g, which is 1/%.3g of fp16's maximum.\n",
		        n->name, n->bound, exp2(n->headroom));
}

static void print_consequence(const struct rows *r, const hg_policy *policy, FILE *out)
{
	if (!r->half)
		fputs("Gradients are fp32 as well and need no loss scale.\n", out);
	else if (!r->guarded && !r->promoted)
		fputs("Nothing needs a guard in the forward pass; gradients have the loss scale and its "
		      "check.\n",
		      out);
	else if (r->promoted)
		fprintf(
		    out,
		    "%d are kept in fp32, because no proof was found; gradients have the loss scale and "
		    "its check.\n",
		    r->promoted);
	else if (policy->replan)
		fputs("If one overflows, the step is skipped, and it is stored scaled down or in fp32 from "
		      "then on.\n",
		      out);
	else
		fputs("If one overflows, the step is skipped, or the loss is not a number: hg-doctor says "
		      "why.\n",
		      out);
}

static const char *watched_by(const hg_narrowing *r)
{
	static const char *const watch[] = {[HG_GUARD_NONE] = "nothing",
	                                    [HG_GUARD_WEIGHTS] = "the weights' size",
	                                    [HG_GUARD_STORED] = "each stored element",
	                                    [HG_GUARD_STEP] = "the check of the step"};
	return r->verdict == HG_PROVED ? "no guard needed" : r->state != HG_F16 ? "-" : watch[r->guard];
}

/* A row has at most 100 columns. */
enum { NAME = 39 };

static void print_row(const hg_narrowing *r, FILE *out)
{
	char room[16] = "-", most[16] = "unknown", name[NAME + 4];
	const char *shown = r->backward ? r->name + strlen("gradient of ") : r->name;
	const int cut = strlen(shown) > NAME;
	if (r->state == HG_F16)
		(void)snprintf(room, sizeof room, isfinite(r->bound) ? "%.1f" : "?", r->headroom);
	if (isfinite(r->bound))
		(void)snprintf(most, sizeof most, "%.3g", r->bound);
	(void)snprintf(name, sizeof name, "%.*s%s", cut ? NAME - 2 : NAME, shown, cut ? ".." : "");
	fprintf(out, "%8s  %8s  %-4s  %-8s  %-*s  %s\n", room, most,
	        r->state == HG_F16 ? "fp16" : "fp32", hg_verdict_name(r->verdict), NAME, name,
	        watched_by(r));
}

static void print_rows(const struct rows *rows, int backward, FILE *out)
{
	int begun = 0;
	for (int64_t i = 0; i < rows->count; i++) {
		if (!rows->row[i].backward != !backward)
			continue;
		if (!begun++)
			fprintf(out, "\n%8s  %8s  %-4s  %-8s  %-*s  %s\n", "headroom", "at most", "type",
			        "verdict", NAME, backward ? "gradient of (at loss scale 1)" : "tensor",
			        "watched by");
		print_row(&rows->row[i], out);
	}
}

static hg_status explain_brief(const hg_tape *tape, const hg_policy *policy, FILE *out)
{
	struct rows rows;
	const hg_status status = rows_read(tape, &rows);
	if (status >= 0) {
		print_counts(&rows, out);
		print_nearest(&rows, out);
		print_consequence(&rows, policy, out);
		print_rows(&rows, 0, out);
		print_rows(&rows, 1, out);
		fputs("\nheadroom: how often it could double before it overflows. --explain=full has the "
		      "rules.\n\n",
		      out);
	}
	free(rows.row);
	return status;
}

/* ---- a run ---- */

static hg_status explain(const struct options *o, const hg_train *train, const hg_policy *policy,
                         FILE *out)
{
	if (o->resume)
		fprintf(out,
		        "resumed from %s: weights are bounded by four times the values last measured in "
		        "that run\n",
		        o->resume);
	const hg_tape *tape = hg_train_tape(train);
	return o->explain == FULL ? hg_tape_explain(tape, print_line, out)
	                          : explain_brief(tape, policy, out);
}

hg_status explain_run(const struct options *o, const hg_train *train, const hg_policy *policy,
                      FILE *out)
{
	hg_status status = o->print_plan ? hg_tape_print(hg_train_tape(train), print_line, out) : HG_OK;
	if (status >= 0 && o->explain)
		status = explain(o, train, policy, out);
	return status;
}

void explain_refused(const struct options *o, hg_context *ctx, const hg_train_config *refused,
                     const hg_train_data *data, FILE *out)
{
	hg_train_config config = *refused;
	hg_train *train = NULL;
	char message[HG_DATA_MESSAGE];
	if (!o->explain)
		return;
	config.policy.unproved = HG_UNPROVED_GUARD;
	hg_status status = hg_train_create(ctx, &config, data, &train);
	if (status >= 0 && o->resume)
		status = hg_checkpoint_load(o->resume, train, message);
	if (status >= 0) {
		fputs("with --unproved guard; refused are the guarded tensors, except those guarded by the "
		      "weights:\n",
		      out);
		status = explain(o, train, &config.policy, out);
	}
	hg_train_free(train);
	(void)status; /* the error message follows in any case */
}
