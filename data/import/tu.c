/* Read the text files of the TU Dortmund graph-classification datasets, all in one folder:
 * NAME_A.txt, one edge "i, j" per line from node i to node j, both from 1;
 * NAME_graph_indicator.txt, the graph of each node, from 1, never descending;
 * NAME_graph_labels.txt, an integer for each graph. Two files are optional:
 * NAME_node_attributes.txt, numbers for each node, and NAME_node_labels.txt, an integer for each
 * node.
 *
 * Graph labels may be any integers (-1 and 1, say): the classes are the distinct labels, ascending.
 * Features are the attributes, followed by one column for each distinct node label, ascending, that
 * is 1 where the node has the label. Without attributes the features are stored sparse. Repeated
 * edges count once.
 *
 * A dataset has one weight per edge and one class per graph, so NAME_edge_labels.txt,
 * NAME_edge_attributes.txt and NAME_graph_attributes.txt are not read, and a note says so. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/coo.h"
#include "import/importers.h"
#include "import/lines.h"

/* The files of a dataset: their common prefix, folder included, is the first `stem` bytes of the
 * path of the edge file. */
struct tu_files {
	const char *path;
	int stem;
	hg_import_config config;
	char *message;
};

/* A file with one integer per line. */
struct column {
	int64_t *at, count, room;
};

/* The distinct numbers of a column, ascending. */
struct distinct {
	int64_t *at, count;
};

struct attributes {
	float *at;
	int64_t rows, width, count, room;
};

struct edges {
	const int64_t *graph; /* the graph of each node */
	struct hg__coo coo;
};

static const char one_number[] = "expected one whole number",
                  two_nodes[] = "expected two node numbers";

static hg_status add_number(const struct lines *lines, const char *line, void *to)
{
	struct column *c = to;
	const char *at = line;
	int64_t value = 0;
	HG__TRY(
	    hg__lines_integer(lines, line, one_number, "expected a number of 64 bits", &at, &value));
	if (*at)
		return hg__lines_fail(lines, one_number, line);
	if (c->count == c->room) {
		c->room = c->room ? 2 * c->room : 1024;
		HG__TRY(hg__data_grow((void **)&c->at, c->room, sizeof *c->at, "a column of numbers",
		                      lines->message));
	}
	c->at[c->count++] = value;
	return HG_OK;
}

static hg_status add_attributes(const struct lines *lines, const char *line, void *to)
{
	struct attributes *a = to;
	int64_t width = 0;
	for (const char *at = line; *at; width++) {
		if (a->count == a->room) {
			a->room = a->room ? 2 * a->room : 1024;
			HG__TRY(hg__data_grow((void **)&a->at, a->room, sizeof *a->at, "attributes",
			                      lines->message));
		}
		HG__TRY(hg__lines_number(lines, line, "expected finite numbers", &at, &a->at[a->count]));
		a->count++;
	}
	if (a->rows > 0 && width != a->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " attributes, expected %" PRId64
		                     " as before",
		                     lines->path, lines->number, width, a->width);
	a->width = width;
	a->rows++;
	return HG_OK;
}

static hg_status add_edge(const struct lines *lines, const char *line, void *to)
{
	struct edges *e = to;
	const char *at = line;
	int64_t i = 0, j = 0;
	HG__TRY(hg__lines_integer(lines, line, two_nodes, two_nodes, &at, &i));
	HG__TRY(hg__lines_integer(lines, line, two_nodes, two_nodes, &at, &j));
	if (*at)
		return hg__lines_fail(lines, two_nodes, line);
	if (i < 1 || i > e->coo.rows || j < 1 || j > e->coo.rows)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": edge %" PRId64 ", %" PRId64
		                     ": the nodes are 1 .. %" PRId64,
		                     lines->path, lines->number, i, j, e->coo.rows);
	if (e->graph[i - 1] != e->graph[j - 1])
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": edge %" PRId64 ", %" PRId64 " joins graphs %" PRId64
		                     " and %" PRId64,
		                     lines->path, lines->number, i, j, e->graph[i - 1], e->graph[j - 1]);
	return hg__coo_add(&e->coo, (int32_t)(j - 1), (int32_t)(i - 1), 1.0f, lines->message);
}

/* The path NAME_PART.txt, malloc'd. */
static hg_status path_of(const struct tu_files *p, const char *part, char **path)
{
	const int64_t room = p->stem + (int64_t)strlen(part) + 6;
	void *memory = NULL;
	HG__TRY(hg__data_alloc(room, 1, "a path", &memory, p->message));
	*path = memory;
	(void)snprintf(*path, (size_t)room, "%.*s_%s.txt", p->stem, p->path, part);
	return HG_OK;
}

