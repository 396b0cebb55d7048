/* Read edge lists, and decide whether the first line of a file is a header or an edge. */
#include "graph/coo.h"
#include "import/edges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/header.h"
#include "import/lines.h"

void hg__edges_free(struct edge_list *list)
{
	free(list->source);
	free(list->destination);
	free(list->weight);
}

static hg_status grow_list(struct edge_list *list, char *message)
{
	if (list->m < list->capacity)
		return HG_OK;
	const int64_t capacity = list->capacity + list->capacity / 2 + 4096;
	const size_t size = list->wide ? sizeof(int64_t) : sizeof(uint32_t);
	HG__TRY(hg__data_grow(&list->source, capacity, size, "the edge list", message));
	HG__TRY(hg__data_grow(&list->destination, capacity, size, "the edge list", message));
	if (list->columns == 3)
		HG__TRY(hg__data_grow((void **)&list->weight, capacity, sizeof *list->weight,
		                      "the edge weights", message));
	list->capacity = capacity;
	return HG_OK;
}

/* Make the ids 64 bits wide, from the last one on. */
static hg_status widen_list(struct edge_list *list, char *message)
{
	void **const ends[] = {&list->source, &list->destination};
	for (int k = 0; k < 2 && list->capacity > 0; k++) {
		HG__TRY(hg__data_grow(ends[k], list->capacity, sizeof(int64_t), "the edge list", message));
		char *bytes = *ends[k];
		for (int64_t e = list->m - 1; e >= 0; e--) {
			uint32_t narrow;
			memcpy(&narrow, bytes + e * (int64_t)sizeof narrow, sizeof narrow);
			const int64_t id = narrow;
			memcpy(bytes + e * (int64_t)sizeof id, &id, sizeof id);
		}
	}
	list->wide = 1;
	return HG_OK;
}

static void set_end(const struct edge_list *list, void *ends, int64_t e, int64_t id)
{
	if (list->wide)
		((int64_t *)ends)[e] = id;
	else
		((uint32_t *)ends)[e] = (uint32_t)id;
}

static hg_status add_line(struct edge_list *list, const struct lines *lines, const char *line)
{
	int64_t source = 0, destination = 0;
	float weight = 1;
	const char *at = line, *range = "expected node numbers from 0 to 9223372036854775807";
	HG__TRY(hg__lines_integer(lines, line, "expected two node numbers", range, &at, &source));
	HG__TRY(hg__lines_integer(lines, line, "expected two node numbers", range, &at, &destination));
	if (source < 0 || destination < 0)
		return hg__lines_fail(lines, range, line);
	const int columns = *at ? 3 : 2;
	if (list->columns == 0)
		list->columns = columns;
	const char *expected = list->columns == 2 ? "expected two columns as before"
	                                          : "expected source, destination and a finite weight";
	if (columns == list->columns && columns == 3)
		HG__TRY(hg__lines_number(lines, line, expected, &at, &weight));
	if (columns != list->columns || *at)
		return hg__lines_fail(lines, expected, line);
	const int64_t larger = source > destination ? source : destination;
	if (larger > UINT32_MAX && !list->wide)
		HG__TRY(widen_list(list, lines->message));
	HG__TRY(grow_list(list, lines->message));
	set_end(list, list->source, list->m, source);
	set_end(list, list->destination, list->m, destination);
	if (list->weight)
		list->weight[list->m] = weight;
	list->m++;
	list->largest = larger > list->largest ? larger : list->largest;
	return HG_OK;
}

/* A .csv may name its columns in the first line. */
static int is_heading(const struct lines *lines, const char *at)
{
	return lines->number == 1 && strstr(lines->path, ".csv") &&
	       ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '"');
}

/* ---- the first line of a file ---- */

/* The first line of a file. Only the lines after it tell whether it is a header, so until then it
 * is kept here; as long as it may be an edge it also has its position in the list. */
struct first_line {
	struct hg__first first;
	int64_t line;  /* its line number; 0: no line was read yet */
	int64_t begin; /* the position of the file's first edge in the list */
	int in_list;
	char text[61]; /* the line, cut, for messages */
	/* the refusal of the file if the line cannot be an edge and is not a header either */
	char complaint[HG_DATA_MESSAGE];
};

