/* Number labels of any values by their rank. */
#include "import/distinct.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class_names.h"

static int ascending(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

hg_status hg__distinct_find(const int64_t *values, int64_t count, struct hg__distinct *k,
                            char *message)
{
	*k = (struct hg__distinct){NULL, 0};
	HG__TRY(hg__data_alloc(count, sizeof *k->at, "labels", (void **)&k->at, message));
	if (count)
		memcpy(k->at, values, (size_t)count * sizeof *k->at);
	qsort(k->at, (size_t)count, sizeof *k->at, ascending);
	for (int64_t i = 0; i < count; i++)
		if (i == 0 || k->at[i] != k->at[i - 1])
			k->at[k->count++] = k->at[i];
	return HG_OK;
}

int32_t hg__distinct_index(const struct hg__distinct *k, int64_t value)
{
	const int64_t *found = bsearch(&value, k->at, (size_t)k->count, sizeof value, ascending);
	return (int32_t)(found - k->at);
}

hg_status hg__distinct_labels(const int64_t *values, int64_t count, hg_dataset *d, char *message)
{
	struct hg__distinct classes;
	HG__TRY(hg__distinct_find(values, count, &classes, message));
	hg_status status =
	    hg__data_alloc(count, sizeof *d->label, "labels", (void **)&d->label, message);
	if (status == HG_OK && classes.count > INT32_MAX)
		status = hg__data_fail(message, HG_ERR_RANGE,
		                       "labels: %" PRId64 " classes, at most 2147483647 are possible",
		                       classes.count);
	for (int64_t i = 0; status == HG_OK && i < count; i++)
		d->label[i] = hg__distinct_index(&classes, values[i]);
	d->classes = (int32_t)classes.count;
	free(classes.at);
	return status;
}

hg_status hg__distinct_names(const int64_t *values, int64_t count, hg_dataset *d, char *message)
{
	struct hg__distinct classes;
	struct hg__names names = {.at = NULL};
	HG__TRY(hg__distinct_find(values, count, &classes, message));
	const int same = classes.count == 0 ||
	                 (classes.at[0] == 0 && classes.at[classes.count - 1] == classes.count - 1);
	hg_status status = HG_OK;
	for (int64_t c = 0; c < classes.count && status == HG_OK && !same; c++) {
		char text[24];
		(void)snprintf(text, sizeof text, "%" PRId64, classes.at[c]);
		status = hg__names_add(&names, text, strlen(text), message);
	}
	free(classes.at);
	if (status == HG_OK)
		hg__names_take(&names, d);
	hg__names_free(&names);
	return status;
}

static hg_status build_one_hot(const int64_t *labels, const struct hg__distinct *distinct,
                               hg_dataset *d, char *message)
{
	HG__TRY(hg__data_alloc(d->nodes + 1, sizeof *d->feat_rowptr, "features",
	                       (void **)&d->feat_rowptr, message));
	HG__TRY(
	    hg__data_alloc(d->nodes, sizeof *d->feat_col, "features", (void **)&d->feat_col, message));
	for (int64_t i = 0; i < d->nodes; i++) {
		d->feat_rowptr[i] = i;
		d->feat_col[i] = hg__distinct_index(distinct, labels[i]);
	}
	d->feat_rowptr[d->nodes] = d->nodes;
	d->features = distinct->count;
	return HG_OK;
}

static hg_status build_dense(const int64_t *labels, const struct hg__distinct *distinct,
                             const float *attributes, int64_t width, hg_dataset *d, char *message)
{
	float *x = NULL;
	const int64_t features = width + distinct->count;
	HG__TRY(hg__data_alloc(d->nodes, (size_t)features * sizeof *x, "features", &d->feat, message));
	d->features = features;
	x = d->feat;
	for (int64_t i = 0; i < d->nodes; i++, x += features) {
		memcpy(x, attributes + i * width, (size_t)width * sizeof *x);
		memset(x + width, 0, (size_t)distinct->count * sizeof *x);
		if (labels)
			x[width + hg__distinct_index(distinct, labels[i])] = 1.0f;
	}
	return HG_OK;
}

hg_status hg__distinct_features(const int64_t *labels, const float *attributes, int64_t width,
                                hg_dataset *d, char *message)
{
	struct hg__distinct distinct = {NULL, 0};
	hg_status status = labels ? hg__distinct_find(labels, d->nodes, &distinct, message) : HG_OK;
	d->feat_dtype = HG_F32;
	if (status == HG_OK && attributes)
		status = build_dense(labels, &distinct, attributes, width, d, message);
	else if (status == HG_OK && labels)
		status = build_one_hot(labels, &distinct, d, message);
	free(distinct.at);
	return status;
}
