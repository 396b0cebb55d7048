/* Read the datasets of the Open Graph Benchmark (Hu and others 2020) as they are downloaded: a
 * folder or zip archive with, compressed with gzip and without headers,
 *
 *     raw/num-node-list.csv.gz, num-edge-list.csv.gz   a line per graph
 *     raw/edge.csv.gz          an edge per line, source and destination, from 0 in each graph
 *     raw/node-feat.csv.gz     numbers for each node; optional
 *     raw/edge-feat.csv.gz     numbers for each edge; optional
 *     raw/node-label.csv.gz    or graph-label.csv.gz: labels, or real targets; optional
 *     split/NAME/train.csv.gz, valid.csv.gz, test.csv.gz   numbers of nodes or graphs
 *
 * or, for the largest, raw/data.npz with edge_index, num_nodes_list, num_edges_list, node_feat and
 * edge_feat, and raw/node-label.npz. Edges are read as they are. For sets that OGB's loader makes
 * undirected (ogbn-products) that is what --symmetrize does. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/ogb.h"
#include "import/run.h"

/* ---- the files ---- */

hg_status hg__ogb_arrays(const struct hg__ogb *in, const char *name, char **path, struct npz *npz)
{
	char *full = NULL;
	*npz = (struct npz){.message = in->message};
	*path = NULL;
	HG__TRY(hg__folder_part(&in->folder, name, &full));
	hg_status status = hg__folder_path(&in->folder, full, path);
	free(full);
	if (status == HG_OK && in->folder.zip)
		status = hg__data_fail(in->message, HG_ERR_FORMAT,
		                       "%s: is an archive in an archive: unpack the outer one", *path);
	return status == HG_OK ? hg__npz_open(npz, *path, in->message) : status;
}

/* The stem is what precedes raw/edge.csv.gz or raw/data.npz. */
static hg_status find_files(struct hg__ogb *in, const char *path)
{
	static const char *const files[] = {"raw/edge.csv.gz", "raw/data.npz"};
	const char *found = NULL;
	HG__TRY(hg__folder_open(&in->folder, path, in->config.progress, in->message));
	HG__TRY(hg__folder_list(&in->folder));
	for (int k = 0; k < 2 && !found; k++) {
		char pattern[32];
		(void)snprintf(pattern, sizeof pattern, "*%s", files[k]);
		HG__TRY(hg__folder_find(&in->folder, pattern, &found));
		in->packed = k;
	}
	if (!found)
		return hg__data_fail(in->message, HG_ERR_FORMAT,
		                     "%s: holds no raw/edge.csv.gz or raw/data.npz of OGB (sets with "
		                     "several types of nodes are not read)",
		                     path);
	HG__TRY(hg__folder_stem(&in->folder, found, strlen(found) - strlen(files[in->packed])));
	in->path = in->folder.shown;
	return HG_OK;
}

/* Note the arrays of an archive that are not read, such as node_year. */
static hg_status note_unread_arrays(const struct hg__ogb *in)
{
	static const char *const read[] = {"edge_index.npy", "num_nodes_list.npy", "num_edges_list.npy",
	                                   "node_feat.npy", "edge_feat.npy"};
	struct npz npz;
	char *path = NULL;
	const hg_status status = hg__ogb_arrays(in, "raw/data.npz", &path, &npz);
	const zip_int64_t members = status == HG_OK ? zip_get_num_entries(npz.zip, 0) : 0;
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(npz.zip, (zip_uint64_t)k, 0);
		size_t known = 0;
		while (name && known < sizeof read / sizeof *read && strcmp(name, read[known]) != 0)
			known++;
		if (name && known == sizeof read / sizeof *read)
			hg__import_note(&in->config, "%s: %s is not read", path, name);
	}
	hg__npz_close(&npz);
	free(path);
	return status;
}

/* Note the files of one row per node or edge that are not read, such as raw/edge_reltype.csv.gz. */
static hg_status note_unread(const struct hg__ogb *in)
{
	for (int64_t k = 0; k < in->folder.count; k++) {
		const char *name = in->folder.name[k];
		if (fnmatch("*raw/node_*", name, 0) == 0 || fnmatch("*raw/edge_*", name, 0) == 0)
			hg__import_note(&in->config, "%s: %s is not read", in->path, strstr(name, "raw/"));
	}
	return in->packed ? note_unread_arrays(in) : HG_OK;
}

/* ---- the batch ---- */

/* Several graphs are a batch. */
static hg_status set_batch(const struct hg__ogb *in, hg_dataset *d)
{
	int64_t sum = 0;
	for (int64_t g = 0; g < in->graphs; g++)
		if (__builtin_add_overflow(sum, in->nodes[g], &sum) || sum > INT32_MAX)
			return hg__data_fail(in->message, HG_ERR_FORMAT,
			                     "%s: more than 2147483647 nodes up to graph %" PRId64, in->path,
			                     g);
	d->nodes = sum;
	if (in->graphs == 1)
		return HG_OK;
	HG__TRY(hg__data_alloc(in->graphs + 1, sizeof *d->graph_ptr, "graphs", (void **)&d->graph_ptr,
	                       in->message));
	d->graphs = in->graphs;
	d->graph_ptr[0] = 0;
	for (int64_t g = 0; g < in->graphs; g++)
		d->graph_ptr[g + 1] = d->graph_ptr[g] + in->nodes[g];
	return HG_OK;
}

static hg_status read_set(struct hg__ogb *in, const char *path, hg_dataset *d)
{
	HG__TRY(find_files(in, path));
	HG__TRY(hg__folder_name(&in->folder, d));
	HG__TRY(hg__ogb_counts(in));
	HG__TRY(set_batch(in, d));
	HG__TRY(hg__ogb_graph(in, d));
	HG__TRY(hg__ogb_features(in, d));
	HG__TRY(hg__ogb_labels(in, d));
	HG__TRY(hg__ogb_splits(in, d));
	return note_unread(in);
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__ogb in = {.config = run->config, .message = run->message};
	const hg_status status = read_set(&in, run->path, run->d);
	hg__folder_close(&in.folder);
	free(in.nodes);
	free(in.edges);
	return status;
}

hg_status hg__import_ogb(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
