/* Writes datasets that are difficult for a training tool. The name of a file says what is special
 * about it. Usage: hg_train_datasets DIRECTORY */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/data.h"

enum { FEATURES = 4 };
enum split { TRAIN = 1, VAL = 2, TEST = 4 };

static void *array(int64_t count, size_t size)
{
	void *memory = calloc((size_t)count + 1, size);
	if (!memory)
		exit(1);
	return memory;
}

/* Node i has class i mod 2, and its features tell the class. Nodes belong to the splits in turn. */
static hg_dataset *dataset(int64_t nodes, int64_t edges, int splits)
{
	char message[HG_DATA_MESSAGE];
	hg_dataset *d = NULL;
	if (hg_dataset_new(&d, message) < 0)
		exit(1);
	float *x = array(nodes * FEATURES, sizeof *x);
	uint8_t *const mask[] = {splits & TRAIN ? array(nodes, 1) : NULL,
	                         splits & VAL ? array(nodes, 1) : NULL,
	                         splits & TEST ? array(nodes, 1) : NULL};
	d->nodes = nodes;
	d->edges = edges;
	d->rowptr = array(nodes + 1, sizeof *d->rowptr);
	d->col = array(edges, sizeof *d->col);
	d->features = FEATURES;
	d->feat_dtype = HG_F32;
	d->feat = x;
	d->feat_amax = 1.0;
	d->classes = 2;
	d->label = array(nodes, sizeof *d->label);
	d->train_mask = mask[0];
	d->val_mask = mask[1];
	d->test_mask = mask[2];
	for (int64_t i = 0; i < nodes; i++) {
		d->label[i] = (int32_t)(i % 2);
		x[i * FEATURES + i % 2] = 1.0f;
		if (mask[i / 2 % 3])
			mask[i / 2 % 3][i] = 1;
	}
	return d;
}

/* Node 0 has edges from and to all other nodes. There are no other edges. */
static hg_dataset *star(int64_t nodes, int splits)
{
	hg_dataset *d = dataset(nodes, 2 * (nodes - 1), splits);
	for (int64_t i = 1; i < nodes; i++) {
		d->col[i - 1] = (int32_t)i; /* row 0; the rows of the leaves have one entry, 0 */
		d->rowptr[i] = nodes - 2 + i;
	}
	d->rowptr[nodes] = d->edges;
	return d;
}

/* The original id of node i is 7 i + 1000. */
static hg_dataset *numbered(hg_dataset *d)
{
	d->orig_id = array(d->nodes, sizeof *d->orig_id);
	for (int64_t i = 0; i < d->nodes; i++)
		d->orig_id[i] = 7 * i + 1000;
	return d;
}

/* Graphs of two nodes each, without edges. Labels and splits belong to graphs. */
static hg_dataset *pairs(int64_t graphs)
{
	hg_dataset *d = dataset(2 * graphs, 0, TRAIN | VAL | TEST);
	d->graphs = graphs;
	d->graph_ptr = array(graphs + 1, sizeof *d->graph_ptr);
	for (int64_t g = 0; g <= graphs; g++)
		d->graph_ptr[g] = 2 * g;
	return d;
}

/* Three folds in turn. Only graphs of the last have labels, so nothing trains without it. */
static hg_dataset *last_fold_labelled(hg_dataset *d)
{
	d->folds = 3;
	d->fold = array(d->graphs, sizeof *d->fold);
	for (int64_t g = 0; g < d->graphs; g++) {
		d->fold[g] = (int32_t)(g % 3);
		if (d->fold[g] != 2)
			d->label[g] = -1;
	}
	return d;
}

/* The same features as a sparse matrix. One of four in a row is not 0. */
static hg_dataset *sparse(hg_dataset *d)
{
	free(d->feat);
	d->feat = NULL;
	d->feat_rowptr = array(d->nodes + 1, sizeof *d->feat_rowptr);
	d->feat_col = array(d->nodes, sizeof *d->feat_col);
	for (int64_t i = 0; i < d->nodes; i++) {
		d->feat_rowptr[i + 1] = i + 1;
		d->feat_col[i] = (int32_t)(i % 2);
	}
	return d;
}

/* The same with two columns of targets, which are low, and larger by `step` where the class is 1;
 * one is missing. */
