/* What the nodes of a tape need of their graphs: the matrix, its transpose for the backward pass,
 * pointers of a batch, tiles, and dense counts, which graphs build and keep themselves; and which
 * graphs promise something. */
#include "autograd/program.h"
#include "core/context.h"

/* Has each edge a value: a weight, or a row of an operand? */
static int has_edge_values(const struct hg__node *node)
{
	int values = hg_graph_is_weighted(node->graph);
	for (int i = 0; i < node->n_in; i++)
		values |= node->in[i] >= 0 && node->op->edges >> i & 1u;
	return values;
}

/* Does this node need the transpose, mostly for its backward? *edge: it also needs the position of
 * each edge in the original graph, to find the edge's value. */
static int needs_transpose(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                           int64_t k, int *edge)
{
	const struct hg__node *node = &recording->entry[k].node;
	*edge = !(node->op->traits & HG__UNIT_EDGES) || has_edge_values(node);
	if (!(node->op->traits & HG__TRANSPOSE))
		return 0;
	return node->op->transpose ? node->op->transpose(node, plan->entry[k].back)
	                           : plan->entry[k].back;
}

/* The list of a graph that scatters, and sizes where other graphs have a CSR. */
static void set_list(const hg_graph *graph, struct hg__call *call)
{
	call->coo = hg__graph_coo(graph, 0);
	call->coo_t = hg__graph_coo(graph, 1);
	call->csr = (struct hg__csr){.rows = call->coo.rows, .cols = call->coo.cols, .m = call->coo.m};
	call->csr_t = call->csr;
}

hg_status hg__set_graph(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                        int64_t k, struct hg__call *call)
{
	const struct hg__node *node = &recording->entry[k].node;
	if (!node->graph)
		return HG_OK;
	int edge = 0;
	if (hg__graph_scatters(node->graph))
		set_list(node->graph, call);
	else
		HG__TRY(hg__graph_csr(node->graph, &call->csr));
	if (!hg__graph_scatters(node->graph) && needs_transpose(recording, plan, k, &edge))
		HG__TRY(hg__graph_csr_t(node->graph, edge, &call->csr_t));
	return node->op->traits & HG__BATCH
	           ? hg__graph_batch(node->graph, &call->batch_ptr, &call->batch_id)
	           : HG_OK;
}

hg_status hg__graphs_missing(const struct hg__recording *recording,
                             const struct hg__tape_plan *plan, size_t *bytes)
{
	*bytes = 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		hg_graph *graph = recording->entry[k].node.graph;
		int edge = 0, wider = 0, counted = 0;
		size_t more = 0;
		if (!plan->entry[k].alive || !graph || !needs_transpose(recording, plan, k, &edge))
			continue;
		/* counted already for an earlier entry, or for one that needs the edges as well */
		for (int64_t i = 0; i < recording->entries; i++) {
			const int same = i != k && plan->entry[i].alive &&
			                 recording->entry[i].node.graph == graph &&
			                 needs_transpose(recording, plan, i, &wider);
			counted |= same && (wider > edge || (wider == edge && i < k));
		}
		if (!counted)
			HG__TRY(hg__graph_missing(graph, edge, &more));
		*bytes += more;
	}
	return HG_OK;
}

/* Can the op of this entry use tiles (core/plan_tiles.h)? They sum halves in f32, with weight 1 on
 * each edge, or with weights that attention computes. */
static int sums_neighbours(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                           int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	return plan->entry[k].alive && node->op->traits & HG__TILES && node->accumulate == HG_ACC_F32 &&
	       !hg__graph_scatters(node->graph) && !has_edge_values(node) &&
	       recording->value[node->in[0]].dtype == HG_F16;
}

/* Can this entry use dense counts (core/plan_dense.h)? They are for attention of halves. */
static int attends(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                   int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	return plan->entry[k].alive && node->op->traits & HG__DENSE &&
	       recording->value[node->in[0]].dtype == HG_F16;
}

static hg_status count_densely(const struct hg__recording *recording,
                               const struct hg__tape_plan *plan, size_t needed)
{
	int edge = 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		hg_graph *graph = recording->entry[k].node.graph;
		if (!attends(recording, plan, k))
			continue;
		HG__TRY(hg__graph_dense(graph, 0, needed));
		if (needs_transpose(recording, plan, k, &edge))
			HG__TRY(hg__graph_dense(graph, 1, needed));
	}
	return HG_OK;
}

/* The columns that are summed: those of the widest operand. With attention others than V may have
 * one number for each head, and the result may be the mean over the heads. */
static int64_t summed_cols(const struct hg__recording *recording, int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	int64_t cols = recording->value[node->out].cols;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && recording->value[node->in[i]].cols > cols)
			cols = recording->value[node->in[i]].cols;
	return cols;
}

/* The columns that this entry stages where it uses tiles; 0 if it uses none. */
static int64_t staged_cols(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                           hg_mode mode, int64_t k)
{
	const struct hg__node *node = &recording->entry[k].node;
	if (!sums_neighbours(recording, plan, k))
		return 0;
	const int64_t cols = summed_cols(recording, k);
	return node->op->staged ? node->op->staged(node, mode, cols) : cols;
}

/* Tiles and dense counts only make sums faster, so they get the memory that the run leaves. */
hg_status hg__graphs_tile(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                          hg_mode mode, size_t needed)
{
	int64_t cols = 0, staged = 0;
	int edge = 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		const int64_t own = staged_cols(recording, plan, mode, k);
		staged = own > staged ? own : staged;
		if (own > 0 && summed_cols(recording, k) > cols)
			cols = summed_cols(recording, k);
	}
	for (int64_t k = 0; k < recording->entries; k++) {
		hg_graph *graph = recording->entry[k].node.graph;
		if (staged_cols(recording, plan, mode, k) == 0)
			continue;
		HG__TRY(hg__graph_tiles(graph, 0, needed, cols, staged));
		if (needs_transpose(recording, plan, k, &edge))
			HG__TRY(hg__graph_tiles(graph, 1, needed, cols, staged));
	}
	return count_densely(recording, plan, needed);
}

/* ---- promises ---- */

static const uint64_t *promise_of(const struct hg__task *task)
{
	const hg_graph *graph = task->call.node->graph;
	return graph ? hg__graph_broken(graph) : NULL;
}

static int is_listed(const struct hg__program *program, const uint64_t *broken)
{
	for (int64_t k = 0; k < program->promises; k++)
		if (program->promise[k].broken == broken)
			return 1;
	return 0;
}

hg_status hg__graphs_promise(hg_context *ctx, struct hg__program *program)
{
	for (int64_t i = 0; i < program->forwards; i++) {
		const uint64_t *broken = promise_of(&program->forward[i]);
		void *list = program->promise;
		if (!broken || is_listed(program, broken))
			continue;
		HG__TRY(hg__host_grow(ctx, &list, sizeof *program->promise, program->promises,
		                      &program->promise_capacity, "the tape's promises"));
		program->promise = list;
		program->promise[program->promises++] =
		    (struct hg__promised){broken, program->forward[i].entry};
	}
	return HG_OK;
}
