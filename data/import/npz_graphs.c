/* Read numpy archives of many small graphs. */
#include "import/npz_graphs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/distinct.h"
#include "import/npz_edges.h"

static const char *const required[] = {"node_ptr", "edge_ptr", "edge_src", "edge_dst"};
#define REQUIRED ((int)(sizeof required / sizeof required[0]))

/* What is being read. */
struct graphs {
	const struct npz *npz;
	const hg_import_config *config;
	hg_dataset *d;
};

int hg__npz_is_graphs(const struct npz *npz)
{
	int found = 0;
	for (int k = 0; k < REQUIRED; k++)
		found += hg__npz_has(npz, required[k]);
	/* with some of them the others are missing */
	return found >= 2 && !hg__npz_has(npz, "adj_indptr");
}

/* The length of NAME in "y_NAME.npy"; 0: it is another member, or the name is too long. */
static size_t target_length(const char *member)
{
	static const char ending[] = ".npy";
	const size_t length = strlen(member), end = sizeof ending - 1;
	return strncmp(member, "y_", 2) == 0 && length > 2 + end && length < 60 &&
	               strcmp(member + length - end, ending) == 0
	           ? length - 2 - end
	           : 0;
}

int hg__npz_is_of_graphs(const struct npz *npz, const char *name)
{
	static const char *const others[] = {"node_label.npy", "node_attr.npy", "train_idx.npy",
	                                     "val_idx.npy", "test_idx.npy"};
	char member[64];
	for (int k = 0; k < REQUIRED; k++) {
		snprintf(member, sizeof member, "%s.npy", required[k]);
		if (strcmp(name, member) == 0)
			return 1;
	}
	for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
		if (strcmp(name, others[k]) == 0)
			return 1;
	return target_length(name) > 0 || hg__npz_is_of_edges(npz, name);
}

/* ---- arrays ---- */

static hg_status open_array(const struct graphs *in, const char *key, int rank, struct npy *a)
{
	char what[80];
	snprintf(what, sizeof what, "reading %s", key);
	HG__TRY(hg__data_step(in->config->progress, what, 0, 0, in->npz->message));
	return hg__npy_open(in->npz, key, rank, a);
}

static hg_status expect_rows(const struct npy *a, int64_t expected, const char *what)
{
	if (a->dim[0] == expected)
		return HG_OK;
	return hg__data_fail(a->message, HG_ERR_FORMAT,
	                     "%s: has %" PRId64 " rows, but there are %" PRId64 " %s", a->where,
	                     a->dim[0], expected, what);
}

/* Pointers [graphs + 1], with *graphs of -1 as many as there are. */
static hg_status read_pointers(const struct graphs *in, const char *key, int64_t *graphs,
                               int64_t **pointers)
{
	struct npy a;
	char member[80];
	HG__TRY(open_array(in, key, 1, &a));
	hg_status status = a.elements > 0
	                       ? HG_OK
	                       : hg__data_fail(a.message, HG_ERR_FORMAT,
	                                       "%s: is empty, expected graphs + 1 elements", a.where);
	if (status == HG_OK && *graphs >= 0)
		status = expect_rows(&a, *graphs + 1, "graphs + 1");
	if (status == HG_OK)
		status = hg__npy_read_i64(&a, 0, INT64_MAX, pointers);
	*graphs = a.elements - 1;
	hg__npy_close(&a);
	HG__TRY(status);
	snprintf(member, sizeof member, "member %s.npy", key);
	return hg__data_check_pointers(in->npz->path, member, *pointers, *graphs, in->npz->message);
}

