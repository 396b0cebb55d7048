/* Read NAME_edge_labels.txt and NAME_edge_attributes.txt of a TU Dortmund dataset: line k belongs
 * to the edge in line k of NAME_A.txt, so the two directions of an edge have a line each. Both
 * files are optional. The labels may be any integers and are numbered by their rank, as those of
 * nodes are. Where edges have several labels, these become attributes, after those of the other
 * file. */
#include <inttypes.h>
#include <stdlib.h>

#include "import/distinct.h"
#include "import/edge_rows.h"
#include "import/tu.h"

/* float32 holds every whole number up to this one. */
#define WHOLE_MAX 16777216

/* Rows of integers, all of the same width. */
struct labels {
	int64_t *at;
	int64_t rows, width, count, room;
};

static hg_status add_label(struct labels *l, int64_t value, char *message)
{
	if (l->count == l->room) {
		const int64_t room = l->room + l->room / 2 + 1024;
		HG__TRY(hg__data_grow((void **)&l->at, room, sizeof *l->at, "labels of edges", message));
		l->room = room;
	}
	l->at[l->count++] = value;
	return HG_OK;
}

static hg_status add_labels(const struct lines *lines, const char *line, void *to)
{
	struct labels *l = to;
	int64_t width = 0;
	for (const char *at = line; *at; width++) {
		int64_t value = 0;
		HG__TRY(hg__lines_integer(lines, line, "expected whole numbers",
		                          "expected numbers of 64 bits", &at, &value));
		HG__TRY(add_label(l, value, lines->message));
	}
	if (l->rows > 0 && width != l->width)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " labels, expected %" PRId64 " as before",
		                     lines->path, lines->number, width, l->width);
	l->width = width;
	l->rows++;
	return HG_OK;
}

/* Note the numbers that labels get where these are not their own. */
static void note_ranks(const struct hg__tu_files *p, const struct labels *l,
                       const hg_dataset *ranked)
{
	int64_t low = INT64_MAX, high = INT64_MIN;
	int same = 1;
	for (int64_t k = 0; k < l->rows; k++) {
		low = l->at[k] < low ? l->at[k] : low;
		high = l->at[k] > high ? l->at[k] : high;
		same = same && l->at[k] == ranked->label[k];
	}
	if (!same)
		hg__import_note(&p->config,
		                "%s_edge_labels.txt: the %" PRId32 " labels of edges, %" PRId64
		                " to %" PRId64 ", are numbered from 0 in this order",
		                p->path, ranked->classes, low, high);
}

/* One label for each edge. */
static hg_status rank_labels(const struct hg__tu_files *p, const struct labels *l,
                             struct hg__edge_data *list, hg_dataset *d)
{
	hg_dataset ranked = {0};
	const hg_status status = hg__distinct_labels(l->at, l->rows, &ranked, p->message);
	list->label = ranked.label; /* the caller frees it, after a failure, too */
	d->edge_classes = ranked.classes;
	if (status == HG_OK)
		note_ranks(p, l, &ranked);
	return status;
}

/* Several labels for each edge: columns after the attributes, [l->rows, all]. */
static hg_status append_labels(const struct hg__tu_files *p, const struct labels *l,
                               struct hg__edge_data *list)
{
	const int64_t old = list->features, all = old + l->width;
	float *x = NULL;
	HG__TRY(hg__data_alloc(l->rows, (size_t)all * sizeof *x, "attributes of edges", (void **)&x,
	                       p->message));
	for (int64_t k = 0; k < l->rows; k++)
		for (int64_t c = 0; c < all; c++)
			x[k * all + c] =
			    c < old ? list->feat[k * old + c] : (float)l->at[k * l->width + c - old];
	free(list->feat);
	list->feat = x;
	list->features = all;
	hg__import_note(&p->config,
	                "%s_edge_labels.txt: has %" PRId64
	                " labels for each edge, which become attributes of edges",
	                p->path, l->width);
	return HG_OK;
}

static hg_status expect_exact(const struct hg__tu_files *p, const struct labels *l)
{
	for (int64_t k = 0; l->width > 1 && k < l->count; k++)
		if (l->at[k] > WHOLE_MAX || l->at[k] < -WHOLE_MAX)
			return hg__data_fail(p->message, HG_ERR_RANGE,
			                     "%s_edge_labels.txt: label %" PRId64 " of edge %" PRId64
			                     " is beyond 2^24, which an attribute cannot hold exactly",
			                     p->path, l->at[k], k / l->width + 1);
	return HG_OK;
}

/* Read both files as a list in the order of NAME_A.txt. */
static hg_status read_list(const struct hg__tu_files *p, struct labels *l, struct hg__numbers *a,
                           struct hg__edge_data *list, hg_dataset *d)
{
	HG__TRY(hg__tu_read(p, "edge_labels", 1, add_labels, l));
	HG__TRY(hg__tu_read(p, "edge_attributes", 1, hg__numbers_add, a));
	if (hg__tu_has(p, "edge_labels"))
		HG__TRY(hg__tu_expect(p, "edge_labels", l->rows, list->edges, "edges"));
	if (hg__tu_has(p, "edge_attributes"))
		HG__TRY(hg__tu_expect(p, "edge_attributes", a->rows, list->edges, "edges"));
	HG__TRY(expect_exact(p, l));
	list->feat = a->rows ? a->at : NULL;
	list->features = a->rows ? a->width : 0;
	a->at = a->rows ? NULL : a->at;
	if (l->width > 1)
		return append_labels(p, l, list);
	return l->rows ? rank_labels(p, l, list, d) : HG_OK;
}

int hg__tu_has_edge_data(const struct hg__tu_files *p)
{
	return hg__tu_has(p, "edge_labels") || hg__tu_has(p, "edge_attributes");
}

hg_status hg__tu_edge_data(const struct hg__tu_files *p, const int64_t *origin, int64_t edges,
                           hg_dataset *d)
{
	struct labels l = {0};
	struct hg__numbers a = {0};
	struct hg__edge_data list = {.edges = edges};
	char shown[HG_DATA_MESSAGE];
	hg_status status = read_list(p, &l, &a, &list, d);
	hg__folder_show(&p->folder, "_A.txt", shown);
	if (status == HG_OK)
		status = hg__import_edge_rows(&p->config, shown, &list, origin, d, p->message);
	free(l.at);
	free(a.at);
	hg__edge_data_free(&list);
	return status;
}
