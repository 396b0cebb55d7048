#include <math.h>
#include <stdio.h>

#include "doctor/remedy.h"

/* Another op in the place of the one at fault: one that does in f32, and with the maximum taken
 * off,
 * what a tape does in several; a wider cast; a mean for a sum. */

/* The op that made operand i of a line; NULL: a leaf. */
static const struct hg__op *maker(const hg_tape *tape, const struct hg__entry *line, int i)
{
	const int32_t in = i < line->node.n_in ? line->node.in[i] : -1;
	const int32_t node = in >= 0 ? tape->value[in].node : -1;
	if (node < 0)
		return NULL;
	return hg__is_own_cast(tape, node) ? maker(tape, &tape->entry[node], 0)
	                                   : tape->entry[node].node.op;
}

/* Does anything read it in a sum along its row, or divide it? Then it is a softmax by hand. */
static int is_normalised(const hg_tape *tape, const struct hg__entry *line)
{
	for (int64_t k = 0; k < tape->entries; k++) {
		const struct hg__node *node = &tape->entry[k].node;
		const int reads = node->n_in > 0 && node->in[0] == line->node.out;
		const struct hg__about *about = hg__about(node->op);
		if (reads && (about->traits & HG__SUMS_ROW || about->critical == HG__DIVISOR))
			return 1;
	}
	return 0;
}

static int is_softmax(const struct hg__op *op)
{
	return op && (hg__about(op)->traits & HG__SHARES || hg__about(op)->critical == HG__DIVISOR);
}

void hg__remedy_op(const struct hg__replay *replay, const struct hg__found *found,
                   const char **call, const char **why)
{
	const hg_finding *f = &found->finding;
	const struct hg__entry *line = found->line;
	*call = "";
	*why = NULL;
	if (replay->config || !line || f->backward)
		return;
	const int overflows = f->cause == HG_CAUSE_STORE;
	if (f->cause == HG_CAUSE_ZERO && f->zero == HG_ZERO_LOGARITHM &&
	    is_softmax(maker(replay->tape, line, 0))) {
		*call = "hg_log_softmax(tape, x)";
		*why = "the logarithm of a softmax in one op, of x: no probability is rounded to 0 on the "
		       "way to it";
	} else if (overflows && hg__about(line->node.op)->traits & HG__EXPONENTIAL &&
	           is_normalised(replay->tape, line)) {
		*call = "hg_softmax(tape, x)";
		*why = "a softmax takes the largest x of the row off before it is raised: at most 1";
	} else if ((overflows || f->cause == HG_CAUSE_UNDERFLOW) && found->op->traits & HG__CASTS) {
		*call = "hg_cast(tape, x, HG_F32)";
		*why = "the cast to fp16 is your own, and fp32 holds the number";
	}
}

/* Of a tape of one's own: a mean for a sum that is too large. */
int hg__fit_own_mean(const struct hg__patient *p, char option[HG__OPTION])
{
	const struct hg__entry *line = p->found->line;
	const int is_less = p->f->terms > 0 && fabs(p->f->wide) / (double)p->f->terms < p->f->limit;
	if (p->replay->config || !line || !is_less)
		return 0;
	const struct hg__about *about = hg__about(p->found->op);
	const char *mean = about->mean ? about->mean(&line->node) : NULL;
	if (mean)
		(void)snprintf(option, HG__OPTION, "op %s", mean);
	return mean != NULL;
}

/* ---- what an op reads ---- */

int hg__reads_weights(const struct hg__replay *replay, const struct hg__entry *line)
{
	const hg_tape *tape = replay->tape;
	struct hg__value_info *info = replay->value;
	for (int64_t v = 0; v < tape->values; v++)
		info[v].reached = 0;
	for (int64_t k = line - tape->entry; k >= 0; k--) {
		const struct hg__node *node = &tape->entry[k].node;
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 && (&tape->entry[k] == line || info[node->out].reached))
				info[node->in[i]].reached = 1;
	}
	for (int64_t v = 0; v < tape->values; v++)
		if (info[v].reached && tape->value[v].kind == HG__PARAM)
			return 1;
	return 0;
}