static struct hg__first parse_first(const char *at)
{
	struct hg__first f = {{0, 0, 0}, 0};
	for (; *at && f.numbers < 3; f.numbers++) {
		int64_t value = 0;
		if (!hg__lines_whole(&at, &value))
			return (struct hg__first){{0, 0, 0}, 0};
		f.value[f.numbers] = value;
	}
	return *at || f.numbers < 2 ? (struct hg__first){{0, 0, 0}, 0} : f;
}

static int columns_of(const char *at)
{
	int columns = 0;
	for (; *at; columns++) {
		at += strcspn(at, " \t,");
		at = hg__skip_separators(at);
	}
	return columns;
}

/* Test whether the line is an edge among edges of `columns` columns, and keep the complaint if it
 * is not. */
static hg_status try_line(struct first_line *o, int columns, const struct lines *lines,
                          const char *at)
{
	struct edge_list probe = {.columns = columns, .largest = -1};
	const hg_status status = add_line(&probe, lines, at);
	hg__edges_free(&probe);
	if (status == HG_ERR_NOMEM)
		return status;
	if (status < 0)
		snprintf(o->complaint, sizeof o->complaint, "%s", lines->message);
	return HG_OK;
}

/* Keep the first line of a file. With --header yes it is not an edge; otherwise it enters the list
 * where its number of columns allows that. */
static hg_status keep_first_line(struct first_line *o, struct edge_list *list,
                                 const struct lines *lines, const char *at, hg_header header)
{
	o->line = lines->number;
	o->begin = list->m;
	o->first = parse_first(at);
	snprintf(o->text, sizeof o->text, "%s", at);
	if (header == HG_HEADER_YES)
		return HG_OK;
	if (list->columns && o->first.numbers && columns_of(at) != list->columns)
		return try_line(o, list->columns, lines, at);
	o->in_list = 1;
	return add_line(list, lines, at);
}

/* Called for the second line of the first file. If it has another number of columns than the first
 * line, the first line is not an edge. */
static hg_status compare_columns(struct first_line *o, struct edge_list *list,
                                 const struct lines *lines, const char *at)
{
	if (!o->in_list || list->m != 1 || !o->first.numbers || columns_of(at) == list->columns)
		return HG_OK;
	HG__TRY(try_line(o, list->columns, lines, at));
	hg__edges_free(list);
	*list = (struct edge_list){.largest = -1};
	o->in_list = 0;
	return HG_OK;
}

/* Remove the first line, which is a header, from the list. */
static void remove_edge(struct edge_list *list, int64_t at)
{
	const size_t after = (size_t)(list->m - at - 1),
	             size = list->wide ? sizeof(int64_t) : sizeof(uint32_t), begin = (size_t)at * size;
	char *const ends[] = {list->source, list->destination};
	for (int k = 0; k < 2; k++)
		memmove(ends[k] + begin, ends[k] + begin + size, after * size);
	if (list->weight)
		memmove(list->weight + at, list->weight + at + 1, after * sizeof *list->weight);
	list->m--;
	list->largest = -1;
	for (int64_t e = 0; e < list->m; e++)
		for (int k = 0; k < 2; k++) {
			const int64_t id = hg__edge_end(list, ends[k], e);
			list->largest = id > list->largest ? id : list->largest;
		}
}

/* Count the edges and the ids after the first line of the file. */
static hg_status count_rest(const struct edge_list *list, const struct first_line *o,
                            struct hg__rest *rest, char *message)
{
	int64_t *ids = NULL;
	*rest = (struct hg__rest){list->m - o->begin - o->in_list, 0, 0, -1};
	if (!rest->edges || !hg__header_possible(&o->first, rest->edges))
		return HG_OK;
	const hg_status status =
	    hg__edges_ids(list, o->begin + o->in_list, &ids, &rest->nodes, message);
	if (status == HG_OK) {
		rest->least = ids[0];
		rest->largest = ids[rest->nodes - 1];
	}
	free(ids);
	return status;
}

