/* Edge lists as SNAP publishes them: one "source destination [weight]" per line, comments behind # or %, ids of any size and with gaps. Several files are read as
 * one list. Nodes are numbered by ascending id; the ids are kept as orig_id where they are not 0 .. n-1 already. Repeated edges become one (weights add up). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "import/importers.h"
#include "import/lines.h"

/* Edges as the user wrote them. */
struct list {
	int64_t m, capacity;
	int64_t *source, *destination;
	float *weight; /* NULL: two columns */
	int columns;   /* 0: no edge seen yet */
	int64_t largest;
};

static void free_list(struct list *list)
{
	free(list->source);
	free(list->destination);
	free(list->weight);
}

static hg_status grow(struct list *list, char *message)
{
	if (list->m < list->capacity)
		return HG_OK;
	const int64_t capacity = list->capacity + list->capacity / 2 + 4096;
	HG__TRY(hg__data_grow((void **)&list->source, capacity, sizeof *list->source, "the edge list", message));
	HG__TRY(hg__data_grow((void **)&list->destination, capacity, sizeof *list->destination, "the edge list", message));
	if (list->columns == 3)
		HG__TRY(hg__data_grow((void **)&list->weight, capacity, sizeof *list->weight, "the edge weights", message));
	list->capacity = capacity;
	return HG_OK;
}

static hg_status add_line(struct list *list, const struct lines *lines, const char *line)
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
	const char *expected = list->columns == 2 ? "expected two columns as before" : "expected source, destination and a finite weight";
	if (columns == list->columns && columns == 3)
		HG__TRY(hg__lines_number(lines, line, expected, &at, &weight));
	if (columns != list->columns || *at)
		return hg__lines_fail(lines, expected, line);
	HG__TRY(grow(list, lines->message));
	list->source[list->m] = source;
	list->destination[list->m] = destination;
	if (list->weight)
		list->weight[list->m] = weight;
	list->m++;
	const int64_t larger = source > destination ? source : destination;
	list->largest = larger > list->largest ? larger : list->largest;
	return HG_OK;
}

/* A .csv may name its columns in the first line. */
static int is_heading(const struct lines *lines, const char *at)
{
	return lines->number == 1 && strstr(lines->path, ".csv") && ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '"');
}

static hg_status read_file(struct list *list, const char *path, const hg_progress *progress, char *message)
{
	struct lines lines;
	char *line = NULL;
	hg_status status = hg__lines_open(&lines, path, progress, message);
	while (status == HG_OK) {
		status = hg__lines_next(&lines, &line);
		if (status < 0 || !line)
			break;
		const char *at = hg__skip_separators(line);
		if (*at && *at != '#' && *at != '%' && !is_heading(&lines, at))
			status = add_line(list, &lines, at);
	}
	hg__lines_close(&lines);
	return status;
}

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* ids [count] := the ids that occur, ascending. Where the largest id is not far beyond the number of edges by marking, else by sorting. */
static hg_status distinct_ids(const struct list *list, int64_t **ids, int64_t *count, char *message)
{
	const int64_t all = 2 * list->m;
	*count = 0;
	if (list->largest < 8 * all) {
		unsigned char *seen = calloc((size_t)list->largest + 2, 1);
		if (!seen)
			return hg__data_fail(message, HG_ERR_NOMEM, "out of memory: node ids need %" PRId64 " bytes", list->largest + 1);
		for (int64_t e = 0; e < list->m; e++)
			seen[list->source[e]] = seen[list->destination[e]] = 1;
		for (int64_t id = 0; id <= list->largest; id++)
			*count += seen[id];
		const hg_status status = hg__data_alloc(*count, sizeof **ids, "node ids", (void **)ids, message);
		for (int64_t id = 0, k = 0; status == HG_OK && id <= list->largest; id++)
			if (seen[id])
				(*ids)[k++] = id;
		free(seen);
		return status;
	}
	HG__TRY(hg__data_alloc(all, sizeof **ids, "node ids", (void **)ids, message));
	memcpy(*ids, list->source, (size_t)list->m * sizeof **ids);
	memcpy(*ids + list->m, list->destination, (size_t)list->m * sizeof **ids);
	qsort(*ids, (size_t)all, sizeof **ids, ascending);
	for (int64_t k = 0; k < all; k++)
		if (*count == 0 || (*ids)[*count - 1] != (*ids)[k])
			(*ids)[(*count)++] = (*ids)[k];
	return HG_OK;
}

/* Place of an id among the ids, by bisection. */
static int32_t number_of(const int64_t *ids, int64_t count, int64_t id)
{
	int64_t low = 0, high = count - 1;
	while (low < high) {
		const int64_t middle = (low + high) / 2;
		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return (int32_t)low;
}

static hg_status number_nodes(struct list *list, hg_dataset *d, struct hg__coo *coo, char *message)
{
	int64_t *ids = NULL;
	HG__TRY(distinct_ids(list, &ids, &d->nodes, message));
	const int identity = d->nodes - 1 == list->largest || list->m == 0;
	d->orig_id = ids;
	if (d->nodes > INT32_MAX)
		return hg__data_fail(message, HG_ERR_RANGE, "edges: %" PRId64 " nodes, at most 2147483647 are possible", d->nodes);
	coo->rows = coo->cols = d->nodes;
	HG__TRY(hg__coo_reserve(coo, list->m, list->columns == 3, message));
	for (int64_t e = 0; e < list->m; e++) {
		const int32_t source = identity ? (int32_t)list->source[e] : number_of(ids, d->nodes, list->source[e]);
		const int32_t destination = identity ? (int32_t)list->destination[e] : number_of(ids, d->nodes, list->destination[e]);
		HG__TRY(hg__coo_add(coo, destination, source, list->weight ? list->weight[e] : 1, message));
	}
	if (identity) {
		free(d->orig_id);
		d->orig_id = NULL;
	}
	return HG_OK;
}

static hg_status build(struct list *list, hg_dataset *d, char *message)
{
	struct hg__coo coo = {0};
	struct hg__sparse m = {0};
	hg_status status = number_nodes(list, d, &coo, message);
	if (status == HG_OK)
		status = hg__coo_to_sparse(&coo, HG__MERGE_SUM, &m, message);
	hg__coo_free(&coo);
	HG__TRY(status);
	hg__sparse_drop_ones(&m);
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	d->weight = m.value;
	return HG_OK;
}

hg_status hg__import_edges(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message)
{
	struct list list = {.largest = -1};
	HG__TRY(hg_dataset_new(dataset, message));
	hg_status status = hg__import_name(*dataset, paths[0], message);
	for (int k = 0; status == HG_OK && k < count; k++)
		status = read_file(&list, paths[k], progress, message);
	if (status == HG_OK)
		status = build(&list, *dataset, message);
	if (status == HG_OK)
		status = hg_dataset_check(*dataset, paths[0], message);
	free_list(&list);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}