/* The ends of all edges, numbers in their graphs, become numbers of nodes. */
static hg_status read_ends(const struct graphs *in, const char *key, const int64_t *edge_ptr,
                           int32_t **ends)
{
	const hg_dataset *d = in->d;
	struct npy a;
	HG__TRY(open_array(in, key, 1, &a));
	hg_status status = expect_rows(&a, edge_ptr[d->graphs], "edges by edge_ptr");
	if (status == HG_OK)
		status = hg__npy_read_i32(&a, 0, INT32_MAX, ends);
	hg__npy_close(&a);
	for (int64_t g = 0; status == HG_OK && g < d->graphs; g++) {
		const int64_t first = d->graph_ptr[g], nodes = d->graph_ptr[g + 1] - first;
		for (int64_t e = edge_ptr[g]; status == HG_OK && e < edge_ptr[g + 1]; e++) {
			if ((*ends)[e] >= nodes)
				status = hg__data_fail(a.message, HG_ERR_FORMAT,
				                       "%s: value %" PRId32 " at %" PRId64 ", in graph %" PRId64
				                       ", which has %" PRId64 " nodes",
				                       a.where, (*ends)[e], e, g, nodes);
			else
				(*ends)[e] += (int32_t)first;
		}
	}
	return status;
}

/* ---- the parts ---- */

static hg_status read_edges(const struct graphs *in, const int64_t *edge_ptr)
{
	hg_dataset *d = in->d;
	const int64_t m = edge_ptr[d->graphs];
	struct hg__coo coo = {.rows = d->nodes, .cols = d->nodes, .m = m, .capacity = m};
	coo.keep_origin = hg__npz_has(in->npz, "edge_label") || hg__npz_has(in->npz, "edge_feat");
	hg_status status = read_ends(in, "edge_src", edge_ptr, &coo.col);
	if (status == HG_OK)
		status = read_ends(in, "edge_dst", edge_ptr, &coo.row);
	if (status == HG_OK)
		status = hg__coo_to_graph(&coo, HG__MERGE_MAX, d, in->npz->message);
	if (status == HG_OK) {
		const struct hg__sparse listed = {.origin = coo.origin, .listed = m};
		hg__import_note_merged(in->config, in->npz->path, m, d->edges, 0);
		status = hg__npz_read_edges(in->npz, in->config, &listed, d);
	}
	hg__coo_free(&coo);
	return status;
}

/* Attributes, then a column for each distinct label, as those of a TU dataset. */
static hg_status read_features(const struct graphs *in)
{
	hg_dataset *d = in->d;
	struct npy a;
	int64_t *label = NULL, width = 0;
	float *attributes = NULL;
	hg_status status = HG_OK;
	if (hg__npz_has(in->npz, "node_label")) {
		HG__TRY(open_array(in, "node_label", 1, &a));
		status = expect_rows(&a, d->nodes, "nodes");
		if (status == HG_OK)
			status = hg__npy_read_i64(&a, INT64_MIN, INT64_MAX, &label);
		hg__npy_close(&a);
	}
	if (status == HG_OK && hg__npz_has(in->npz, "node_attr")) {
		status = open_array(in, "node_attr", 2, &a);
		if (status == HG_OK) {
			width = a.dim[1];
			status = expect_rows(&a, d->nodes, "nodes");
			if (status == HG_OK && width > 0)
				status = hg__npy_read_finite(&a, &attributes);
			hg__npy_close(&a);
		}
	}
	if (status == HG_OK)
		status = hg__distinct_features(label, attributes, width, d, in->npz->message);
	free(attributes);
	free(label);
	return status;
}

/* node_ptr alone can declare any number of nodes; labels or attributes have an element for each. */
static hg_status check_nodes(const struct graphs *in, int64_t edges)
{
	const hg_dataset *d = in->d;
	if (d->features > 0 || hg__nodes_plausible(d->nodes, edges))
		return HG_OK;
	return hg__data_fail(in->npz->message, HG_ERR_FORMAT,
	                     "%s: member node_ptr.npy: declares %" PRId64
	                     " nodes, but there are only %" PRId64 " edges",
	                     in->npz->path, d->nodes, edges);
}

