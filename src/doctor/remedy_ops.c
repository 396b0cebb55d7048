#include "autograd/attr.h"
#include "doctor/remedy.h"

/* One op that does in f32, and with the maximum taken off, what a tape does in several. */

/* The op that made operand i of a line; NULL: a leaf. */
static const struct hg__op *maker(const hg_tape *tape, const struct hg__line *line, int i)
{
	const int32_t in = i < line->node.n_in ? line->node.in[i] : -1;
	const int32_t node = in >= 0 ? tape->value[in].node : -1;
	if (node < 0)
		return NULL;
	return hg__is_own_cast(tape, node) ? maker(tape, &tape->line[node], 0)
	                                   : tape->line[node].node.op;
}

/* Does anything read it in a sum along its row, or divide it? Then it is a softmax by hand. */
static int is_normalised(const hg_tape *tape, const struct hg__line *line)
{
	for (int64_t k = 0; k < tape->lines; k++) {
		const struct hg__node *node = &tape->line[k].node;
		const int reads = node->n_in > 0 && node->in[0] == line->node.out;
		if (reads && (node->op == &hg__op_row_sum || node->op == &hg__op_div))
			return 1;
	}
	return 0;
}

static int is_plain_sum(const struct hg__line *line)
{
	struct hg__spmm_attr attr;
	hg__attr_get(&line->node, &attr, sizeof attr);
	return attr.norm == HG_NORM_NONE;
}

static int is_softmax(const struct hg__op *op)
{
	return op == &hg__op_softmax || op == &hg__op_div;
}

void hg__remedy_op(const struct hg__exam *exam, const struct hg__found *found, const char **call,
                   const char **why)
{
	const hg_finding *f = &found->finding;
	const struct hg__line *line = found->line;
	*call = "";
	*why = NULL;
	if (exam->config || !line || f->backward)
		return;
	const int overflows = f->cause == HG_CAUSE_STORE || f->cause == HG_CAUSE_ACCUMULATION;
	if (f->cause == HG_CAUSE_ZERO && f->zero == HG_ZERO_LOGARITHM &&
	    is_softmax(maker(exam->tape, line, 0))) {
		*call = "hg_log_softmax(tape, x)";
		*why = "the logarithm of a softmax in one op, of x: no probability is rounded to 0 on the "
		       "way to it";
	} else if (overflows && line->node.op == &hg__op_exp && is_normalised(exam->tape, line)) {
		*call = "hg_softmax(tape, x)";
		*why = "a softmax takes the largest x of the row off before it is raised: at most 1";
	} else if (overflows && found->op == &hg__op_spmm && is_plain_sum(line)) {
		*call = "hg_spmm_mean(tape, graph, x)";
		*why = "a mean is no larger than its largest term";
	} else if (overflows && line->node.op == &hg__op_row_sum) {
		*call = "hg_row_mean(tape, x)";
		*why = "a mean is no larger than its largest term";
	}
}
