/* Transforms of features: normalise rows, convert to the stored type, and copy. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/normalize.h"
#include "internal.h"

static hg_status normalize_sparse(hg_dataset *d, char *message)
{
	const int64_t stored = d->feat_rowptr[d->nodes];
	if (!d->feat_value) {
		HG__TRY(hg__data_alloc(stored, sizeof *d->feat_value, "feature values",
		                       (void **)&d->feat_value, message));
		for (int64_t e = 0; e < stored; e++)
			d->feat_value[e] = 1;
	}
	for (int64_t i = 0; i < d->nodes; i++)
		hg__row_normalize(d->feat_value + d->feat_rowptr[i], HG_F32,
		                  d->feat_rowptr[i + 1] - d->feat_rowptr[i]);
	return HG_OK;
}

hg_status hg_dataset_row_normalize(hg_dataset *d, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "row_normalize: dataset is NULL");
	if (d->feat_rowptr)
		HG__TRY(normalize_sparse(d, message));
	for (int64_t i = 0; d->feat && i < d->nodes; i++)
		hg__row_normalize((char *)d->feat +
		                      (size_t)(i * d->features) * hg_dtype_size(d->feat_dtype),
		                  d->feat_dtype, d->features);
	d->feat_amax = hg__data_amax(d);
	return HG_OK;
}

static hg_status too_large(const hg_dataset *d, int64_t row, int64_t column, float x, char *message)
{
	const int64_t id = hg_dataset_node(d, row);
	return hg__data_fail(message, HG_ERR_RANGE,
	                     "features: row %" PRId64 " (node %" PRId64 "), column %" PRId64
	                     " is %g, beyond f16's 65504: clip it or keep f32",
	                     row, id, column, (double)x);
}

/* Refuses the first value that f16 cannot hold and names its row and column. */
hg_status hg_dataset_check_f16(const hg_dataset *d, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "check_f16: dataset is NULL");
	for (int64_t i = 0; d->feat && i < d->nodes; i++)
		for (int64_t j = 0; j < d->features; j++) {
			const float x = hg__data_feature(d, i * d->features + j);
			if (!(fabs((double)x) <= HG__HALF_MAX))
				return too_large(d, i, j, x, message);
		}
	for (int64_t i = 0; d->feat_value && i < d->nodes; i++)
		for (int64_t e = d->feat_rowptr[i]; e < d->feat_rowptr[i + 1]; e++)
			if (!(fabs((double)d->feat_value[e]) <= HG__HALF_MAX))
				return too_large(d, i, d->feat_col[e], d->feat_value[e], message);
	return HG_OK;
}

static float clipped(float x)
{
	return x > (float)HG__HALF_MAX    ? (float)HG__HALF_MAX
	       : x < -(float)HG__HALF_MAX ? -(float)HG__HALF_MAX
	                                  : x;
}

/* Round sparse values to the type; they stay stored as f32 in memory and in the file. */
static void convert_sparse(hg_dataset *d, hg_dtype dtype, int clip)
{
	for (int64_t e = 0; d->feat_value && e < d->feat_rowptr[d->nodes]; e++) {
		const float x = clip ? clipped(d->feat_value[e]) : d->feat_value[e];
		d->feat_value[e] = dtype == HG_F16 ? hg_half_to_float(hg_half_from_float(x)) : x;
	}
}

static hg_status convert_dense(hg_dataset *d, hg_dtype dtype, int clip, char *message)
{
	const int64_t count = d->nodes * d->features;
	void *memory = NULL;
	HG__TRY(hg__data_alloc(count, hg_dtype_size(dtype), "features", &memory, message));
	for (int64_t i = 0; i < count; i++) {
		const float found = hg__data_feature(d, i), x = clip ? clipped(found) : found;
		if (dtype == HG_F16)
			((hg_half *)memory)[i] = hg_half_from_float(x);
		else
			((float *)memory)[i] = x;
	}
	free(d->feat);
	d->feat = memory;
	d->feat_dtype = dtype;
	return HG_OK;
}

hg_status hg_dataset_features_to(hg_dataset *d, hg_dtype dtype, int clip, char *message)
{
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "features_to: dataset is NULL");
	if (dtype != HG_F16 && dtype != HG_F32)
		return hg__data_fail(message, HG_ERR_DTYPE, "features_to: type %d is neither f16 nor f32",
		                     (int)dtype);
	if (dtype == HG_F16 && !clip)
		HG__TRY(hg_dataset_check_f16(d, message));
	if (d->feat)
		HG__TRY(convert_dense(d, dtype, clip, message));
	else
		convert_sparse(d, dtype, clip);
	d->feat_amax = hg__data_amax(d);
	return HG_OK;
}

/* ---- copies ---- */

/* *memory := a copy of an array; nothing for NULL. */
static hg_status copy_array(const void *from, int64_t count, size_t size, void **memory,
                            char *message)
{
	if (!from)
		return HG_OK;
	HG__TRY(hg__data_alloc(count, size, "a copy of the features", memory, message));
	memcpy(*memory, from, (size_t)count * size);
	return HG_OK;
}

static hg_status copy_features(const hg_dataset *d, hg_dataset *own, char *message)
{
	const int64_t stored = d->feat_rowptr ? d->feat_rowptr[d->nodes] : 0;
	const struct {
		const void *from;
		void **to;
		int64_t count;
		size_t size;
	} arrays[] = {
	    {d->feat, &own->feat, d->nodes * d->features,
	     d->feat_dtype == HG_F16 ? sizeof(hg_half) : sizeof(float)},
	    {d->feat_rowptr, (void **)&own->feat_rowptr, d->nodes + 1, sizeof *d->feat_rowptr},
	    {d->feat_col, (void **)&own->feat_col, stored, sizeof *d->feat_col},
	    {d->feat_value, (void **)&own->feat_value, stored, sizeof *d->feat_value},
	    {d->feat_mean, (void **)&own->feat_mean, d->features, sizeof *d->feat_mean},
	    {d->feat_deviation, (void **)&own->feat_deviation, d->features, sizeof *d->feat_deviation},
	};
	for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++)
		HG__TRY(copy_array(arrays[k].from, arrays[k].count, arrays[k].size, arrays[k].to, message));
	return HG_OK;
}

hg_status hg__features_own(const hg_dataset *d, hg_dataset *own, char *message)
{
	*own = *d;
	own->feat = NULL;
	own->feat_rowptr = NULL;
	own->feat_col = NULL;
	own->feat_value = NULL;
	own->feat_mean = own->feat_deviation = NULL;
	const hg_status status = copy_features(d, own, message);
	if (status < 0)
		hg__features_drop(own);
	return status;
}

void hg__features_drop(hg_dataset *own)
{
	free(own->feat);
	free(own->feat_rowptr);
	free(own->feat_col);
	free(own->feat_value);
	free(own->feat_mean);
	free(own->feat_deviation);
}
