/* Transforms of the graph. A new graph is complete before it replaces the old one, so a failure
 * leaves the dataset unchanged. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "graph/edge_data.h"
#include "node_names.h"

/* The new graph takes the place of the old one, with the data of its edges; *m and *data are the
 * dataset's then. */
static void replace_graph(hg_dataset *d, const struct hg__sparse *m,
                          const struct hg__edge_data *data)
{
	free(d->rowptr);
	free(d->col);
	free(d->weight);
	d->rowptr = m->rowptr;
	d->col = m->col;
	d->weight = m->value;
	d->edges = m->m;
	hg__edge_data_give(d, data);
}

/* Finish a list that begins with the edges of the dataset, in their order, as its new graph. The
 * list is freed. */
static hg_status finish_graph(hg_dataset *d, struct hg__coo *coo, enum hg__merge merge,
                              enum hg__beyond beyond, char *message)
{
	const struct hg__edge_data old = hg__edge_data_of(d);
	struct hg__edge_data data = {0};
	struct hg__sparse m = {0};
	coo->keep_origin = hg__has_edge_data(d);
	HG__TRY(hg__coo_to_sparse(coo, merge, &m, message));
	const hg_status status =
	    m.origin ? hg__edge_data_gather(&old, m.origin, coo->m, beyond, &data, NULL, message)
	             : HG_OK;
	free(m.origin);
	m.origin = NULL;
	if (status == HG_OK)
		replace_graph(d, &m, &data);
	else
		hg__sparse_free(&m);
	return status;
}

/* Add all edges to a list in their order, or all reversed. */
static hg_status list_edges(const hg_dataset *d, int reversed, struct hg__coo *coo, char *message)
{
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			const int32_t row = (int32_t)i, col = d->col[e];
			HG__TRY(hg__coo_add(coo, reversed ? col : row, reversed ? row : col,
			                    d->weight ? d->weight[e] : 1, message));
		}
	return HG_OK;
}

/* A + A^T; of two entries with the same row and column the larger stays. The reversed edges come
 * last in the list, so an edge that is there keeps its own data. */
hg_status hg_dataset_symmetrize(hg_dataset *d, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "symmetrize: dataset is NULL");
	struct hg__coo coo = {.rows = d->nodes, .cols = d->nodes};
	hg_status status = hg__coo_reserve(&coo, 2 * d->edges + 1, d->weight != NULL, message);
	if (status == HG_OK)
		status = list_edges(d, 0, &coo, message);
	if (status == HG_OK)
		status = list_edges(d, 1, &coo, message);
	if (status == HG_OK)
		status = finish_graph(d, &coo, HG__MERGE_MAX, HG__BEYOND_REVERSED, message);
	hg__coo_free(&coo);
	return status;
}

/* Add a self loop of weight 1 to every node that has none. */
hg_status hg_dataset_self_loops(hg_dataset *d, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "self_loops: dataset is NULL");
	struct hg__coo coo = {.rows = d->nodes, .cols = d->nodes};
	hg_status status = hg__coo_reserve(&coo, d->edges + d->nodes + 1, d->weight != NULL, message);
	if (status == HG_OK)
		status = list_edges(d, 0, &coo, message);
	for (int64_t i = 0; status == HG_OK && i < d->nodes; i++)
		if (!hg__data_has_loop(d, i))
			status = hg__coo_add(&coo, (int32_t)i, (int32_t)i, 1, message);
	if (status == HG_OK)
		status = finish_graph(d, &coo, HG__MERGE_SUM, HG__BEYOND_NEW, message);
	hg__coo_free(&coo);
	return status;
}

/* Union-find with path halving. */
static int32_t find_root(int32_t *parent, int32_t i)
{
	while (parent[i] != i) {
		parent[i] = parent[parent[i]];
		i = parent[i];
	}
	return i;
}

/* keep [n] := the new number of each node of the largest weakly connected component, -1 for all
 * other nodes. Of several largest components the one with the smallest node is taken. */
static hg_status largest_component(const hg_dataset *d, int32_t *keep, int64_t *kept, char *message)
{
	int32_t *parent = NULL;
	HG__TRY(hg__data_alloc(d->nodes, sizeof *parent, "components", (void **)&parent, message));
	for (int64_t i = 0; i < d->nodes; i++) {
		parent[i] = (int32_t)i;
		keep[i] = 0;
	}
	for (int64_t i = 0; i < d->nodes; i++)
		for (int64_t e = d->rowptr[i]; e < d->rowptr[i + 1]; e++) {
			const int32_t a = find_root(parent, (int32_t)i), b = find_root(parent, d->col[e]);
			parent[a > b ? a : b] = a > b ? b : a; /* the smaller number becomes the root */
		}
	for (int64_t i = 0; i < d->nodes; i++)
		keep[find_root(parent, (int32_t)i)]++;
	int32_t best = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		if (keep[i] > keep[best])
			best = (int32_t)i;
	*kept = 0;
	for (int64_t i = 0; i < d->nodes; i++)
		keep[i] = find_root(parent, (int32_t)i) == best ? (int32_t)(*kept)++ : -1;
	free(parent);
	return HG_OK;
}

