/* Read the text of the GIN format: the number of graphs; for each graph a line "nodes label", and
 * for each of its nodes a line "tag m v1 ... vm" with the node's m neighbours, from 0 within the
 * graph, which any number of attributes may follow. */
#include <inttypes.h>
#include <stdlib.h>

#include "import/gin.h"

void hg__gin_free(struct hg__gin_graphs *g)
{
	free(g->label);
	free(g->end);
	free(g->tag);
	free(g->attribute);
	hg__coo_free(&g->coo);
}

static hg_status next_line(struct lines *lines, const char **at)
{
	char *line = NULL;
	do {
		HG__TRY(hg__lines_next(lines, &line));
		*at = line ? hg__skip_separators(line) : NULL;
	} while (*at && !**at);
	return HG_OK;
}

static hg_status add_graph(struct hg__gin_graphs *g, int64_t label, int64_t end, char *message)
{
	if (g->count == g->graph_room) {
		const int64_t room = g->graph_room + g->graph_room / 2 + 256;
		HG__TRY(hg__data_grow((void **)&g->label, room, sizeof *g->label, "graphs", message));
		HG__TRY(hg__data_grow((void **)&g->end, room, sizeof *g->end, "graphs", message));
		g->graph_room = room;
	}
	g->label[g->count] = label;
	g->end[g->count++] = end;
	return HG_OK;
}

static hg_status add_tag(struct hg__gin_graphs *g, int64_t tag, char *message)
{
	if (g->nodes == g->node_room) {
		const int64_t room = g->node_room + g->node_room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&g->tag, room, sizeof *g->tag, "tags of nodes", message));
		g->node_room = room;
	}
	g->tag[g->nodes] = tag;
	return HG_OK;
}

/* The rest of a node's line. */
static hg_status add_attributes(struct hg__gin_graphs *g, const struct lines *lines,
                                const char *line, const char *at)
{
	int64_t width = 0;
	for (; *at; width++) {
		if (g->attributes == g->attribute_room) {
			const int64_t room = g->attribute_room + g->attribute_room / 2 + 1024;
			HG__TRY(hg__data_grow((void **)&g->attribute, room, sizeof *g->attribute, "attributes",
			                      lines->message));
			g->attribute_room = room;
		}
		HG__TRY(hg__lines_number(lines, line, "expected finite attributes after the neighbours",
		                         &at, &g->attribute[g->attributes]));
		g->attributes++;
	}
	if (g->nodes > 0 && width != g->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " numbers after the neighbours, expected "
		                     "%" PRId64 " attributes as before",
		                     lines->path, lines->number, width, g->width);
	g->width = width;
	return HG_OK;
}

/* The line of node `node` of a graph that has `nodes` nodes, the first of which is `first`. */
static hg_status add_node(struct hg__gin_graphs *g, const struct lines *lines, const char *line,
                          int64_t first, int64_t nodes)
{
	static const char expected[] = "expected \"tag m v1 ... vm\"",
	                  range[] = "expected numbers of 64 bits";
	const char *at = line;
	int64_t tag = 0, degree = 0, v = 0;
	HG__TRY(hg__lines_integer(lines, line, expected, range, &at, &tag));
	HG__TRY(hg__lines_integer(lines, line, expected, range, &at, &degree));
	for (int64_t k = 0; k < degree; k++) {
		HG__TRY(hg__lines_integer(lines, line, expected, range, &at, &v));
		if (v < 0 || v >= nodes)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": neighbour %" PRId64
			                     ": the nodes of this graph are 0 .. %" PRId64,
			                     lines->path, lines->number, v, nodes - 1);
		HG__TRY(
		    hg__coo_add(&g->coo, (int32_t)g->nodes, (int32_t)(first + v), 1.0f, lines->message));
	}
	if (degree < 0)
		return hg__lines_fail(lines, expected, line);
	HG__TRY(add_attributes(g, lines, line, at));
	HG__TRY(add_tag(g, tag, lines->message));
	g->nodes++;
	return HG_OK;
}

static hg_status read_graph(struct hg__gin_graphs *g, struct lines *lines)
{
	static const char expected[] = "expected \"nodes label\" of a graph";
	const int64_t first = g->nodes;
	const char *line = NULL, *at;
	int64_t nodes = 0, label = 0;
	HG__TRY(next_line(lines, &line));
	if (!line)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: ends after %" PRId64 " graphs, %" PRId64 " are declared",
		                     lines->path, g->count, g->declared);
	at = line;
	HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &nodes));
	HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &label));
	if (*at || nodes < 0)
		return hg__lines_fail(lines, expected, line);
	if (nodes > INT32_MAX - first)
		return hg__lines_fail(lines, "expected at most 2147483647 nodes in all graphs", line);
	for (int64_t i = 0; i < nodes; i++) {
		HG__TRY(next_line(lines, &line));
		if (!line)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s: ends in graph %" PRId64 ", after %" PRId64 " of its %" PRId64
			                     " nodes",
			                     lines->path, g->count, i, nodes);
		HG__TRY(add_node(g, lines, line, first, nodes));
	}
	return add_graph(g, label, g->nodes, lines->message);
}

static hg_status read_text(struct lines *lines, void *to)
{
	static const char expected[] = "expected the number of graphs";
	struct hg__gin_graphs *g = to;
	const char *line = NULL, *at;
	HG__TRY(next_line(lines, &line));
	at = line ? line : "";
	HG__TRY(hg__lines_integer(lines, at, expected, expected, &at, &g->declared));
	if (*at || g->declared < 0)
		return hg__lines_fail(lines, expected, line);
	HG__TRY(hg__coo_reserve(&g->coo, 1024, 0, lines->message));
	HG__TRY(add_graph(g, 0, 0, lines->message)); /* so that both arrays exist without graphs */
	g->count = 0;
	while (g->count < g->declared)
		HG__TRY(read_graph(g, lines));
	HG__TRY(next_line(lines, &line));
	if (line)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": a line after the %" PRId64 " declared graphs",
		                     lines->path, lines->number, g->declared);
	g->coo.rows = g->coo.cols = g->nodes;
	return HG_OK;
}

hg_status hg__gin_read(const struct hg__gin_files *files, struct hg__gin_graphs *graphs)
{
	return hg__folder_text(&files->folder, files->text, read_text, graphs);
}
