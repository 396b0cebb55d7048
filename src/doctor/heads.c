#include "doctor/finding.h"

/* Which attention head is the column of an element? The ops that make scores or read them know it.
 * In a tensor with the scores of both ends of the edges, the heads of the destinations come
 * first. */

/* operand -1: the op makes the tensor; else it reads the tensor there. */
static void set_head_of(const struct hg__node *node, int operand, int64_t cols, hg_finding *f)
{
	static const char *const end[] = {
	    [HG__OF_NEITHER] = "", [HG__OF_DESTINATION] = "destination", [HG__OF_SOURCE] = "source"};
	const struct hg__about *about = hg__about(node->op);
	struct hg__heads_in in = {0};
	if (!about->heads || !about->heads(node, operand, cols, &in))
		return;
	if (in.of == HG__OF_BOTH)
		in.of = f->col < in.heads ? HG__OF_DESTINATION : HG__OF_SOURCE;
	f->head = (int32_t)(f->col / (in.each ? in.each : 1) % in.heads);
	f->head_of = end[in.of];
}

void hg__set_head(const struct hg__replay *replay, int32_t value, hg_finding *f)
{
	const hg_tape *tape = replay->tape;
	const int64_t cols = tape->recording.value[value].cols;
	if (tape->recording.value[value].node >= 0)
		set_head_of(&tape->recording.entry[tape->recording.value[value].node].node, -1, cols, f);
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		const struct hg__node *node = &tape->recording.entry[k].node;
		for (int i = 0; i < node->n_in && tape->plan.entry[k].alive; i++)
			if (node->in[i] == value)
				set_head_of(node, i, cols, f);
	}
	if (f->row_is == HG_ROW_EDGE && f->head < 0)
		f->head = (int32_t)f->col;
}