/* Copy the elements of the kept rows, `size` bytes each; NULL stays NULL. */
static hg_status pick(const void *from, size_t size, const int32_t *keep, int64_t n, int64_t kept,
                      void **to, char *message)
{
	if (!from)
		return HG_OK;
	HG__TRY(hg__data_alloc(kept, size > 0 ? size : 1, "the component", to, message));
	for (int64_t i = 0; i < n; i++)
		if (keep[i] >= 0 && size > 0)
			memcpy((char *)*to + (size_t)keep[i] * size, (const char *)from + (size_t)i * size,
			       size);
	return HG_OK;
}

/* Copy the kept rows of a CSR matrix; columns are renumbered by `rename` where it is given. The
 * edges of a component stay inside it, so whole rows are kept. */
static hg_status pick_rows(const int64_t *rowptr, const int32_t *col, const float *value,
                           const int32_t *keep, const int32_t *rename, int64_t n, int64_t kept,
                           struct hg__sparse *m, char *message)
{
	int64_t entries = 0;
	for (int64_t i = 0; i < n; i++)
		entries += keep[i] >= 0 ? rowptr[i + 1] - rowptr[i] : 0;
	HG__TRY(
	    hg__data_alloc(kept + 1, sizeof *m->rowptr, "the component", (void **)&m->rowptr, message));
	HG__TRY(hg__data_alloc(entries, sizeof *m->col, "the component", (void **)&m->col, message));
	if (value)
		HG__TRY(hg__data_alloc(entries, sizeof *m->value, "the component", (void **)&m->value,
		                       message));
	m->rowptr[0] = 0;
	for (int64_t i = 0; i < n; i++) {
		if (keep[i] < 0)
			continue;
		for (int64_t e = rowptr[i]; e < rowptr[i + 1]; e++) {
			if (value)
				m->value[m->m] = value[e];
			m->col[m->m++] = rename ? rename[col[e]] : col[e];
		}
		m->rowptr[keep[i] + 1] = m->m;
	}
	return HG_OK;
}

/* The data of the kept rows' edges. */
static hg_status pick_edges(const hg_dataset *d, const int32_t *keep, hg_dataset *part,
                            char *message)
{
	const size_t row = (size_t)d->edge_features * sizeof *d->edge_feat;
	if (d->edge_feat)
		HG__TRY(
		    hg__data_alloc(part->edges, row, "the component", (void **)&part->edge_feat, message));
	if (d->edge_label)
		HG__TRY(hg__data_alloc(part->edges, sizeof *part->edge_label, "the component",
		                       (void **)&part->edge_label, message));
	int64_t to = 0;
	for (int64_t i = 0; i < d->nodes; i++) {
		const int64_t from = d->rowptr[i], count = keep[i] >= 0 ? d->rowptr[i + 1] - from : 0;
		if (d->edge_feat && count)
			memcpy(part->edge_feat + to * d->edge_features, d->edge_feat + from * d->edge_features,
			       (size_t)count * row);
		if (d->edge_label && count)
			memcpy(part->edge_label + to, d->edge_label + from,
			       (size_t)count * sizeof *d->edge_label);
		to += count;
	}
	return HG_OK;
}

static hg_status pick_names(const hg_dataset *d, const int32_t *keep, int64_t kept,
                            hg_dataset *part, char *message)
{
	int32_t *from = NULL;
	if (!d->node_name)
		return HG_OK;
	HG__TRY(hg__data_alloc(kept, sizeof *from, "the component", (void **)&from, message));
	for (int64_t i = 0; i < d->nodes; i++)
		if (keep[i] >= 0)
			from[keep[i]] = (int32_t)i;
	const hg_status status = hg__node_names_gather(d, from, kept, part, message);
	free(from);
	return status;
}

