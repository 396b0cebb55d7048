/* Read the graphs of METIS (Karypis, Kumar): a header "nodes edges [fmt [weights]]", then one line
 * for each node with its neighbours, from 1. fmt has up to three digits, 1 where the lines have, in
 * this order: the size of the node; its weights, as many as the header says (1); after each
 * neighbour the weight of the edge. Every edge is in the lists of both its nodes, and counts once
 * in the header. Lines that begin with % are comments; an empty line is a node without neighbours.
 *
 * Sizes and weights of nodes are left out, and a note says so. A partition (.part.K) is a file of
 * labels. */
#include <inttypes.h>
#include <string.h>

#include "graph/coo.h"
#include "import/run.h"

/* The line of a node with 100 million neighbours. */
#define LINE_BYTES ((size_t)1 << 30)

struct metis {
	int64_t nodes, edges;
	int64_t skipped;  /* numbers before the neighbours: size and weights of the node */
	int edge_weights; /* a weight follows each neighbour */
	struct hg__coo coo;
};

static const char node_range[] = "expected numbers of at most 9223372036854775807";

/* fmt as text, "011": one digit for each kind, the first ones may be missing. */
static hg_status parse_format(const struct lines *lines, const char *line, const char **at,
                              int flag[3])
{
	const size_t digits = strspn(*at, "01");
	if (digits < 1 || digits > 3 || ((*at)[digits] && !strchr(" \t", (*at)[digits])))
		return hg__lines_fail(lines, "expected fmt to be three digits 0 or 1", line);
	for (size_t k = 0; k < digits; k++)
		flag[3 - digits + k] = (*at)[k] == '1';
	*at = hg__skip_separators(*at + digits);
	return HG_OK;
}

static hg_status parse_header(const struct lines *lines, const char *line, struct metis *m)
{
	static const char expected[] = "expected \"nodes edges [fmt [weights]]\"";
	const char *at = line;
	int flag[3] = {0, 0, 0};
	int64_t weights = 1;
	HG__TRY(hg__lines_integer(lines, line, expected, node_range, &at, &m->nodes));
	HG__TRY(hg__lines_integer(lines, line, expected, node_range, &at, &m->edges));
	if (*at)
		HG__TRY(parse_format(lines, line, &at, flag));
	if (*at)
		HG__TRY(hg__lines_integer(lines, line, expected, node_range, &at, &weights));
	if (*at || m->nodes < 0 || m->edges < 0 || weights < 0 || weights > 1000000)
		return hg__lines_fail(lines, expected, line);
	if (m->nodes > INT32_MAX)
		return hg__lines_fail(lines, "expected at most 2147483647 nodes", line);
	m->skipped = flag[0] + (flag[1] ? weights : 0);
	m->edge_weights = flag[2];
	m->coo.rows = m->coo.cols = m->nodes;
	return hg__coo_reserve(&m->coo, 1024, m->edge_weights, lines->message);
}

static hg_status add_node(const struct lines *lines, const char *line, int64_t node,
                          struct metis *m)
{
	const char *expected = m->edge_weights ? "expected neighbours and weights in turn"
	                                       : "expected the numbers of neighbours";
	const char *at = line;
	int64_t number = 0;
	float weight = 1;
	for (int64_t k = 0; k < m->skipped; k++)
		HG__TRY(hg__lines_integer(lines, line, "expected the size and weights of the node first",
		                          node_range, &at, &number));
	while (*at) {
		HG__TRY(hg__lines_integer(lines, line, expected, node_range, &at, &number));
		if (m->edge_weights)
			HG__TRY(hg__lines_number(lines, line, expected, &at, &weight));
		if (number < 1 || number > m->nodes || number == node + 1)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": neighbour %" PRId64 " of node %" PRId64
			                     ", expected another of the nodes 1 .. %" PRId64,
			                     lines->path, lines->number, number, node + 1, m->nodes);
		HG__TRY(hg__coo_add(&m->coo, (int32_t)node, (int32_t)(number - 1), weight, lines->message));
	}
	return HG_OK;
}

static hg_status read_lines(struct lines *lines, void *to)
{
	struct metis *m = to;
	char *line = NULL;
	int64_t node = -1; /* -1: the header is next */
	lines->most = LINE_BYTES;
	for (;;) {
		HG__TRY(hg__lines_next(lines, &line));
		if (!line)
			break;
		const char *at = hg__skip_separators(line);
		if (*at == '%' || (node < 0 && !*at) || (node == m->nodes && !*at))
			continue;
		if (node >= 0 && node == m->nodes)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": a line after the %" PRId64 " declared nodes",
			                     lines->path, lines->number, m->nodes);
		HG__TRY(node < 0 ? parse_header(lines, at, m) : add_node(lines, at, node, m));
		node++;
	}
	if (node < 0)
		return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s: ends before its header",
		                     lines->path);
	if (node < m->nodes)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: ends after %" PRId64 " nodes, %" PRId64 " are declared",
		                     lines->path, node, m->nodes);
	return HG_OK;
}

/* Both directions of every edge must be there, with the same weight. */
static hg_status check_edges(const struct metis *m, const hg_dataset *d, const char *path,
                             char *message)
{
	int64_t i = 0, j = 0;
	if (d->edges < m->coo.m)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: %" PRId64 " neighbours are listed twice by the same node", path,
		                     m->coo.m - d->edges);
	if (hg__one_way(d, &i, &j) > 0)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: node %" PRId64 " lists node %" PRId64
		                     ", expected the reverse as well",
		                     path, i + 1, j + 1);
	/* some writers count both directions */
	if (m->edges > INT64_MAX / 2 || (2 * m->edges != d->edges && m->edges != d->edges))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: %" PRId64 " edges are declared, expected %" PRId64, path,
		                     m->edges, d->edges / 2);
	return HG_OK;
}

static hg_status read_all(struct hg__import *in)
{
	struct metis m = {0};
	hg_status status = hg__import_text(in, in->path, read_lines, &m);
	if (status == HG_OK)
		status = hg__coo_to_graph(&m.coo, HG__MERGE_SUM, in->d, in->message);
	if (status == HG_OK)
		status = check_edges(&m, in->d, in->path, in->message);
	if (status == HG_OK && m.skipped)
		hg__import_note(&in->config, "%s: sizes and weights of the nodes are not read", in->path);
	hg__coo_free(&m.coo);
	return status;
}

hg_status hg__import_metis(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