static hg_dataset *aimed(hg_dataset *d, float low, float step, int keep_labels)
{
	const int64_t rows = d->graph_ptr ? d->graphs : d->nodes;
	d->targets = 2;
	d->target = array(2 * rows, sizeof *d->target);
	for (int64_t i = 0; i < 2 * rows; i++)
		d->target[i] = low + step * (float)((i / 2 + i) % 2);
	d->target[5] = NAN;
	if (!keep_labels) {
		free(d->label);
		d->label = NULL;
		d->classes = 0;
	}
	return d;
}

static int write(hg_dataset *d, const char *directory, const char *name)
{
	char path[1024], message[HG_DATA_MESSAGE];
	(void)snprintf(path, sizeof path, "%s/%s.h5", directory, name);
	const hg_status status = hg_dataset_write(d, path, message);
	if (status < 0)
		fprintf(stderr, "%s\n", message);
	hg_dataset_free(d);
	return status < 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	int failed = write(dataset(1, 0, TRAIN), argv[1], "one_node");
	hg_dataset *d = dataset(1, 0, TRAIN);
	d->classes = 1;
	failed |= write(d, argv[1], "one_class");
	d = star(20, TRAIN | VAL | TEST);
	memset(d->train_mask, 0, 20);
	failed |= write(d, argv[1], "nothing_to_learn");
	d = star(20, TRAIN);
	memset(d->label, -1, 20 * sizeof *d->label);
	failed |= write(d, argv[1], "unlabelled");
	d = star(20, TRAIN | VAL | TEST);
	memset(d->val_mask, 0, 20);
	failed |= write(d, argv[1], "empty_validation");
	d = star(20, TRAIN);
	d->features = 0;
	failed |= write(d, argv[1], "no_columns");
	d = star(20, TRAIN);
	d->classes = 0;
	free(d->label);
	d->label = NULL;
	failed |= write(d, argv[1], "no_labels");
	d = star(20, TRAIN);
	d->classes = 0;
	memset(d->label, -1, 20 * sizeof *d->label);
	failed |= write(d, argv[1], "no_classes");
	failed |= write(star(20, TRAIN | TEST), argv[1], "no_validation");
	failed |= write(star(20, TRAIN | VAL), argv[1], "no_test");
	failed |= write(star(100001, TRAIN | VAL | TEST), argv[1], "star");
	failed |= write(numbered(star(6001, TRAIN | VAL | TEST)), argv[1], "numbered");
	failed |= write(sparse(star(20, TRAIN | VAL | TEST)), argv[1], "sparse");
	failed |= write(pairs(30), argv[1], "pairs");
	failed |= write(last_fold_labelled(pairs(30)), argv[1], "last_fold_labelled");
	d = pairs(30);
	free(d->train_mask);
	d->train_mask = NULL;
	failed |= write(d, argv[1], "unsplit_pairs");
	failed |= write(aimed(star(20, TRAIN | VAL | TEST), 5000.0f, 80.0f, 0), argv[1], "numbers");
	failed |= write(aimed(pairs(30), 0.0f, 1.0f, 0), argv[1], "pairs_of_labels");
	failed |= write(aimed(star(20, TRAIN | VAL), 0.0f, 1.0f, 1), argv[1], "both");
	d = aimed(star(20, TRAIN | VAL), 0.0f, 1.0f, 1);
	for (int64_t i = 0; i < 20; i++)
		if (d->train_mask[i])
			d->label[i] = -1;
	failed |= write(d, argv[1], "targets_to_learn");
	d = aimed(star(20, TRAIN | VAL), 0.0f, 1.0f, 1);
	for (int64_t i = 0; i < 20; i++)
		if (d->val_mask[i])
			d->label[i] = -1;
	failed |= write(d, argv[1], "targets_to_validate");
	d = star(20, TRAIN | VAL | TEST);
	d->classes = 1000;
	failed |= write(d, argv[1], "many_classes");
	d = star(20, TRAIN | VAL | TEST);
	((float *)d->feat)[3 * FEATURES + 2] = 1e30f;
	d->feat_amax = (double)1e30f;
	failed |= write(d, argv[1], "large_features");
	return failed;
}
