/* Read a dataset file and take it to a device as the options of a training run ask. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "task.h"
#include "training.h"

const char *dataset_rows_note(const hg_rows_advice *rows)
{
	return rows->normalize ? "rows divided by their sums" : "rows as stored";
}

const char *dataset_features_text(const hg_dataset *d, int sparse)
{
	const int stored_sparse = d->feat_rowptr != NULL;
	return sparse          ? stored_sparse ? "sparse" : "stored dense, used sparse"
	       : stored_sparse ? "stored sparse, used dense"
	                       : "dense";
}

hg_status dataset_refuse(const struct training *t, const char *why, char *message)
{
	(void)snprintf(message, HG_DATA_MESSAGE, "%s: %s", t->data, why);
	return HG_ERR_FORMAT;
}

/* Does a row have what the loss learns, a label or a target? */
static int has_truth(const hg_dataset *d, hg_loss loss, int64_t row)
{
	if (loss == HG_LOSS_CROSS_ENTROPY)
		return d->label && d->label[row] >= 0;
	for (int64_t c = 0; c < d->targets; c++)
		if (!isnan(d->target[row * d->targets + c]))
			return 1;
	return 0;
}

int dataset_has_split(const hg_dataset *d, hg_loss loss, const uint8_t *mask)
{
	const int64_t rows = d->graph_ptr ? d->graphs : d->nodes;
	int64_t i = 0;
	while (mask && i < rows && (!mask[i] || !has_truth(d, loss, i)))
		i++;
	return mask && i < rows;
}

/* An option that does not apply to this dataset is refused, because it would silently have no
 * effect. NULL: all options apply. */
static const char *misfit(const hg_dataset *d, const struct training *t)
{
	if (t->readout && !d->graph_ptr)
		return "is one graph, but --readout is for datasets of many graphs";
	if (t->readout_layers && !d->graph_ptr)
		return "is one graph, but --readout-layers is for datasets of many graphs";
	if (t->out_heads >= 0 && d->graph_ptr)
		return "holds many graphs, but --out-heads is for the last layer on one graph";
	return task_misfit(t, d);
}

static hg_status rows_prepare(const struct training *t, hg_dataset *d, hg_rows_advice *rows,
                              char *message)
{
	*rows =
	    (hg_rows_advice){.size = sizeof *rows, .normalize = strcmp(t->row_normalize, "on") == 0};
	(void)snprintf(rows->why, sizeof rows->why, "--row-normalize %s", t->row_normalize);
	const hg_status status =
	    strcmp(t->row_normalize, "auto") == 0 ? hg_dataset_advise_rows(d, rows, message) : HG_OK;
	return status >= 0 && rows->normalize ? hg_dataset_row_normalize(d, message) : status;
}

hg_status dataset_use_fold(const struct training *t, hg_dataset *d, int64_t fold, char *message)
{
	char why[HG_DATA_MESSAGE] = "";
	const hg_status status =
	    hg_dataset_use_fold(d, fold, training_held_out(t) ? HG_FOLD_HELD_OUT : HG_FOLD_NEXT, why);
	if (status < 0)
		(void)dataset_refuse(t, why, message);
	return status == HG_ERR_STATE || status == HG_ERR_ARG ? HG_ERR_FORMAT : status;
}

/* Takes the fold of --fold. */
static hg_status take_fold(const struct training *t, hg_dataset *d, char *message)
{
	if (!d->fold || t->fold < d->folds)
		return dataset_use_fold(t, d, t->fold, message);
	(void)snprintf(message, HG_DATA_MESSAGE,
	               "--fold is %" PRId64 ", expected 0 to %" PRId32 ", the folds of %s", t->fold,
	               d->folds - 1, t->data);
	return HG_ERR_FORMAT;
}

hg_status dataset_load(const struct training *t, hg_dataset **dataset, hg_rows_advice *rows,
                       char *message)
{
	char why[HG_DATA_MESSAGE] = "";
	hg_status status = hg_dataset_read(t->data, dataset, message);
	if (status < 0)
		return status;
	if (t->fold >= 0)
		status = take_fold(t, *dataset, message);
	if (status < 0)
		return status;
	const hg_status sound = hg_dataset_check_training(*dataset, t->data, message);
	if (sound < 0)
		return sound;
	const char *unfit = misfit(*dataset, t);
	if (unfit)
		return dataset_refuse(t, unfit, message);
	status = rows_prepare(t, *dataset, rows, why);
	if (status < 0)
		(void)dataset_refuse(t, why, message);
	return status < 0 ? status : sound;
}

hg_upload_config dataset_upload_config(const struct training *t, const hg_train_config *run)
{
	hg_upload_config config = hg_upload_config_for(run);
	if (t->no_self_loops)
		config.self_loops = 0;
	if (strcmp(t->sparse_features, "auto") != 0)
		config.features =
		    strcmp(t->sparse_features, "on") == 0 ? HG_UPLOAD_SPARSE : HG_UPLOAD_DENSE;
	return config;
}

hg_status dataset_upload(const struct training *t, const hg_dataset *d, hg_context *ctx,
                         const hg_upload_config *config, hg_device_data **data, char *message)
{
	char why[HG_DATA_MESSAGE] = "";
	const hg_status status = hg_dataset_upload(d, ctx, config, data, why);
	if (status < 0)
		(void)dataset_refuse(t, why, message);
	return status;
}

hg_status dataset_train_data(const hg_dataset *d, const hg_device_data *data,
                             const hg_rows_advice *rows, hg_train_data *train, char *message)
{
	const hg_train_data none = HG_TRAIN_DATA_INIT;
	*train = none;
	train->features_note = dataset_rows_note(rows);
	train->rows_normalized = rows->normalize;
	const hg_status status = hg_dataset_train_data(d, data, train, message);
	if (status <= 0)
		return status;
	*message = 0; /* what is suspect was said when the file was read */
	return HG_OK;
}
