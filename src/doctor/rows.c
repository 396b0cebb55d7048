#include "doctor/replay.h"

/* What the rows of each value are: said by the ops that read or make it, handed on by those that
 * keep rows as they are. */

static const hg_row_kind row_kind[] = {[HG__ROWS_INHERITED] = HG_ROW_NODE,
                                       [HG__ROWS_NODES] = HG_ROW_NODE,
                                       [HG__ROWS_EDGES] = HG_ROW_EDGE,
                                       [HG__ROWS_GRAPHS] = HG_ROW_GRAPH};

static void know(struct hg__rows *rows, hg_row_kind kind, hg_graph *graph)
{
	if (!rows->known)
		*rows = (struct hg__rows){kind, 1, graph};
}

/* The same rows: one knows from the other. */
static void share(struct hg__rows *a, struct hg__rows *b)
{
	if (a->known)
		know(b, a->kind, a->graph);
	else if (b->known)
		know(a, b->kind, b->graph);
}

/* A weight in the place of rows says nothing of what is made of it. */
static void pass(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t k = 0; k < tape->entries; k++) {
		const struct hg__node *node = &tape->entry[k].node;
		struct hg__rows *out = &replay->rows[node->out];
		if (node->op->traits & HG__LOSS)
			know(out, HG_ROW_SCALAR, NULL);
		if (hg__about(node->op)->rows)
			know(out, row_kind[hg__about(node->op)->rows], node->graph);
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 && hg__about(node->op)->edges >> i & 1u)
				know(&replay->rows[node->in[i]], HG_ROW_EDGE, node->graph);
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 && tape->value[node->in[i]].rows == tape->value[node->out].rows &&
			    tape->value[node->in[i]].kind != HG__PARAM &&
			    !(node->op->traits & (HG__GRAPH | HG__LOSS)))
				share(out, &replay->rows[node->in[i]]);
	}
}

void hg__rows_learn(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t v = 0; v < tape->values; v++)
		if (tape->value[v].kind == HG__PARAM)
			know(&replay->rows[v], HG_ROW_WEIGHT, NULL);
	pass(replay); /* what ops say reaches what stands behind them; */
	pass(replay); /* and now what stands before */
	for (int64_t v = 0; v < tape->values; v++)
		know(&replay->rows[v], HG_ROW_NODE, NULL);
}

hg_status hg__edge_ends(hg_context *ctx, hg_graph *graph, int64_t e, int64_t *row, int64_t *col)
{
	struct hg__csr csr;
	HG__TRY(hg__graph_csr(graph, &csr));
	return hg__csr_ends(ctx, &csr, e, row, col);
}