static hg_status accept_header(struct edge_list *list, const struct first_line *o,
                               const struct hg__counts *c, const struct hg__rest *rest,
                               const char *path, const hg_import_config *config, char *message)
{
	if (!hg__nodes_plausible(c->nodes, rest->edges))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": the header counts %" PRId64 " nodes for %" PRId64
		                     " edges: not a graph",
		                     path, o->line, c->nodes, rest->edges);
	hg__import_note(config,
	                "%s:%" PRId64 ": \"%s\" is read as a header, not as an edge: %" PRId64
	                " nodes and %" PRId64 " edges",
	                path, o->line, o->text, c->nodes, c->edges);
	if (o->in_list)
		remove_edge(list, o->begin);
	list->declared = c->nodes > list->declared ? c->nodes : list->declared;
	return HG_OK;
}

static hg_status refuse_counts(const struct first_line *o, const struct edge_list *list,
                               const char *path, char *message)
{
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s:%" PRId64 ": the header \"%s\" does not count what follows: %" PRId64
	                     " edges",
	                     path, o->line, o->text, list->m - o->begin);
}

static hg_status refuse_ambiguous(const struct first_line *o, const struct hg__counts *c,
                                  const char *path, char *message)
{
	return hg__data_fail(
	    message, HG_ERR_FORMAT,
	    "%s:%" PRId64 ": \"%s\" may be a header (%" PRId64 " nodes and %" PRId64
	    " edges, which fits what follows) or an edge from node %" PRId64 " to node %" PRId64
	    ": choose one (h5convert: --header yes or --header no)",
	    path, o->line, o->text, c->nodes, c->edges, o->first.value[0], o->first.value[1]);
}

/* The whole file is read: decide what its first line was. */
static hg_status decide_first_line(struct edge_list *list, const struct first_line *o,
                                   const char *path, const hg_import_config *config, char *message)
{
	struct hg__rest rest;
	struct hg__counts counts = {0, 0};
	if (!o->line || config->header == HG_HEADER_NO)
		return HG_OK;
	HG__TRY(count_rest(list, o, &rest, message));
	if (config->header == HG_HEADER_YES) {
		if (o->first.numbers)
			return hg__header_fits(&o->first, &rest, &counts)
			           ? accept_header(list, o, &counts, &rest, path, config, message)
			           : refuse_counts(o, list, path, message);
		hg__import_note(config, "%s:%" PRId64 ": \"%s\" is skipped as a header", path, o->line,
		                o->text);
		return HG_OK;
	}
	const enum hg__line_is is =
	    rest.edges ? hg__header_decide(&o->first, &rest, o->in_list, &counts) : HG__LINE_EDGE;
	if (is == HG__LINE_HEADER)
		return accept_header(list, o, &counts, &rest, path, config, message);
	if (is == HG__LINE_EITHER)
		return refuse_ambiguous(o, &counts, path, message);
	return o->in_list ? HG_OK : hg__data_fail(message, HG_ERR_FORMAT, "%s", o->complaint);
}

static hg_status read_line(struct edge_list *list, struct first_line *o, const struct lines *lines,
                           const char *at, hg_header header)
{
	if (!o->line && header != HG_HEADER_NO)
		return keep_first_line(o, list, lines, at, header);
	if (o->line && header == HG_HEADER_AUTO)
		HG__TRY(compare_columns(o, list, lines, at));
	return add_line(list, lines, at);
}

hg_status hg__edges_read(struct edge_list *list, const char *path, const hg_import_config *config,
                         char *message)
{
	struct lines lines;
	struct first_line first_line = {.line = 0};
	char *line = NULL;
	hg_status status = hg__lines_open(&lines, path, config->progress, message);
	while (status == HG_OK) {
		status = hg__lines_next(&lines, &line);
		if (status < 0 || !line)
			break;
		const char *at = hg__skip_separators(line);
		if (*at && *at != '#' && *at != '%' && !is_heading(&lines, at))
			status = read_line(list, &first_line, &lines, at, config->header);
	}
	hg__lines_close(&lines);
	return status == HG_OK ? decide_first_line(list, &first_line, path, config, message) : status;
}