static hg_status pick_nodes(const hg_dataset *d, const int32_t *keep, int64_t kept,
                            hg_dataset *part, char *message)
{
	struct hg__sparse graph = {0}, feat = {0};
	hg_status status =
	    pick_rows(d->rowptr, d->col, d->weight, keep, keep, d->nodes, kept, &graph, message);
	part->nodes = kept;
	part->edges = graph.m;
	part->rowptr = graph.rowptr;
	part->col = graph.col;
	part->weight = graph.value;
	if (status == HG_OK && d->feat_rowptr)
		status = pick_rows(d->feat_rowptr, d->feat_col, d->feat_value, keep, NULL, d->nodes, kept,
		                   &feat, message);
	part->feat_rowptr = feat.rowptr;
	part->feat_col = feat.col;
	part->feat_value = feat.value;
	HG__TRY(status);
	HG__TRY(pick_edges(d, keep, part, message));
	HG__TRY(pick(d->feat, (size_t)d->features * hg_dtype_size(d->feat_dtype), keep, d->nodes, kept,
	             &part->feat, message));
	HG__TRY(pick(d->label, sizeof *d->label, keep, d->nodes, kept, (void **)&part->label, message));
	HG__TRY(pick(d->target, (size_t)d->targets * sizeof *d->target, keep, d->nodes, kept,
	             (void **)&part->target, message));
	HG__TRY(pick(d->train_mask, 1, keep, d->nodes, kept, (void **)&part->train_mask, message));
	HG__TRY(pick(d->val_mask, 1, keep, d->nodes, kept, (void **)&part->val_mask, message));
	HG__TRY(pick(d->test_mask, 1, keep, d->nodes, kept, (void **)&part->test_mask, message));
	HG__TRY(pick(d->fold, sizeof *d->fold, keep, d->nodes, kept, (void **)&part->fold, message));
	part->folds = d->folds;
	HG__TRY(hg__data_alloc(kept, sizeof *part->orig_id, "original ids", (void **)&part->orig_id,
	                       message));
	for (int64_t i = 0; i < d->nodes; i++)
		if (keep[i] >= 0)
			part->orig_id[keep[i]] = hg_dataset_node(d, i);
	return pick_names(d, keep, kept, part, message);
}

/* The order array of a component of a reordered dataset: the rank that each kept node had among the
 * kept nodes in the original order. NULL where that is the current order. */
static hg_status keep_order(const hg_dataset *d, const int32_t *keep, int64_t kept,
                            hg_dataset *part, char *message)
{
	int32_t *now = NULL;
	if (!d->order)
		return HG_OK;
	HG__TRY(hg__data_alloc(d->nodes, sizeof *now, "the component's order", (void **)&now, message));
	const hg_status status = hg__data_alloc(kept, sizeof *part->order, "the component's order",
	                                        (void **)&part->order, message);
	for (int64_t i = 0; i < d->nodes; i++)
		now[d->order[i]] = keep[i];
	int64_t before = 0, moved = 0;
	for (int64_t k = 0; k < d->nodes && status == HG_OK; k++)
		if (now[k] >= 0) {
			moved += now[k] != before;
			part->order[now[k]] = (int32_t)before++;
		}
	free(now);
	if (moved == 0) {
		free(part->order);
		part->order = NULL;
	}
	return status;
}

hg_status hg_dataset_largest_component(hg_dataset *d, char *message)
{
	int32_t *keep = NULL;
	int64_t kept = 0;
	hg_dataset *part = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "largest_component: dataset is NULL");
	if (d->graph_ptr)
		return hg__data_fail(message, HG_ERR_UNSUPPORTED,
		                     "a batch of %" PRId64 " graphs has no largest component", d->graphs);
	HG__TRY(hg__data_alloc(d->nodes, sizeof *keep, "components", (void **)&keep, message));
	hg_status status = d->nodes > 0 ? largest_component(d, keep, &kept, message) : HG_OK;
	if (status == HG_OK && kept < d->nodes)
		status = hg_dataset_new(&part, message);
	if (part) {
		status = pick_nodes(d, keep, kept, part, message);
		if (status == HG_OK)
			status = keep_order(d, keep, kept, part, message);
		/* on success this frees the old arrays, on failure the unfinished new ones */
		hg_dataset *unused = part;
		if (status == HG_OK) {
			const hg_dataset old = *d;
			part->name = d->name;
			part->features = d->features;
			part->feat_dtype = d->feat_dtype;
			part->classes = d->classes;
			part->edge_features = d->edge_features;
			part->edge_classes = d->edge_classes;
			part->targets = d->targets;
			part->target_names = d->target_names;
			*d = *part;
			*unused = old;
			unused->name = NULL;
			unused->target_names = NULL;
			d->feat_mean = old.feat_mean;
			d->feat_deviation = old.feat_deviation;
			unused->feat_mean = unused->feat_deviation = NULL;
			d->class_name = old.class_name;
			d->class_name_bytes = old.class_name_bytes;
			unused->class_name = NULL;
			d->feat_amax = hg__data_amax(d);
		}
		hg_dataset_free(unused);
	}
	free(keep);
	return status;
}
