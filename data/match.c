/* Match the rows of a file with those of a dataset. */
#include "match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_of(const hg_dataset *d)
{
	return d->graph_ptr ? "graph" : "node";
}

/* ---- by ids ---- */

/* The id of row `row` of the dataset: of a node as the source numbers it, of a graph its number. */
struct key {
	int64_t id, row;
};

static int ascending(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

/* keys [n] := the ids of the dataset, ascending; no id may occur twice. */
static hg_status sort_keys(const hg_dataset *d, int64_t n, const char *path, struct key *keys,
                           char *message)
{
	int sorted = 1;
	for (int64_t i = 0; i < n; i++) {
		keys[i] = (struct key){d->graph_ptr ? i : hg_dataset_node(d, i), i};
		sorted = sorted && (i == 0 || keys[i - 1].id < keys[i].id);
	}
	if (!sorted)
		qsort(keys, (size_t)n, sizeof *keys, ascending);
	for (int64_t k = 1; k < n; k++)
		if (keys[k].id == keys[k - 1].id)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s:1: has a column of ids, but several nodes of %s have the id "
			                     "%" PRId64 ", as in each graph of a batch: leave the ids out",
			                     path, hg__data_name(d), keys[k].id);
	return HG_OK;
}

/* Ids of nodes do not name graphs, nor the other way round. */
static hg_status expect_kind(const hg_dataset *d, const char *path, const struct hg__row_ids *ids,
                             char *message)
{
	const int either = strcmp(ids->heading, "id") == 0,
	          of_graphs = strcmp(ids->heading, "graph_id") == 0;
	if (either || of_graphs == (d->graph_ptr != NULL))
		return HG_OK;
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s:1: the first column is %s, expected id or the ids of %ss", path,
	                     ids->heading, kind_of(d));
}

static hg_status expect_all(const struct hg__match *m, int64_t n, const char *path, char *message)
{
	int64_t missing = 0, first = 0;
	for (int64_t i = n - 1; i >= 0; i--)
		if (m->place[i] < 0) {
			missing++;
			first = i;
		}
	if (missing == 0)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: no row has the id %" PRId64 " of a %s; %" PRId64 " of %" PRId64
	                     " %ss have no row",
	                     path, m->d->graph_ptr ? first : hg_dataset_node(m->d, first),
	                     kind_of(m->d), missing, n, kind_of(m->d));
}

static hg_status place_rows(const struct hg__match *m, const struct key *keys, int64_t n,
                            const char *path, const struct hg__row_ids *ids, char *message)
{
	for (int64_t i = 0; i < n; i++)
		m->place[i] = -1;
	for (int64_t k = 0; k < ids->count; k++) {
		const struct key wanted = {ids->id[k], 0};
		const struct key *found = bsearch(&wanted, keys, (size_t)n, sizeof *keys, ascending);
		if (!found)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": no %s has the id %" PRId64, path, ids->line[k],
			                     kind_of(m->d), ids->id[k]);
		if (m->place[found->row] >= 0)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": the id %" PRId64
			                     " occurs again, it is already in line %" PRId64,
			                     path, ids->line[k], ids->id[k], ids->line[m->place[found->row]]);
		m->place[found->row] = k;
	}
	return expect_all(m, n, path, message);
}

static hg_status match_ids(struct hg__match *m, const char *path, const struct hg__row_ids *ids,
                           char *message)
{
	const int64_t n = hg__data_labelled(m->d);
	struct key *keys = NULL;
	HG__TRY(expect_kind(m->d, path, ids, message));
	HG__TRY(hg__data_alloc(n, sizeof *m->place, "places of rows", (void **)&m->place, message));
	HG__TRY(hg__data_alloc(n, sizeof *keys, "ids", (void **)&keys, message));
	hg_status status = sort_keys(m->d, n, path, keys, message);
	if (status == HG_OK)
		status = place_rows(m, keys, n, path, ids, message);
	free(keys);
	return status;
}

/* ---- by the order ---- */

hg_status hg__match_rows(const hg_dataset *d, const char *path, int64_t rows,
                         const struct hg__row_ids *ids, struct hg__match *m, char *message)
{
	const int64_t n = hg__data_labelled(d);
	int64_t largest = -1, least = 0;
	*m = (struct hg__match){.d = d};
	if (*ids->heading)
		return match_ids(m, path, ids, message);
	for (int64_t i = 0; d->orig_id && i < d->nodes; i++) {
		largest = d->orig_id[i] > largest ? d->orig_id[i] : largest;
		least = d->orig_id[i] < least ? d->orig_id[i] : least;
	}
	m->by_number = rows != n && !d->graph_ptr && d->orig_id && least >= 0 && rows > largest;
	if (rows == n || m->by_number)
		return HG_OK;
	if (!d->graph_ptr && d->orig_id)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: %" PRId64 " rows, expected %" PRId64
		                     ", one for each node, or more than the largest node number %" PRId64,
		                     path, rows, n, largest);
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: %" PRId64 " rows, expected %" PRId64 ", one for each %s", path, rows,
	                     n, kind_of(d));
}

int64_t hg__match_row(const struct hg__match *m, int64_t i)
{
	if (m->place)
		return m->place[i];
	if (m->by_number)
		return m->d->orig_id[i];
	return !m->d->graph_ptr && m->d->order ? m->d->order[i] : i;
}

void hg__match_free(struct hg__match *m)
{
	free(m->place);
	m->place = NULL;
}