static hg_status read_graph(const struct graphs *in)
{
	hg_dataset *d = in->d;
	int64_t *edge_ptr = NULL;
	d->graphs = -1;
	HG__TRY(read_pointers(in, "node_ptr", &d->graphs, &d->graph_ptr));
	d->nodes = d->graph_ptr[d->graphs];
	if (d->nodes > INT32_MAX)
		return hg__data_fail(in->npz->message, HG_ERR_RANGE,
		                     "%s: member node_ptr.npy: %" PRId64
		                     " nodes, at most 2147483647 are possible",
		                     in->npz->path, d->nodes);
	HG__TRY(read_features(in));
	hg_status status = read_pointers(in, "edge_ptr", &d->graphs, &edge_ptr);
	if (status == HG_OK)
		status = check_nodes(in, edge_ptr[d->graphs]);
	if (status == HG_OK)
		status = read_edges(in, edge_ptr);
	free(edge_ptr);
	return status;
}

/* Column `column` of the targets := the array y_NAME of member `name`. */
static hg_status read_target(const struct graphs *in, const char *name, int64_t column)
{
	hg_dataset *d = in->d;
	char key[64];
	struct npy a;
	float *values = NULL;
	snprintf(key, sizeof key, "%.*s", (int)target_length(name) + 2, name);
	HG__TRY(open_array(in, key, 1, &a));
	hg_status status = expect_rows(&a, d->graphs, "graphs");
	if (status == HG_OK)
		status = hg__npy_read_f32(&a, &values);
	hg__npy_close(&a);
	for (int64_t g = 0; status == HG_OK && g < d->graphs; g++)
		d->target[g * d->targets + column] = values[g];
	free(values);
	return status;
}

static hg_status read_targets(const struct graphs *in)
{
	hg_dataset *d = in->d;
	const zip_int64_t members = zip_get_num_entries(in->npz->zip, 0);
	int64_t column = 0, bytes = 0;
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(in->npz->zip, (zip_uint64_t)k, 0);
		const size_t length = name ? target_length(name) : 0;
		d->targets += length > 0;
		bytes += length > 0 ? (int64_t)length + 1 : 0;
	}
	if (d->targets == 0)
		return HG_OK;
	HG__TRY(hg__data_alloc(d->graphs, (size_t)d->targets * sizeof *d->target, "targets",
	                       (void **)&d->target, in->npz->message));
	HG__TRY(
	    hg__data_alloc(bytes, 1, "names of targets", (void **)&d->target_names, in->npz->message));
	char *to = d->target_names;
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(in->npz->zip, (zip_uint64_t)k, 0);
		const size_t length = name ? target_length(name) : 0;
		if (length == 0)
			continue;
		HG__TRY(read_target(in, name, column++));
		memcpy(to, name + 2, length);
		to += length;
		*to++ = column < d->targets ? '\n' : 0;
	}
	return HG_OK;
}

/* The names, with their numbers: "logp (0), sa (1)". */
static void note_targets(const struct graphs *in)
{
	const hg_dataset *d = in->d;
	char text[256] = "";
	size_t used = 0;
	int64_t column = 0;
	const char *at = d->target_names;
	for (; column < d->targets && used + 80 < sizeof text; column++) {
		const size_t length = strcspn(at, "\n");
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s (%" PRId64 ")",
		                         column ? ", " : "", (int)length, at, column);
		at += length + (at[length] == '\n');
	}
	hg__import_note(in->config, "%s: the targets of the graphs are %s%s", in->npz->path, text,
	                column < d->targets ? " and more" : "");
}

hg_status hg__npz_read_graphs(const struct npz *npz, const hg_import_config *config, hg_dataset *d)
{
	const struct graphs in = {npz, config, d};
	HG__TRY(read_graph(&in));
	HG__TRY(read_targets(&in));
	if (d->targets > 1)
		note_targets(&in);
	return HG_OK;
}