/* Pass every non-empty line of NAME_PART.txt to `add`. An optional file may be missing. */
static hg_status read_part(const struct tu_files *p, const char *part, int optional,
                           hg_status (*add)(const struct lines *, const char *, void *), void *to)
{
	struct lines lines;
	char *path = NULL, *line = NULL;
	HG__TRY(path_of(p, part, &path));
	if (optional && access(path, F_OK) != 0) {
		free(path);
		return HG_OK;
	}
	hg_status status = hg__lines_open(&lines, path, p->config.progress, p->message);
	while (status == HG_OK && (status = hg__lines_next(&lines, &line)) == HG_OK && line) {
		const char *at = hg__skip_separators(line);
		if (*at)
			status = add(&lines, at, to);
	}
	hg__lines_close(&lines);
	free(path);
	return status;
}

static hg_status expect_lines(const struct tu_files *p, const char *part, int64_t found,
                              int64_t expected, const char *what)
{
	if (found == expected)
		return HG_OK;
	return hg__data_fail(p->message, HG_ERR_FORMAT,
	                     "%.*s_%s.txt: %" PRId64 " lines for %" PRId64 " %s", p->stem, p->path,
	                     part, found, expected, what);
}

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static hg_status find_distinct(const struct column *c, struct distinct *k, char *message)
{
	HG__TRY(hg__data_alloc(c->count, sizeof *k->at, "labels", (void **)&k->at, message));
	if (c->count)
		memcpy(k->at, c->at, (size_t)c->count * sizeof *k->at);
	qsort(k->at, (size_t)c->count, sizeof *k->at, ascending);
	for (int64_t i = 0; i < c->count; i++)
		if (i == 0 || k->at[i] != k->at[i - 1])
			k->at[k->count++] = k->at[i];
	return HG_OK;
}

static int32_t index_of(const struct distinct *k, int64_t value)
{
	const int64_t *found = bsearch(&value, k->at, (size_t)k->count, sizeof value, ascending);
	return (int32_t)(found - k->at);
}

static hg_status read_graphs(const struct tu_files *p, struct column *graph, hg_dataset *d)
{
	struct column label = {0};
	struct distinct classes = {0};
	hg_status status = read_part(p, "graph_labels", 0, add_number, &label);
	if (status == HG_OK)
		status = find_distinct(&label, &classes, p->message);
	if (status == HG_OK)
		status =
		    hg__data_alloc(label.count, sizeof *d->label, "labels", (void **)&d->label, p->message);
	if (status == HG_OK)
		status = hg__data_alloc(label.count + 1, sizeof *d->graph_ptr, "graphs",
		                        (void **)&d->graph_ptr, p->message);
	if (status == HG_OK) {
		d->graphs = label.count;
		d->classes = (int32_t)classes.count;
		for (int64_t g = 0; g < label.count; g++)
			d->label[g] = index_of(&classes, label.at[g]);
	}
	free(label.at);
	free(classes.at);
	HG__TRY(status);
	HG__TRY(read_part(p, "graph_indicator", 0, add_number, graph));
	if (graph->count > INT32_MAX)
		return hg__data_fail(p->message, HG_ERR_RANGE,
		                     "%s: %" PRId64 " nodes, at most 2147483647 are possible", p->path,
		                     graph->count);
	d->nodes = graph->count;
	int64_t g = 0;
	d->graph_ptr[0] = 0;
	for (int64_t i = 0; i < graph->count; i++) {
		if (graph->at[i] < (g ? g : 1) || graph->at[i] > d->graphs)
			return hg__data_fail(p->message, HG_ERR_FORMAT,
			                     "%.*s_graph_indicator.txt: node %" PRId64 " is in graph %" PRId64
			                     ", expected %" PRId64 " .. %" PRId64,
			                     p->stem, p->path, i + 1, graph->at[i], g ? g : 1, d->graphs);
		while (g < graph->at[i])
			d->graph_ptr[g++] = i;
	}
	while (g <= d->graphs)
		d->graph_ptr[g++] = d->nodes;
	return HG_OK;
}

static hg_status read_edges(const struct tu_files *p, const struct column *graph, hg_dataset *d)
{
	struct edges e = {.graph = graph->at, .coo = {.rows = d->nodes, .cols = d->nodes}};
	struct hg__sparse m = {0};
	hg_status status = hg__coo_reserve(&e.coo, 1024, 0, p->message);
	if (status == HG_OK)
		status = read_part(p, "A", 0, add_edge, &e);
	if (status == HG_OK)
		status = hg__coo_to_sparse(&e.coo, HG__MERGE_MAX, &m, p->message);
	const int64_t read = e.coo.m;
	hg__coo_free(&e.coo);
	HG__TRY(status);
	hg__import_note_merged(&p->config, p->path, read, m.m, 0);
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	return HG_OK;
}

