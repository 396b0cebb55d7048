#include "doctor/replay.h"

#include "doctor/sum.h"

/* What the rows of each value are. Ops that read or make a value say so; ops that keep the rows of
 * their operands hand the knowledge on. */

static const hg_row_kind row_kind[] = {[HG__ROWS_INHERITED] = HG_ROW_NODE,
                                       [HG__ROWS_NODES] = HG_ROW_NODE,
                                       [HG__ROWS_EDGES] = HG_ROW_EDGE,
                                       [HG__ROWS_GRAPHS] = HG_ROW_GRAPH};

static void set_kind(struct hg__rows *rows, hg_row_kind kind, hg_graph *graph)
{
	if (!rows->known)
		*rows = (struct hg__rows){kind, 1, graph};
}

/* Both values have the same rows, so what is known of one holds for the other. */
static void share_kind(struct hg__rows *a, struct hg__rows *b)
{
	if (a->known)
		set_kind(b, a->kind, a->graph);
	else if (b->known)
		set_kind(a, b->kind, b->graph);
}

/* A parameter may happen to have as many rows as the result; its rows are weights all the same. */
static int keeps_rows(const hg_tape *tape, const struct hg__node *node, int operand)
{
	const struct hg__value *in = &tape->recording.value[node->in[operand]];
	return in->rows == tape->recording.value[node->out].rows && in->kind != HG__PARAM &&
	       !(node->op->traits & (HG__GRAPH | HG__LOSS));
}

static void hand_on(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t k = 0; k < tape->recording.entries; k++) {
		const struct hg__node *node = &tape->recording.entry[k].node;
		struct hg__rows *out = &replay->rows[node->out];
		if (node->op->traits & HG__LOSS)
			set_kind(out, HG_ROW_SCALAR, NULL);
		if (hg__about(node->op)->rows)
			set_kind(out, row_kind[hg__about(node->op)->rows], node->graph);
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 && node->op->edges >> i & 1u)
				set_kind(&replay->rows[node->in[i]], HG_ROW_EDGE, node->graph);
		for (int i = 0; i < node->n_in; i++)
			if (node->in[i] >= 0 && keeps_rows(tape, node, i))
				share_kind(out, &replay->rows[node->in[i]]);
	}
}

/* The first pass brings what ops say to everything after them, the second also to what comes before
 * them. Rows of which nothing is known are nodes. */
void hg__rows_infer(struct hg__replay *replay)
{
	const hg_tape *tape = replay->tape;
	for (int64_t v = 0; v < tape->recording.values; v++)
		if (tape->recording.value[v].kind == HG__PARAM)
			set_kind(&replay->rows[v], HG_ROW_WEIGHT, NULL);
	hand_on(replay);
	hand_on(replay);
	for (int64_t v = 0; v < tape->recording.values; v++)
		set_kind(&replay->rows[v], HG_ROW_NODE, NULL);
}

hg_status hg__edge_ends(hg_context *ctx, hg_graph *graph, int64_t e, int64_t *row, int64_t *col)
{
	struct hg__csr csr;
	if (hg__graph_scatters(graph)) {
		const struct hg__coo coo = hg__graph_coo(graph, 0);
		int32_t ends[2] = {0, 0};
		HG__TRY(ctx->backend->copy_out(ctx, &ends[0], coo.dst + e, sizeof ends[0]));
		HG__TRY(ctx->backend->copy_out(ctx, &ends[1], coo.src + e, sizeof ends[1]));
		*row = ends[0];
		*col = ends[1];
		return HG_OK;
	}
	HG__TRY(hg__graph_csr(graph, &csr));
	return hg__csr_ends(ctx, &csr, e, row, col);
}
