/* What a training run takes from a dataset: whether it can be trained on, the shape of the model,
 * labels, targets and splits. */
#include <inttypes.h>
#include <math.h>

#include "core/versioned.h"
#include "halfgraph/upload.h"
#include "internal.h"

/* ---- can it be trained on? ---- */

/* Nodes or graphs: who carries the labels, and the group of the file that holds them. */
static const char *labelled_name(const hg_dataset *d)
{
	return d->graph_ptr ? "graph" : "node";
}

static hg_status check_parts(const hg_dataset *d, const char *origin, char *message)
{
	const char *who = labelled_name(d);
	if ((!d->feat && !d->feat_rowptr) || !d->features)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "%s: has no features to train on: make it from a source that has some (npz: attr_*, "
		    "tu: labels or attributes of nodes), add some (h5convert FILE --features degree -o "
		    "OUT.h5), or write nodes/feat, as data/FORMAT.md shows",
		    origin);
	if (!d->label && !d->target)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "%s: has no labels to train on: write %ss/label, or %ss/target for real targets, as "
		    "data/FORMAT.md shows, or add labels (h5convert FILE --labels LABELS -o OUT.h5)",
		    origin, who, who);
	if (d->label && d->classes < 1)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: num_classes is 0, expected at least 1 to train on", origin);
	if (!d->train_mask && d->fold)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: has %" PRId32 " folds but no training split: train all of them "
		                     "(hg-train --folds) or one (--fold 0)",
		                     origin, d->folds);
	if (!d->train_mask)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "%s: has no training split: h5convert FILE --fold 0/10 or --split random:0.6/0.2/0.2 "
		    "-o OUT.h5 makes one, or write %ss/train_mask, as data/FORMAT.md shows",
		    origin, who);
	return HG_OK;
}

/* More classes than labelled rows: at least one class has no row to learn it from. */
static hg_status note_classes(const hg_dataset *d, int64_t labelled, const char *origin,
                              char *message)
{
	if (!d->label || d->classes <= labelled)
		return HG_OK;
	return hg__data_fail(message, HG_INFO_SUSPECT,
	                     "%s: num_classes is %" PRId32 ", more than the %" PRId64
	                     " labelled %s%s: the model has an output for each class, also for those "
	                     "that nothing is labelled with",
	                     origin, d->classes, labelled, labelled_name(d), labelled == 1 ? "" : "s");
}

static int has_label(const hg_dataset *d, int64_t row)
{
	return d->label && d->label[row] >= 0;
}

/* Does a row have a label or a target? Which of them a run learns is said by its loss, by which
 * hg_train_create refuses what it cannot learn. */
static int has_truth(const hg_dataset *d, int64_t row)
{
	int has = has_label(d, row);
	for (int64_t c = 0; c < d->targets; c++)
		has |= !isnan(d->target[row * d->targets + c]);
	return has;
}

hg_status hg_dataset_check_training(const hg_dataset *d, const char *origin, char *message)
{
	int64_t labelled = 0, learnt = 0;
	if (!d)
		return hg__data_fail(message, HG_ERR_ARG, "check_training: dataset is NULL");
	if (!origin)
		origin = d->name ? d->name : "dataset";
	HG__TRY(check_parts(d, origin, message));
	const int64_t rows = hg__data_labelled(d);
	for (int64_t i = 0; i < rows; i++) {
		labelled += has_label(d, i);
		learnt += has_truth(d, i) && d->train_mask[i];
	}
	if (!learnt)
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: none of %" PRId64 " %ss %s in %ss/train_mask, "
		                     "expected at least one to train on",
		                     origin, rows, labelled_name(d),
		                     !d->target  ? "is labelled and"
		                     : !d->label ? "has a target and is"
		                                 : "is labelled or has a target and is",
		                     labelled_name(d));
	return note_classes(d, labelled, origin, message);
}

/* ---- the model ---- */

hg_status hg_dataset_configure(const hg_dataset *d, hg_model_config *model, char *message)
{
	if (!d || !model)
		return hg__data_fail(message, HG_ERR_ARG, "configure: %s is NULL", d ? "model" : "dataset");
	if (model->size != sizeof *model)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "configure: model.size is %zu, expected %zu (start from "
		                     "hg_model_config_default)",
		                     model->size, sizeof *model);
	const hg_model_info *info = hg_model_get_info(model->name);
	const int64_t edges = d->edge_features + (d->edge_label ? d->edge_classes : 0);
	if (info && info->edge_features && edges == 0)
		return hg__data_fail(
		    message, HG_ERR_FORMAT,
		    "the edges of %s have neither attributes nor labels, which a %s reads: import a "
		    "dataset with some (h5convert --inspect shows them), or choose a model without, such "
		    "as "
		    "gin",
		    d->name ? d->name : "the dataset", info->name);
	model->edge_features = info && info->edge_features ? edges : 0;
	model->in_features = d->features;
	model->out_features = d->label ? d->classes : d->targets;
	if (!d->graph_ptr)
		model->readout = -1;
	else if (model->readout < 0)
		model->readout = HG_REDUCE_SUM;
	return HG_OK;
}

/* ---- the data ---- */

/* The device data must be that of this dataset, as far as its shape tells. */
static hg_status check_shape(const hg_dataset *d, const hg_device_data *data, char *message)
{
	const int64_t rows = hg_graph_rows(data->graph), graphs = hg_graph_batch(data->graph),
	              columns = data->x ? hg_tensor_cols(data->x) : hg_graph_cols(data->x_sparse);
	if (!data->graph || (!data->x && !data->x_sparse))
		return hg__data_fail(message, HG_ERR_ARG, "train_data: data has no %s",
		                     data->graph ? "features" : "graph");
	if (rows != d->nodes)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "train_data: data has %" PRId64 " nodes, the dataset has %" PRId64,
		                     rows, d->nodes);
	if (columns != d->features)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "train_data: data has %" PRId64 " features, the dataset has %" PRId64,
		                     columns, d->features);
	if (graphs != d->graphs)
		return hg__data_fail(message, HG_ERR_SHAPE,
		                     "train_data: data has %" PRId64 " graphs, the dataset has %" PRId64,
		                     graphs, d->graphs);
	return HG_OK;
}

hg_status hg_dataset_train_data(const hg_dataset *d, const hg_device_data *data,
                                hg_train_data *train, char *message)
{
	if (!d || !data || !train)
		return hg__data_fail(message, HG_ERR_ARG, "train_data: %s is NULL",
		                     !d      ? "dataset"
		                     : !data ? "data"
		                             : "train");
	if (train->size != sizeof *train || train->input.size != sizeof train->input)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "train_data: train's sizes are not set: start from "
		                     "HG_TRAIN_DATA_INIT");
	HG__TRY(check_shape(d, data, message));
	const hg_status status = hg_dataset_check_training(d, NULL, message);
	if (status < 0)
		return status;
	train->input.graph = data->graph;
	train->input.x = data->x;
	train->input.x_sparse = data->x_sparse;
	train->input.edge_x = data->edge_x;
	train->self_loops = data->self_loops;
	train->unweighted = data->unweighted;
	train->labels = d->label;
	train->targets = d->target;
	train->target_cols = d->targets;
	train->train_mask = d->train_mask;
	train->val_mask = d->val_mask;
	train->test_mask = d->test_mask;
	train->column_mean = d->feat_mean;
	train->column_deviation = d->feat_deviation;
	train->class_name = d->label ? d->class_name : NULL;
	train->class_name_bytes = d->label ? d->class_name_bytes : 0;
	return status;
}
