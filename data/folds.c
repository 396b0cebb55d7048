/* Splits for datasets that come without one: the folds of a cross-validation. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "internal.h"

/* A labelled row and its sort key. The rows of a class are ordered by a random number that depends
 * on the number that the user gave the node, so reordering the nodes does not change a split. */
struct fold_row {
	int64_t row, number;
	uint64_t drawn;
	int32_t label;
};

static int compare_fold_rows(const void *a, const void *b)
{
	const struct fold_row *x = a, *y = b;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->drawn != y->drawn)
		return x->drawn < y->drawn ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int64_t shuffle_labelled(const hg_dataset *d, struct fold_row *shuffled)
{
	const uint64_t key = hg__rng_key(0, 0);
	int64_t count = 0;
	for (int64_t row = 0; row < hg__data_labelled(d); row++)
		if (d->label[row] >= 0) {
			const int64_t number = d->graph_ptr ? row : hg_dataset_node(d, row);
			const struct hg__rng4 r = hg__rng_quad(key, number, 0, 0);
			shuffled[count++] =
			    (struct fold_row){row, number, (uint64_t)r.w[0] << 32 | r.w[1], d->label[row]};
		}
	qsort(shuffled, (size_t)count, sizeof *shuffled, compare_fold_rows);
	return count;
}

hg_status hg_dataset_fold(hg_dataset *d, int64_t fold, int64_t folds, char *message)
{
	uint8_t *fresh[3] = {NULL, NULL, NULL};
	struct fold_row *shuffled = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "fold: dataset is NULL");
	if (folds < 3 || fold < 0 || fold >= folds)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "fold: %" PRId64 " of %" PRId64
		                     ", expected at least 3 folds, numbered from 0",
		                     fold, folds);
	if (!d->label)
		return hg__data_fail(message, HG_ERR_STATE, "fold: the dataset has no labels");
	const int64_t rows = hg__data_labelled(d);
	hg_status status = hg__data_alloc(rows, sizeof *shuffled, "folds", (void **)&shuffled, message);
	for (int k = 0; status == HG_OK && k < 3; k++)
		status = hg__data_alloc(rows, 1, "a split", (void **)&fresh[k], message);
	for (int k = 0; status == HG_OK && k < 3; k++)
		memset(fresh[k], 0, (size_t)rows);
	const int64_t count = status == HG_OK ? shuffle_labelled(d, shuffled) : 0;
	for (int64_t i = 0; i < count; i++) {
		/* 0: this fold is the test set; 1: the next one validates */
		const int64_t offset = (i % folds - fold + folds) % folds;
		fresh[offset < 2 ? offset : 2][shuffled[i].row] = 1;
	}
	uint8_t **const mask[] = {&d->test_mask, &d->val_mask, &d->train_mask};
	for (int k = 0; k < 3; k++) {
		free(status == HG_OK ? *mask[k] : fresh[k]);
		if (status == HG_OK)
			*mask[k] = fresh[k];
	}
	free(shuffled);
	return status;
}
