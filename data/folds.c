/* Folds for cross-validation: those that a dataset holds, and splits made of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "drawn.h"

enum { TRAIN, VALIDATE, TEST, NONE };

/* fold [rows], malloc'd := the fold of each row. Rows of a class are dealt out in turn, so each
 * fold has about the same share of every class. */
static hg_status deal(const hg_dataset *d, int64_t folds, uint64_t seed, int32_t **fold,
                      char *message)
{
	struct hg__drawn *rows = NULL;
	int64_t count = 0;
	const int64_t n = hg__data_labelled(d);
	HG__TRY(hg__draw(d, seed, 1, &rows, &count, message));
	const hg_status status = hg__data_alloc(n, sizeof **fold, "folds", (void **)fold, message);
	for (int64_t i = 0; status == HG_OK && i < n; i++)
		(*fold)[i] = -1;
	for (int64_t i = 0; status == HG_OK && i < count; i++)
		(*fold)[rows[i].row] = (int32_t)(i % folds);
	free(rows);
	return status;
}

/* Set the splits for one of `folds` folds. */
static hg_status take(hg_dataset *d, const int32_t *fold, int64_t folds, int64_t number,
                      hg_fold_validation validation, char *message)
{
	int8_t *set = NULL;
	const int64_t n = hg__data_labelled(d);
	const int held_out = validation == HG_FOLD_HELD_OUT;
	HG__TRY(hg__data_alloc(n, sizeof *set, "folds", (void **)&set, message));
	for (int64_t i = 0; i < n; i++) {
		/* 0: this fold; 1: the next one */
		const int64_t offset = (fold[i] - number + folds) % folds;
		const int unlabelled = d->label && d->label[i] < 0;
		set[i] = (int8_t)(unlabelled                 ? NONE
		                  : fold[i] < 0              ? TRAIN
		                  : offset == 0              ? held_out ? VALIDATE : TEST
		                  : offset == 1 && !held_out ? VALIDATE
		                                             : TRAIN);
	}
	const hg_status status = hg__set_splits(d, set, message);
	free(set);
	return status;
}

hg_status hg_dataset_fold(hg_dataset *d, int64_t fold, int64_t folds, char *message)
{
	int32_t *dealt = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "fold: dataset is NULL");
	if (folds < 3 || folds > INT32_MAX || fold < 0 || fold >= folds)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "fold %" PRId64 " of %" PRId64
		                     ", expected at least 3 folds, numbered from 0",
		                     fold, folds);
	if (d->fold && d->folds == folds)
		return take(d, d->fold, folds, fold, HG_FOLD_NEXT, message);
	if (!d->label)
		return hg__data_fail(message, HG_ERR_STATE, "the dataset has no labels to deal into folds");
	HG__TRY(deal(d, folds, 0, &dealt, message));
	const hg_status status = take(d, dealt, folds, fold, HG_FOLD_NEXT, message);
	free(dealt);
	return status;
}

hg_status hg_dataset_make_folds(hg_dataset *d, int64_t folds, uint64_t seed, char *message)
{
	int32_t *fold = NULL;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "make_folds: dataset is NULL");
	const int64_t n = hg__data_labelled(d);
	int64_t rows = 0;
	for (int64_t i = 0; i < n; i++)
		rows += !d->label || d->label[i] >= 0;
	if (folds < 2 || folds > INT32_MAX)
		return hg__data_fail(message, HG_ERR_ARG, "%" PRId64 " folds, expected at least 2", folds);
	if (folds > rows)
		return hg__data_fail(message, HG_ERR_STATE,
		                     "%" PRId64 " folds, but there are %" PRId64 "%s %ss", folds, rows,
		                     d->label ? " labelled" : "", d->graph_ptr ? "graph" : "node");
	HG__TRY(deal(d, folds, seed, &fold, message));
	free(d->fold);
	d->fold = fold;
	d->folds = (int32_t)folds;
	return HG_OK;
}

hg_status hg_dataset_use_fold(hg_dataset *d, int64_t fold, hg_fold_validation validation,
                              char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "use_fold: dataset is NULL");
	if (!d->fold)
		return hg__data_fail(message, HG_ERR_STATE,
		                     "the dataset has no folds: h5convert FILE --split folds:10 "
		                     "-o OUT.h5 makes some");
	if (fold < 0 || fold >= d->folds)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "fold %" PRId64 " of %" PRId32 ", expected one of 0 .. %" PRId32, fold,
		                     d->folds, d->folds - 1);
	if (validation != HG_FOLD_NEXT && validation != HG_FOLD_HELD_OUT)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "validation is %d, which is no hg_fold_validation", (int)validation);
	if (validation == HG_FOLD_NEXT && d->folds < 3)
		return hg__data_fail(message, HG_ERR_STATE,
		                     "%" PRId32 " folds, expected at least 3 where one tests, "
		                     "one validates and the others train",
		                     d->folds);
	return take(d, d->fold, d->folds, fold, validation, message);
}

void hg__data_count_folds(hg_dataset *d)
{
	const int64_t n = hg__data_labelled(d);
	d->folds = 0;
	for (int64_t i = 0; d->fold && i < n; i++)
		if (d->fold[i] >= d->folds)
			d->folds = d->fold[i] + 1;
}

/* The first fold without a row; d->folds where there is none. */
static hg_status find_empty(const hg_dataset *d, int64_t *empty, char *message)
{
	uint8_t *filled = NULL;
	const int64_t n = hg__data_labelled(d);
	HG__TRY(hg__data_alloc(d->folds, 1, "folds", (void **)&filled, message));
	memset(filled, 0, (size_t)d->folds);
	for (int64_t i = 0; i < n; i++)
		if (d->fold[i] >= 0)
			filled[d->fold[i]] = 1;
	for (*empty = 0; *empty < d->folds && filled[*empty];)
		++*empty;
	free(filled);
	return HG_OK;
}

hg_status hg__data_check_folds(const hg_dataset *d, const char *origin, char *message)
{
	const char *who = d->graph_ptr ? "graph" : "node";
	const int64_t n = hg__data_labelled(d);
	int64_t empty = 0;
	if (!d->fold && !d->folds)
		return HG_OK;
	if (!d->fold || d->folds < 2 || d->folds > n)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: folds: %" PRId32 " of %" PRId64
		                     " %ss, expected at least 2 and none of them empty",
		                     origin, d->folds, n, who);
	for (int64_t i = 0; i < n; i++)
		if (d->fold[i] >= d->folds)
			return hg__data_fail(message, HG_ERR_FORMAT,
			                     "%s: folds: %s %" PRId64 " is in fold %" PRId32
			                     ", but there are %" PRId32 " folds, numbered from 0",
			                     origin, who, i, d->fold[i], d->folds);
	HG__TRY(find_empty(d, &empty, message));
	return empty == d->folds ? HG_OK
	                         : hg__data_fail(message, HG_ERR_FORMAT,
	                                         "%s: folds: no %s is in fold %" PRId64 " of %" PRId32,
	                                         origin, who, empty, d->folds);
}
