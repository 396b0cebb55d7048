/* Chooses the graphs of a batch for which attention uses dense counts. */
#include "core/plan_dense.h"

static int64_t nodes_of(const struct hg__dense_source *s, int64_t graph)
{
	return s->ptr[graph + 1] - s->ptr[graph];
}

static int64_t entries_of(const struct hg__dense_source *s, int64_t graph)
{
	return s->rowptr[s->ptr[graph + 1]] - s->rowptr[s->ptr[graph]];
}

static int64_t tiles_of(const struct hg__dense_source *s, int64_t graph)
{
	const int64_t side = hg__dense_side(nodes_of(s, graph));
	return side * side;
}

/* The entries that take the time of so many tiles. */
static double worth_of(int64_t tiles)
{
	return HG__DENSE_FILL * (double)tiles * HG__DENSE_TILE * HG__DENSE_TILE;
}

/* Counts the entries of one row of a graph. Returns the count of the column that occurs most often,
 * or INT64_MAX if an entry leaves the graph. Of graphs that are too large for dense counts, nothing
 * is counted. */
static int64_t count_row(const struct hg__dense_source *s, int64_t row, int64_t first,
                         int64_t nodes)
{
	int32_t count[HG__DENSE_NODES] = {0}, most = 0;
	for (int64_t e = s->rowptr[row]; e < s->rowptr[row + 1]; e++) {
		const int64_t j = s->col[e] - first;
		if (j < 0 || j >= nodes)
			return INT64_MAX;
		if (nodes <= HG__DENSE_NODES && ++count[j] > most)
			most = count[j];
	}
	return most;
}

/* Takes graphs out of the list in which an entry occurs too often. Returns 0 if one joins two
 * graphs. */
static int check_entries(hg_context *ctx, const struct hg__dense_source *s, uint8_t *listed)
{
	for (int64_t k = 0; k < s->graphs; k++)
		for (int64_t row = s->ptr[k]; row < s->ptr[k + 1]; row++) {
			const int64_t most = count_row(s, row, s->ptr[k], nodes_of(s, k));
			if (most == INT64_MAX) {
				hg__log(ctx, HG_LOG_DEBUG,
				        "graph: no dense counts: an entry of row %lld leaves graph %lld",
				        (long long)row, (long long)k);
				return 0;
			}
			listed[k] = listed[k] && most <= HG__DENSE_COUNT;
		}
	return 1;
}

/* Adds up what is listed and what is not. Returns the entries of the listed graphs. */
static int64_t add_up(const struct hg__dense_source *s, struct hg__dense_choice *c)
{
	int64_t entries = 0, most = 0;
	c->graphs = c->tiles = c->other_rows = c->other_entries = 0;
	for (int64_t k = 0; k < s->graphs; k++) {
		const int64_t nodes = nodes_of(s, k);
		if (!c->listed[k]) {
			c->other_rows += nodes;
			c->other_entries += entries_of(s, k);
			continue;
		}
		c->graphs++;
		c->tiles += tiles_of(s, k);
		entries += entries_of(s, k);
		most = nodes > most ? nodes : most;
	}
	c->most_nodes = (int32_t)most;
	return entries;
}

int hg__dense_choose(hg_context *ctx, const struct hg__dense_source *s, int64_t least,
                     struct hg__dense_choice *c)
{
	for (int64_t k = 0; k < s->graphs; k++)
		c->listed[k] = nodes_of(s, k) > 0 && nodes_of(s, k) <= HG__DENSE_NODES;
	if (s->col && !check_entries(ctx, s, c->listed))
		return 0;
	int64_t entries = add_up(s, c);
	if (c->graphs > 0 && c->other_rows == 0 && (double)entries >= worth_of(c->tiles))
		return 1;
	const int64_t able = c->graphs;
	for (int64_t k = 0; k < s->graphs; k++)
		c->listed[k] = c->listed[k] && (double)entries_of(s, k) >= worth_of(tiles_of(s, k));
	entries = add_up(s, c);
	const double saved = (double)entries - worth_of(c->tiles),
	             share = HG__DENSE_SHARE * (double)(entries + c->other_entries),
	             expected = share > (double)least ? share : (double)least;
	if (c->graphs > 0 && saved >= expected)
		return 1;
	hg__log(ctx, HG_LOG_DEBUG,
	        "graph: no dense counts: of %lld graphs %lld are small, and %lld of these full enough. "
	        "They would save %.0f entries, expected %.0f",
	        (long long)s->graphs, (long long)able, (long long)c->graphs, saved, expected);
	return 0;
}
