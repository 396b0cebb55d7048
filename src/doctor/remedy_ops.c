#include <stdio.h>

#include "doctor/remedy.h"

/* On a tape of the user's own, another op in place of the one at fault: an op that computes in f32
 * what the tape computes in several ops, a wider cast, or a mean in place of a sum. */

/* The op that made operand i of an entry, before implicit casts; NULL: the operand is a leaf. */
static const struct hg__op *maker_of(const hg_tape *tape, const struct hg__entry *entry, int i)
{
	const int32_t in = i < entry->node.n_in ? entry->node.in[i] : -1;
	const int32_t node = in >= 0 ? tape->recording.value[in].node : -1;
	if (node < 0)
		return NULL;
	return hg__is_implicit_cast(tape, node) ? maker_of(tape, &tape->recording.entry[node], 0)
	                                        : tape->recording.entry[node].node.op;
}

/* Is the result summed along its rows, or divided? Then the user has written a softmax by hand. */
static int is_normalised(const hg_tape *tape, const struct hg__entry *entry)
{
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		const struct hg__node *node = &tape->recording.entry[k].node;
		const int reads = node->n_in > 0 && node->in[0] == entry->node.out;
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

void hg__remedy_op(const struct hg__replay *replay, const struct hg__finding *finding,
                   const char **call, const char **why)
{
	const hg_finding *f = &finding->reported;
	const struct hg__entry *entry = finding->entry;
	*call = "";
	*why = NULL;
	if (replay->config || !entry || f->backward)
		return;
	const int overflows = f->cause == HG_CAUSE_STORE;
	if (f->cause == HG_CAUSE_ZERO && f->zero == HG_ZERO_LOGARITHM &&
	    is_softmax(maker_of(replay->tape, entry, 0))) {
		*call = "hg_log_softmax(tape, x)";
		*why = "the logarithm of the softmax of x in one op: no probability is rounded to 0 before "
		       "the logarithm";
	} else if (overflows && hg__about(entry->node.op)->traits & HG__EXPONENTIAL &&
	           is_normalised(replay->tape, entry)) {
		*call = "hg_softmax(tape, x)";
		*why = "a softmax subtracts the largest x of the row before the exponential, which is then "
		       "at most 1";
	} else if ((overflows || f->cause == HG_CAUSE_UNDERFLOW) && finding->op->traits & HG__CASTS) {
		*call = "hg_cast(tape, x, HG_F32)";
		*why = "the tape casts to fp16 here, and fp32 can hold the number";
	}
}

int hg__fit_own_mean(const struct hg__remedy_query *q, char option[HG__OPTION])
{
	const struct hg__entry *entry = q->finding->entry;
	const int mean_fits = q->f->terms > 0 && fabs(q->f->wide) / (double)q->f->terms < q->f->limit;
	if (q->replay->config || !entry || !mean_fits)
		return 0;
	const struct hg__about *about = hg__about(q->finding->op);
	const char *mean = about->mean ? about->mean(&entry->node) : NULL;
	if (mean)
		(void)snprintf(option, HG__OPTION, "op %s", mean);
	return mean != NULL;
}

/* ---- what an op reads ---- */

/* The flags `affected` are free here: chain.c sets all of them anew for each finding. */
int hg__reads_weights(const struct hg__replay *replay, const struct hg__entry *entry)
{
	const hg_tape *tape = replay->tape;
	struct hg__value_info *info = replay->value;
	for (int64_t v = 0; v < tape->recording.values; v++)
		info[v].affected = 0;
	for (int64_t k = entry - tape->recording.entry; k >= 0; k--) {
		const struct hg__node *node = &tape->recording.entry[k].node;
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 &&
			    (&tape->recording.entry[k] == entry || info[node->out].affected))
				info[node->in[i]].affected = 1;
	}
	for (int64_t v = 0; v < tape->recording.values; v++)
		if (info[v].affected && tape->recording.value[v].kind == HG__PARAM)
			return 1;
	return 0;
}