static hg_status build_one_hot(const struct column *label, const struct distinct *distinct,
                               hg_dataset *d, char *message)
{
	HG__TRY(hg__data_alloc(d->nodes + 1, sizeof *d->feat_rowptr, "features",
	                       (void **)&d->feat_rowptr, message));
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof *d->feat_col, "features", (void **)&d->feat_col, message));
	for (int64_t i = 0; i < d->nodes; i++) {
		d->feat_rowptr[i] = i;
		d->feat_col[i] = index_of(distinct, label->at[i]);
	}
	d->feat_rowptr[d->nodes] = d->nodes;
	d->features = distinct->count;
	return HG_OK;
}

static hg_status build_dense(const struct attributes *a, const struct column *label,
                             const struct distinct *distinct, hg_dataset *d, char *message)
{
	float *x = NULL;
	d->features = a->width + distinct->count;
	HG__TRY(
	    hg__data_alloc(d->nodes, (size_t)d->features * sizeof *x, "features", &d->feat, message));
	x = d->feat;
	for (int64_t i = 0; i < d->nodes; i++, x += d->features) {
		memcpy(x, a->at + i * a->width, (size_t)a->width * sizeof *x);
		memset(x + a->width, 0, (size_t)distinct->count * sizeof *x);
		if (label->count)
			x[a->width + index_of(distinct, label->at[i])] = 1.0f;
	}
	return HG_OK;
}

static hg_status read_features(const struct tu_files *p, hg_dataset *d)
{
	struct column label = {0};
	struct distinct distinct = {0};
	struct attributes a = {0};
	hg_status status = read_part(p, "node_labels", 1, add_number, &label);
	if (status == HG_OK)
		status = read_part(p, "node_attributes", 1, add_attributes, &a);
	if (status == HG_OK && label.count)
		status = expect_lines(p, "node_labels", label.count, d->nodes, "nodes");
	if (status == HG_OK && a.rows)
		status = expect_lines(p, "node_attributes", a.rows, d->nodes, "nodes");
	if (status == HG_OK)
		status = find_distinct(&label, &distinct, p->message);
	d->feat_dtype = HG_F32;
	if (status == HG_OK && a.rows)
		status = build_dense(&a, &label, &distinct, d, p->message);
	else if (status == HG_OK && label.count)
		status = build_one_hot(&label, &distinct, d, p->message);
	if (status == HG_OK)
		d->feat_amax = hg__data_amax(d);
	free(label.at);
	free(distinct.at);
	free(a.at);
	return status;
}

/* The edge file "DIR/NAME_A.txt" gives the prefix of all other names. */
static hg_status find_stem(struct tu_files *p)
{
	static const char ending[] = "_A.txt";
	const size_t length = strlen(p->path), end = sizeof ending - 1;
	if (length <= end || length > INT32_MAX || strcmp(p->path + length - end, ending) != 0 ||
	    p->path[length - end - 1] == '/')
		return hg__data_fail(
		    p->message, HG_ERR_FORMAT,
		    "%s: expected the file NAME_A.txt of a TU dataset, with the other files beside it",
		    p->path);
	p->stem = (int)(length - end);
	return HG_OK;
}

static hg_status set_name(const struct tu_files *p, hg_dataset *d)
{
	int begin = p->stem;
	while (begin > 0 && p->path[begin - 1] != '/')
		begin--;
	HG__TRY(hg__data_copy_text(p->path + begin, &d->name, p->message));
	d->name[p->stem - begin] = 0;
	return HG_OK;
}

/* Note the files whose content the dataset cannot hold. */
static hg_status note_unread(const struct tu_files *p)
{
	static const struct {
		const char *part, *what;
	} unread[] = {{"edge_labels", "labels of edges"},
	              {"edge_attributes", "attributes of edges"},
	              {"graph_attributes", "attributes of graphs"}};
	for (size_t k = 0; k < sizeof unread / sizeof *unread; k++) {
		char *path = NULL;
		HG__TRY(path_of(p, unread[k].part, &path));
		if (access(path, F_OK) == 0)
			hg__import_note(&p->config, "%s is not read: a dataset has no %s", path,
			                unread[k].what);
		free(path);
	}
	return HG_OK;
}

static hg_status read_all(const struct tu_files *p, hg_dataset *d)
{
	struct column graph = {0};
	hg_status status = set_name(p, d);
	if (status == HG_OK)
		status = read_graphs(p, &graph, d);
	if (status == HG_OK)
		status = read_edges(p, &graph, d);
	if (status == HG_OK)
		status = read_features(p, d);
	if (status == HG_OK)
		status = note_unread(p);
	free(graph.at);
	return status == HG_OK ? hg_dataset_check(d, p->path, p->message) : status;
}

hg_status hg__import_tu(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message)
{
	struct tu_files p = {.path = paths[0], .message = message};
	(void)count;
	HG__TRY(hg__import_configure(config, &p.config, message));
	HG__TRY(find_stem(&p));
	HG__TRY(hg_dataset_new(dataset, message));
	const hg_status status = read_all(&p, *dataset);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}
