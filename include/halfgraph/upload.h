/** @file
 * From a dataset to a training run: graph and features go to a device, and with labels and splits
 * to hg_train_create. tools/examples/train_file.c is the whole program.
 *
 *     hg_dataset_check_training    can it be trained on?
 *     hg_dataset_configure         what the dataset decides of the model: widths, task
 *     hg_upload_config_for         what the model and the policy want: self loops, type of state
 *     hg_dataset_upload            graph and features on the device of a context
 *     hg_dataset_train_data        both, with labels and splits, for hg_train_create
 *
 * Shapes    n nodes, m edges, F features, C classes, K columns of edges, as in dataset.h.
 * Owner     Device data belongs to the caller. It holds copies, so the dataset may be changed or
 *           freed after the upload. A run borrows it: free the run first.
 * Threads   One thread at a time per context.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_UPLOAD_H
#define HALFGRAPH_UPLOAD_H

#include <stddef.h>

#include "halfgraph/dataset.h"
#include "halfgraph/graph.h"
#include "halfgraph/tensor.h"
#include "halfgraph/train.h"

HG_EXTERN_C_BEGIN

/** The form in which features go to a device, however the dataset stores them. */
typedef enum hg_upload_features {
	/** sparse where fewer than 9 % of the cells are stored, else dense: the sparse product is
	 * faster below that. Dense features stay dense */
	HG_UPLOAD_AUTO = 0,
	HG_UPLOAD_DENSE = 1,  /**< a tensor [n, F]; entries that are not stored become 0 */
	HG_UPLOAD_SPARSE = 2, /**< a weighted graph [n, F] of the entries that are not 0 */
	HG_UPLOAD_NONE = 3    /**< not at all: the graph alone */
} hg_upload_features;

/** How a dataset goes to a device. Start from HG_UPLOAD_CONFIG_INIT or hg_upload_config_for. */
typedef struct hg_upload_config {
	size_t size;
	hg_dtype state; /**< type of dense features: HG_F16 (default) or HG_F32. Sparse ones are f32 */
	int self_loops; /**< 1: a self loop is added to every node that has none; default 0 */
	hg_upload_features features; /**< default HG_UPLOAD_AUTO */
	int unweighted;              /**< 1: edge weights are not copied, so all are 1; default 0 */
	/** 1: the attributes of the edges are copied; 2: if the dataset has any; default 0 */
	int edge_features;
	/** 1: the labels of the edges are copied, a column for each that is 1 where an edge has it,
	 * behind the attributes if these are copied, too; 2: if the dataset has any; default 0 */
	int edge_labels;
	/** 1: dense features and what edges have are tensors in host memory (hg_tensor_create_on_host),
	 * for a dataset of graphs that is learnt in batches and does not fit in device memory; default
	 * 0 */
	int on_host;
} hg_upload_config;
/** The defaults of the fields. */
#define HG_UPLOAD_CONFIG_INIT \
	HG__INIT(hg_upload_config, HG__SET(state, HG_F16) HG__SET(features, HG_UPLOAD_AUTO))

/** Gives the configuration that suits a training run: the state type of its policy, and self loops,
 * or attributes and labels of edges, if its model needs them (hg_model_get_info).
 * @param config  the run's configuration, or NULL: the defaults.
 * @return the configuration. */
HG_API hg_upload_config hg_upload_config_for(const hg_train_config *config);

/** A dataset on the device of a context. A program may keep a member for itself: it sets it to NULL
 * here and frees it itself. */
typedef struct hg_device_data {
	/** [n, n], row = destination, with the self loops and the batch */
	hg_graph *graph;
	hg_tensor *x;       /**< dense features [n, F] in the type that was asked for, or NULL */
	hg_graph *x_sparse; /**< sparse features [n, F], rows = nodes, columns = features, or NULL */
	/** what was asked for of the edges, [m, K] in the type of state, row e = edge e of the graph
	 * (CSR order); rows of 0 for self loops that were added; or NULL */
	hg_tensor *edge_x;
	int self_loops; /**< as in hg_upload_config */
	int unweighted; /**< as in hg_upload_config */
} hg_device_data;

