/* The folds that come with a dataset of the GIN format: test_idx-K.txt and train_idx-K.txt, K from
 * 1, in a folder 10fold_idx, with the number of one graph per line, from 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/gin.h"

/* A set is called "10fold_idx/test_idx-1.txt" in the folder of the text. */
static void name_set(const char *set, int64_t k, char name[64])
{
	(void)snprintf(name, 64, "10fold_idx/%s_idx-%" PRId64 ".txt", set, k);
}

/* No fold is empty, so there are at most as many as graphs. */
static int64_t count_folds(const struct hg__gin_files *in, int64_t graphs)
{
	int64_t count = 0;
	for (; count < graphs; count++) {
		char name[64];
		name_set("test", count + 1, name);
		if (!hg__folder_has_part(&in->folder, name))
			break;
	}
	return count;
}

struct set {
	int64_t graphs;
	uint8_t *mask; /* [graphs] */
};

static hg_status add_line(const struct lines *lines, const char *line, void *to)
{
	static const char expected[] = "expected the number of a graph";
	const struct set *set = to;
	const char *at = line;
	int64_t graph = 0;
	HG__TRY(hg__lines_integer(lines, line, expected, expected, &at, &graph));
	if (*at)
		return hg__lines_fail(lines, expected, line);
	const int is_graph = graph >= 0 && graph < set->graphs;
	if (!is_graph || set->mask[graph])
		return hg__data_fail(
		    lines->message, HG_ERR_FORMAT,
		    "%s:%" PRId64 ": graph %" PRId64 "%s, expected each of 0 .. %" PRId64 " at most once",
		    lines->path, lines->number, graph, is_graph ? " again" : "", set->graphs - 1);
	set->mask[graph] = 1;
	return HG_OK;
}

/* mask [graphs] := the graphs that a file names. */
static hg_status read_set(const struct hg__gin_files *in, const char *set, int64_t k,
                          int64_t graphs, uint8_t **mask)
{
	char name[64];
	name_set(set, k, name);
	HG__TRY(hg__data_alloc(graphs, 1, "a split", (void **)mask, in->message));
	memset(*mask, 0, (size_t)graphs);
	return hg__folder_read(&in->folder, name, add_line, &(struct set){graphs, *mask});
}

static hg_status take_fold(const struct hg__gin_files *in, int64_t folds, hg_dataset *d)
{
	const int64_t fold = in->config.fold, next = (fold + 1) % folds;
	HG__TRY(read_set(in, "test", fold + 1, d->graphs, &d->test_mask));
	HG__TRY(read_set(in, "test", next + 1, d->graphs, &d->val_mask));
	HG__TRY(read_set(in, "train", fold + 1, d->graphs, &d->train_mask));
	for (int64_t g = 0; g < d->graphs; g++)
		d->train_mask[g] = d->train_mask[g] && !d->val_mask[g];
	hg__import_note(&in->config,
	                "%s: fold %" PRId64 " of its own %" PRId64 " is taken: test_idx-%" PRId64
	                ".txt tests, test_idx-%" PRId64 ".txt validates, the rest of train_idx-%" PRId64
	                ".txt trains",
	                in->path, fold, folds, fold + 1, next + 1, fold + 1);
	return HG_OK;
}

/* Write fold k into `fold`. Returns 0 where the test set is empty or shares a graph with another,
 * or where the training set is not what it leaves. */
static int enter_fold(const uint8_t *test, const uint8_t *train, int64_t graphs, int32_t k,
                      int32_t *fold)
{
	int64_t count = 0;
	for (int64_t g = 0; g < graphs; g++) {
		if (test[g] == train[g] || (test[g] && fold[g] >= 0))
			return 0;
		if (test[g])
			fold[g] = k;
		count += test[g];
	}
	return count > 0;
}

/* Is there a training set for every test set? */
static int have_training_sets(const struct hg__gin_files *in, int64_t folds)
{
	int64_t k = 0;
	for (; k < folds; k++) {
		char name[64];
		name_set("train", k + 1, name);
		if (!hg__folder_has_part(&in->folder, name))
			break;
	}
	return k == folds;
}

/* d->fold := the number of the test set that each graph is in. The sets of MUTAG and PROTEINS leave
 * out the last few graphs, which all training sets have. */
static hg_status keep_folds(const struct hg__gin_files *in, int64_t folds, hg_dataset *d)
{
	int are_folds = have_training_sets(in, folds);
	hg_status status =
	    hg__data_alloc(d->graphs, sizeof *d->fold, "folds", (void **)&d->fold, in->message);
	for (int64_t g = 0; status == HG_OK && g < d->graphs; g++)
		d->fold[g] = -1;
	for (int64_t k = 0; status == HG_OK && are_folds && k < folds; k++) {
		uint8_t *test = NULL, *train = NULL;
		status = read_set(in, "test", k + 1, d->graphs, &test);
		if (status == HG_OK)
			status = read_set(in, "train", k + 1, d->graphs, &train);
		are_folds = status == HG_OK && enter_fold(test, train, d->graphs, (int32_t)k, d->fold);
		free(test);
		free(train);
	}
	HG__TRY(status);
	d->folds = (int32_t)folds;
	if (are_folds)
		return HG_OK;
	hg__import_note(&in->config,
	                "%s: its test sets are empty or share graphs, or its training sets are not "
	                "what they leave: they are not kept as folds",
	                in->path);
	free(d->fold);
	d->fold = NULL;
	d->folds = 0;
	return HG_OK;
}

hg_status hg__gin_folds(const struct hg__gin_files *in, hg_dataset *d)
{
	const int64_t folds = count_folds(in, d->graphs);
	if (folds >= 3)
		HG__TRY(keep_folds(in, folds, d));
	if (folds >= 3 && in->config.folds == folds)
		return take_fold(in, folds, d);
	if (folds > 0 && in->config.folds)
		hg__import_note(&in->config, "%s: its own %" PRId64 " folds are not %" PRId64 ": not taken",
		                in->path, folds, in->config.folds);
	else if (folds >= 3)
		hg__import_note(&in->config,
		                "%s: has %" PRId64 " folds of its own; fold 0 of %" PRId64
		                " (h5convert: --fold 0/%" PRId64 ") takes the first as splits, hg-train "
		                "--folds all of them",
		                in->path, folds, folds, folds);
	return HG_OK;
}
