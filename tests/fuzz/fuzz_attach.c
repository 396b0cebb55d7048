/* Features, labels and splits from a file, for datasets whose nodes are ordered, numbered with
 * gaps, or in graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { NODES = 4, GRAPHS = 2, KINDS = 3 };

static void *copy(const void *from, size_t bytes)
{
	void *to = malloc(bytes);
	if (!to)
		abort();
	return memcpy(to, from, bytes);
}
#define COPY(array) copy(array, sizeof(array))

/* kind 0: as they are; 1: reordered, and numbered with gaps; 2: two graphs. */
static hg_dataset *make(int kind)
{
	static const int64_t rowptr[] = {0, 1, 2, 2, 3}, numbers[] = {6, 0, 2, 3}, graphs[] = {0, 2, 4};
	static const int32_t col[] = {1, 0, 2}, order[] = {3, 0, 1, 2};
	hg_dataset *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->nodes = NODES;
	d->edges = 3;
	d->graphs = 1;
	d->feat_dtype = HG_F32;
	d->rowptr = COPY(rowptr);
	d->col = COPY(col);
	if (kind == 1) {
		d->orig_id = COPY(numbers);
		d->order = COPY(order);
	} else if (kind == 2) {
		d->graphs = GRAPHS;
		d->graph_ptr = COPY(graphs);
	}
	return d;
}

static void must(int good, const char *what, hg_status status, const char *message)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s, \"%s\"\n", what, hg_status_name(status), message);
	abort();
}

/* The dataset is valid afterwards, and without the part where that is refused. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static const struct {
		const char *name;
		hg_status (*load)(hg_dataset *, const char *, char *);
	} parts[] = {{"features", hg_dataset_load_features},
	             {"labels", hg_dataset_load_labels},
	             {"split", hg_dataset_load_split}};
	const char *path = fuzz_file(bytes, count);
	for (int kind = 0; kind < KINDS; kind++) {
		hg_dataset *d = make(kind);
		char message[HG_DATA_MESSAGE] = "";
		for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
			*message = 0;
			const hg_status status = parts[k].load(d, path, message);
			const int has = k == 0   ? d->feat != NULL
			                : k == 1 ? d->label || d->target
			                         : d->train_mask || d->val_mask || d->test_mask;
			must((status == HG_OK || (status < 0 && *message && !has)) && !strchr(message, '\n'),
			     parts[k].name, status, message);
		}
		const hg_status valid = hg_dataset_check(d, "fuzz", message);
		must(valid == HG_OK, "check", valid, message);
		hg_dataset_free(d);
	}
	return 0;
}
