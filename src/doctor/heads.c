#include "doctor/replay.h"

/* Which attention head a column is, where it is one: said by the ops that make scores or read
 * them. A tensor with the scores of both ends of the edges has the heads of the destinations
 * first. */

/* operand -1: the op makes it; else the op reads it there. */
static void name_head(const struct hg__node *node, int operand, int64_t cols, hg_finding *f)
{
	static const char *const of[] = {
	    [HG__OF_NEITHER] = "", [HG__OF_DESTINATION] = "destination", [HG__OF_SOURCE] = "source"};
	const struct hg__about *about = hg__about(node->op);
	struct hg__heads_in in;
	if (!about->heads || !about->heads(node, operand, cols, &in))
		return;
	if (in.of == HG__OF_BOTH)
		in.of = f->col < in.heads ? HG__OF_DESTINATION : HG__OF_SOURCE;
	f->head = (int32_t)(f->col % in.heads);
	f->head_of = of[in.of];
}

static void read_by(const hg_tape *tape, const struct hg__node *node, int32_t value, hg_finding *f)
{
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] == value)
			name_head(node, i, tape->value[value].cols, f);
}

void hg__name_head(const struct hg__replay *replay, int32_t value, hg_finding *f)
{
	const hg_tape *tape = replay->tape;
	if (tape->value[value].node >= 0)
		name_head(&tape->entry[tape->value[value].node].node, -1, tape->value[value].cols, f);
	for (int64_t k = 0; k < tape->entries; k++)
		if (tape->plan.entry[k].alive)
			read_by(tape, &tape->entry[k].node, value, f);
	if (f->row_is == HG_ROW_EDGE && f->head < 0)
		f->head = (int32_t)f->col;
}
