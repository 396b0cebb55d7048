/* Which rows of a matrix count. A graph that changes has rows of padding behind its nodes, as many
 * as the list or batch in place leaves, and so has every matrix whose rows are its nodes. Ops that
 * mix rows (batch norm, losses) then read on the device how many of them count.
 *
 * An op on such a graph shows which matrices these are: those with as many rows as the graph. From
 * there the knowledge spreads, in both directions, through ops that have no graph and as many rows
 * in their result as in the operand. Where two graphs could be meant, the first on the tape is. */
#include "autograd/recording.h"
#include "core/csr.h"

/* *changed: whether the value has learned something. */
static void learn(struct hg__value *value, const int64_t *live, int *changed)
{
	if (value->live || !live)
		return;
	value->live = live;
	*changed = 1;
}

/* A parameter that is not operand 0 is a weight, whose rows are columns of another matrix. */
static struct hg__value *rows_of(struct hg__recording *recording, const struct hg__node *node,
                                 int i, int64_t rows)
{
	struct hg__value *x = node->in[i] >= 0 ? &recording->value[node->in[i]] : NULL;
	const int is_weight = x && i > 0 && x->kind == HG__PARAM;
	return x && x->rows == rows && !is_weight ? x : NULL;
}

static void spread(struct hg__recording *recording, const struct hg__node *node, int *changed)
{
	struct hg__value *out = &recording->value[node->out];
	const int64_t rows = node->graph ? hg_graph_rows(node->graph) : out->rows;
	const int64_t *live = node->graph ? hg__graph_live(node->graph) : NULL;
	if (out->rows == rows)
		learn(out, live, changed);
	for (int i = 0; i < node->n_in; i++) {
		struct hg__value *x = rows_of(recording, node, i, rows);
		if (!x)
			continue;
		learn(x, node->graph ? live : out->live, changed);
		if (!node->graph)
			learn(out, x->live, changed);
	}
}

void hg__tape_live(struct hg__recording *recording)
{
	int changed = 1;
	while (changed) {
		changed = 0;
		for (int64_t k = 0; k < recording->entries; k++)
			spread(recording, &recording->entry[k].node, &changed);
		for (int64_t k = recording->entries - 1; changed && k >= 0; k--)
			spread(recording, &recording->entry[k].node, &changed);
	}
}
