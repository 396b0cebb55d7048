/* Read the graph of a Planetoid dataset: a dictionary from every node to the list of its
 * neighbours. A neighbour j of node i is an edge i -> j. As in PyTorch Geometric, self loops are
 * left out and repeated edges count once; the lists hold both directions already. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/planetoid.h"

struct adjacency {
	const struct hg__pickle *pickle;
	struct hg__coo coo;
	unsigned char *seen; /* the nodes whose list was read */
	int64_t loops;
};

static hg_status read_node(const struct adjacency *a, hg__ref ref, int64_t *node)
{
	const struct hg__pickle_value *v = &a->pickle->value[ref];
	if (v->kind != HG__PICKLE_INTEGER)
		return hg__pickle_fail(a->pickle, v->at, "found %s, expected the number of a node",
		                       hg__pickle_what(v));
	*node = v->as.integer;
	if (*node < 0 || *node >= a->coo.rows)
		return hg__pickle_fail(a->pickle, v->at, "node %" PRId64 " is not in [0, %" PRId64 ")",
		                       *node, a->coo.rows);
	return HG_OK;
}

static hg_status read_neighbours(struct adjacency *a, int64_t node, hg__ref list)
{
	const struct hg__pickle *p = a->pickle;
	const struct hg__pickle_value *v = &p->value[list];
	if (v->kind != HG__PICKLE_LIST)
		return hg__pickle_fail(p, v->at,
		                       "found %s, expected the list of neighbours of node %" PRId64,
		                       hg__pickle_what(v), node);
	/* Lists that are shared would make far more edges than the file has bytes. */
	if (a->coo.m + a->loops + v->as.items.count > p->size)
		return hg__pickle_fail(p, v->at, "more neighbours than the %" PRId64 " bytes of the file",
		                       p->size);
	for (int32_t cell = v->as.items.first; cell >= 0; cell = p->cell[cell].next) {
		int64_t neighbour = 0;
		HG__TRY(read_node(a, p->cell[cell].value, &neighbour));
		a->loops += neighbour == node;
		if (neighbour != node)
			HG__TRY(hg__coo_add(&a->coo, (int32_t)neighbour, (int32_t)node, 1.0f, p->message));
	}
	return HG_OK;
}

/* As many keys as nodes, none of them twice: every node has its list. */
static hg_status read_lists(struct adjacency *a)
{
	const struct hg__pickle *p = a->pickle;
	const struct hg__pickle_value *root = &p->value[p->root];
	if (root->kind != HG__PICKLE_DICT)
		return hg__pickle_fail(p, root->at, "found %s, expected a dictionary of lists",
		                       hg__pickle_what(root));
	if (root->as.items.count != 2 * a->coo.rows)
		return hg__pickle_fail(p, root->at, "a graph of %" PRId64 " nodes, expected %" PRId64,
		                       root->as.items.count / 2, a->coo.rows);
	HG__TRY(hg__data_alloc(a->coo.rows, 1, "nodes", (void **)&a->seen, p->message));
	memset(a->seen, 0, (size_t)a->coo.rows);
	HG__TRY(hg__coo_reserve(&a->coo, 1024, 0, p->message));
	for (int32_t cell = root->as.items.first; cell >= 0;) {
		const int32_t list = p->cell[cell].next;
		int64_t node = 0;
		HG__TRY(read_node(a, p->cell[cell].value, &node));
		if (a->seen[node])
			return hg__pickle_fail(p, p->value[p->cell[cell].value].at,
			                       "node %" PRId64 " has two lists of neighbours", node);
		a->seen[node] = 1;
		HG__TRY(read_neighbours(a, node, p->cell[list].value));
		cell = p->cell[list].next;
	}
	return HG_OK;
}

static hg_status build(const struct hg__planetoid *p, struct adjacency *a, hg_dataset *d)
{
	struct hg__sparse m = {0};
	HG__TRY(read_lists(a));
	HG__TRY(hg__coo_to_sparse(&a->coo, HG__MERGE_MAX, &m, p->message));
	d->nodes = a->coo.rows;
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	if (a->loops)
		hg__import_note(&p->config, "%s: %" PRId64 " self loops were left out", a->pickle->path,
		                a->loops);
	hg__import_note_merged(&p->config, a->pickle->path, a->coo.m, m.m, 0);
	return HG_OK;
}

hg_status hg__planetoid_graph(const struct hg__planetoid *p, int64_t nodes, hg_dataset *d)
{
	struct hg__pickle pickle;
	struct adjacency a = {.pickle = &pickle, .coo = {.rows = nodes, .cols = nodes}};
	char *path = NULL;
	HG__TRY(hg__planetoid_path(p, "graph", &path));
	hg_status status = hg__pickle_open(&pickle, path, p->config.progress, p->message);
	if (status == HG_OK)
		status = build(p, &a, d);
	free(a.seen);
	hg__coo_free(&a.coo);
	hg__pickle_close(&pickle);
	free(path);
	return status;
}
