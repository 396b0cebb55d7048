#include "autograd/attr.h"
#include "doctor/exam.h"

/* Which attention head a column is, where it is one: said by the ops that make scores or read
 * them. A tensor with the scores of both ends of the edges has the heads of the destinations
 * first. */

static void name_head(hg_finding *f, int64_t heads, int both, int source)
{
	static const char *const of[] = {"destination", "source"};
	f->head = (int32_t)(f->col % heads);
	f->head_of = of[both ? f->col >= heads : source];
}

/* Made here. */
static void made_by(const struct hg__node *node, hg_finding *f)
{
	struct hg__heads_attr attr;
	if (node->op != &hg__op_head_dot)
		return;
	hg__attr_get(node, &attr, sizeof attr);
	name_head(f, attr.heads, node->in[2] >= 0, 0);
	if (node->in[2] < 0)
		f->head_of = "";
}

/* Read here. */
static void read_by(const hg_tape *tape, const struct hg__node *node, int32_t value, hg_finding *f)
{
	const int64_t cols = tape->value[value].cols;
	const int both = node->in[1] < 0;
	if (node->op != &hg__op_sddmm_add)
		return;
	for (int i = 0; i < 2; i++)
		if (node->in[i] == value)
			name_head(f, both ? cols / 2 : cols, both, i);
}

void hg__name_head(const struct hg__exam *exam, int32_t value, hg_finding *f)
{
	const hg_tape *tape = exam->tape;
	if (tape->value[value].node >= 0)
		made_by(&tape->entry[tape->value[value].node].node, f);
	for (int64_t k = 0; k < tape->entries; k++)
		if (tape->entry[k].alive)
			read_by(tape, &tape->entry[k].node, value, f);
	if (f->row_is == HG_ROW_EDGE && f->head < 0)
		f->head = (int32_t)f->col;
}