/** Copies a dataset's graph and features, and what its edges have, to the device of a context.
 *
 * Cost      O(m + n F) time, O(m + stored features) where they stay sparse. On the device what
 *           hg_graph_from_csr and the tensor take, and while self loops are added the graph twice.
 *           On the host 4 n F bytes for a while where sparse features become dense, and 8 bytes
 *           per entry where dense ones become sparse, and 4 m K bytes for what edges have.
 * @param dataset  a dataset that hg_dataset_check accepts; it may lack labels and splits.
 * @param context  the context, which stays open until the data is freed.
 * @param config   copied; NULL: HG_UPLOAD_CONFIG_INIT.
 * @param data     receives the device data, owned by the caller (hg_device_data_free); NULL on
 *                 failure.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, config's size is not set, or a field is out of its
 *         range); HG_ERR_DTYPE (state is neither f16 nor f32); HG_ERR_FORMAT (the dataset has no
 *         features and they are not HG_UPLOAD_NONE, a batch without graphs, or edges that lack
 *         what was asked for); HG_ERR_RANGE (a dense feature or an attribute of an edge does not
 *         fit f16: the message names its node or edge and its column); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_dataset_upload(const hg_dataset *dataset, hg_context *context,
                                                const hg_upload_config *config,
                                                hg_device_data **data, char *message);

/** Frees device data with its graph and features. Free first what borrows them: runs, tapes.
 * @param data  device data or NULL. */
HG_API void hg_device_data_free(hg_device_data *data);

/** Checks that a dataset can be trained on: it has features, labels with classes or else targets,
 * and a training split with at least one of them in it. Of a dataset with labels and targets
 * either will do here; hg_train_create refuses a training split without what the loss learns.
 * @param dataset  a dataset that hg_dataset_check accepts.
 * @param origin   what messages call it, such as a file name; NULL: its name.
 * @param message  receives the reason of a failure or of HG_INFO_SUSPECT, or NULL.
 * @return HG_OK; HG_INFO_SUSPECT (it can be trained on, but declares more classes than there are
 *         labelled rows: the model has an output for each); HG_ERR_ARG (dataset is NULL);
 *         HG_ERR_FORMAT (something is missing: the message says what, and how to add it). */
HG_API HG_NODISCARD hg_status hg_dataset_check_training(const hg_dataset *dataset,
                                                        const char *origin, char *message);

/** Sets the fields of a model's configuration that the dataset decides: in_features, out_features
 * (its classes, or the columns of its targets if it has no labels), edge_features of a model that
 * reads them (its attributes of edges, and a column for each label of edges), and the task: readout
 * -1 for one graph; for a batch the readout stays, or becomes HG_REDUCE_SUM if it is -1.
 * @param dataset  the dataset.
 * @param model    changed in place, such as hg_train_config.model.
 * @param message  receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or model's size is not this version's);
 *         HG_ERR_FORMAT (the model reads attributes of edges, and the dataset has neither those nor
 *         labels of edges). */
HG_API HG_NODISCARD hg_status hg_dataset_configure(const hg_dataset *dataset,
                                                   hg_model_config *model, char *message);

/** Puts a dataset and its device data together for hg_train_create: graph, features, labels,
 * targets, masks.
 * @param dataset  the dataset that was uploaded. What train points to belongs to it and must live
 *                 until hg_train_create returns.
 * @param data     its device data, borrowed as hg_train_data says.
 * @param train    receives the data; start from HG_TRAIN_DATA_INIT. features_note and
 *                 rows_normalized stay.
 * @param message  receives the reason of a failure or of HG_INFO_SUSPECT, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, train's size is not this version's, or data has no
 *         graph or no features); HG_ERR_SHAPE (the device data has other rows: the message names
 *         both numbers); the errors and the information of hg_dataset_check_training. */
HG_API HG_NODISCARD hg_status hg_dataset_train_data(const hg_dataset *dataset,
                                                    const hg_device_data *data,
                                                    hg_train_data *train, char *message);

HG_EXTERN_C_END
#endif
