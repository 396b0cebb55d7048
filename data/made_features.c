/* Features that the graph itself gives. */
#include <stdlib.h>

#include "import/distinct.h"
#include "internal.h"

void hg__replace_features(hg_dataset *d, const hg_dataset *fresh)
{
	free(d->feat);
	free(d->feat_rowptr);
	free(d->feat_col);
	free(d->feat_value);
	free(d->feat_mean);
	free(d->feat_deviation);
	d->feat_mean = fresh->feat_mean;
	d->feat_deviation = fresh->feat_deviation;
	d->features = fresh->features;
	d->feat_dtype = fresh->feat_dtype;
	d->feat = fresh->feat;
	d->feat_rowptr = fresh->feat_rowptr;
	d->feat_col = fresh->feat_col;
	d->feat_value = fresh->feat_value;
	d->feat_amax = hg__data_amax(d);
}

static int64_t degree_of(const hg_dataset *d, int64_t i)
{
	return d->rowptr[i + 1] - d->rowptr[i];
}

static hg_status make_column(const hg_dataset *d, int degrees, hg_dataset *fresh, char *message)
{
	HG__TRY(hg__data_alloc(d->nodes, sizeof(float), "features", &fresh->feat, message));
	float *x = fresh->feat;
	for (int64_t i = 0; i < d->nodes; i++)
		x[i] = degrees ? (float)degree_of(d, i) : 1.0f;
	fresh->features = 1;
	return HG_OK;
}

static hg_status make_one_hot(const hg_dataset *d, hg_dataset *fresh, char *message)
{
	int64_t *degree = NULL;
	HG__TRY(hg__data_alloc(d->nodes, sizeof *degree, "degrees", (void **)&degree, message));
	for (int64_t i = 0; i < d->nodes; i++)
		degree[i] = degree_of(d, i);
	const hg_status status = hg__distinct_features(degree, NULL, 0, fresh, message);
	free(degree);
	return status;
}

hg_status hg_dataset_make_features(hg_dataset *d, hg_made_features kind, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "make_features: dataset is NULL");
	if ((unsigned)kind > HG_MADE_ONE_HOT_DEGREE)
		return hg__data_fail(message, HG_ERR_ARG, "make_features: %d is no hg_made_features",
		                     (int)kind);
	hg_dataset fresh = {.nodes = d->nodes, .feat_dtype = HG_F32};
	const hg_status status = kind == HG_MADE_ONE_HOT_DEGREE
	                             ? make_one_hot(d, &fresh, message)
	                             : make_column(d, kind == HG_MADE_DEGREE, &fresh, message);
	if (status == HG_OK) {
		hg__replace_features(d, &fresh);
		return HG_OK;
	}
	free(fresh.feat_rowptr);
	free(fresh.feat_col);
	return status;
}
