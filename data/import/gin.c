/* Read the text format of the graph isomorphism network (Xu, Hu, Leskovec, Jegelka 2019): a file
 * NAME.txt with all graphs, and beside it folds in a folder 10fold_idx. The input is the file, or a
 * folder or zip archive that holds it.
 *
 * Labels of graphs may be any integers: the classes are the distinct ones, ascending. Features are
 * the attributes of the nodes, followed by one column for each distinct tag, ascending. Edges have
 * no direction: an edge that only one of its nodes lists counts in both directions. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/distinct.h"
#include "import/gin.h"
#include "import/run.h"

/* ---- the files ---- */

static int ends_with(const char *text, const char *ending)
{
	const size_t length = strlen(text), n = strlen(ending);
	return length >= n && strcmp(text + length - n, ending) == 0;
}

/* A text that is neither a fold nor a readme. */
static int may_be_graphs(const char *name)
{
	const char *slash = strrchr(name, '/'), *file = slash ? slash + 1 : name;
	return ends_with(name, ".txt") && !strstr(file, "_idx-") && strncmp(file, "README", 6) != 0;
}

static hg_status find_text(const struct hg__gin_files *in, const char *path, const char **text)
{
	*text = NULL;
	for (int64_t k = 0; k < in->folder.count; k++) {
		if (!may_be_graphs(in->folder.name[k]))
			continue;
		if (*text)
			return hg__data_fail(in->message, HG_ERR_FORMAT,
			                     "%s: holds %s and %s, expected one text with graphs", path, *text,
			                     in->folder.name[k]);
		*text = in->folder.name[k];
	}
	return *text ? HG_OK
	             : hg__data_fail(in->message, HG_ERR_FORMAT,
	                             "%s: holds no text NAME.txt with graphs", path);
}

static hg_status set_names(struct hg__gin_files *in, const char *text)
{
	const char *slash = strrchr(text, '/');
	HG__TRY(hg__folder_stem(&in->folder, text, slash ? (size_t)(slash + 1 - text) : 0));
	HG__TRY(hg__data_copy_text(text, &in->text, in->message));
	return hg__folder_path(&in->folder, text, &in->path);
}

static hg_status find_files(struct hg__gin_files *in, const char *path)
{
	const char *slash = strrchr(path, '/'), *text = NULL;
	if (!hg__folder_is(path)) {
		HG__TRY(hg__folder_open_around(&in->folder, path, in->config.progress, in->message));
		return set_names(in, slash ? slash + 1 : path);
	}
	HG__TRY(hg__folder_open(&in->folder, path, in->config.progress, in->message));
	HG__TRY(hg__folder_list(&in->folder));
	HG__TRY(find_text(in, path, &text));
	return set_names(in, text);
}

static void close_files(struct hg__gin_files *in)
{
	hg__folder_close(&in->folder);
	free(in->text);
	free(in->path);
}

/* ---- the dataset ---- */

static hg_status set_edges(const struct hg__gin_files *in, struct hg__gin_graphs *g, hg_dataset *d)
{
	HG__TRY(hg__coo_to_graph(&g->coo, HG__MERGE_MAX, d, in->message));
	hg__import_note_merged(&in->config, in->path, g->coo.m, d->edges, 0);
	const int64_t one_way = hg__one_way(d, NULL, NULL);
	if (one_way == 0)
		return HG_OK;
	hg__import_note(&in->config,
	                "%s: %" PRId64
	                " edges are listed by one of their nodes only and count in both directions",
	                in->path, one_way);
	return hg_dataset_symmetrize(d, in->message);
}

static hg_status set_graphs(const struct hg__gin_files *in, const struct hg__gin_graphs *g,
                            hg_dataset *d)
{
	HG__TRY(hg__data_alloc(g->count + 1, sizeof *d->graph_ptr, "graphs", (void **)&d->graph_ptr,
	                       in->message));
	d->graphs = g->count;
	d->graph_ptr[0] = 0;
	memcpy(d->graph_ptr + 1, g->end, (size_t)g->count * sizeof *g->end);
	HG__TRY(hg__distinct_labels(g->label, g->count, d, in->message));
	return hg__distinct_names(g->label, g->count, d, in->message);
}

static hg_status read_text(const struct hg__gin_files *in, hg_dataset *d)
{
	struct hg__gin_graphs g = {0};
	hg_status status = hg__gin_read(in, &g);
	if (status == HG_OK)
		status = set_edges(in, &g, d);
	if (status == HG_OK)
		status = set_graphs(in, &g, d);
	if (status == HG_OK && d->nodes > 0)
		status =
		    hg__distinct_features(g.tag, g.width ? g.attribute : NULL, g.width, d, in->message);
	hg__gin_free(&g);
	return status;
}

static hg_status read_all(struct hg__import *run)
{
	struct hg__gin_files in = {.config = run->config, .message = run->message};
	hg_status status = find_files(&in, run->path);
	if (status == HG_OK)
		status = hg__import_name(run->d, in.path, run->message);
	if (status == HG_OK)
		status = read_text(&in, run->d);
	if (status == HG_OK)
		status = hg__gin_folds(&in, run->d);
	close_files(&in);
	return status;
}

hg_status hg__import_gin(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
