/** @file
 * Predictions for datasets, with a trained model from a file:
 *
 *     hg_model_load(context, "gcn.h5", &predictor, message)          (checkpoint.h)
 *     hg_predictor_prepare(predictor, dataset, message)              features as in the training
 *     hg_dataset_predict(dataset, predictor, &prediction, message)   upload, forward pass, softmax
 *     hg_prediction_evaluate, hg_prediction_write, hg_prediction_free
 *
 * The dataset may be another one than that of the training. It needs the same number of features,
 * and neither labels nor splits.
 *
 * Shapes    n rows: nodes, or graphs where the model has a readout; C classes, labels or
 *           targets.
 * Owner     A prediction owns its arrays, allocated with malloc.
 * Threads   One thread at a time per context.
 * Errors    `message` is as in file.h. */
#ifndef HALFGRAPH_PREDICTION_H
#define HALFGRAPH_PREDICTION_H

#include "halfgraph/dataset.h"
#include "halfgraph/predictor.h"

HG_EXTERN_C_BEGIN

/** What a model predicts for a dataset. */
typedef struct hg_prediction {
	hg_loss loss;  /**< what the model learnt (hg_predictor_loss) */
	int64_t rows;  /**< n */
	int64_t cols;  /**< C: classes, labels or targets */
	int of_graphs; /**< 1: rows are graphs, 0: nodes */
	/** [n]: the numbers by which the user knows the nodes (hg_dataset_node); of graphs 0 to n-1 */
	int64_t *id;
	/** [n]: the class of the first largest logit that is a number; -1: none. NULL unless classes
	 * were learnt */
	int32_t *label;
	float *logits; /**< [n, C]: logits, or the predicted real targets */
	/** [n, C]: of classes the softmax of the logits, NaN in a row with NaN or +inf; of several
	 * labels the sigmoid of each. NULL for real targets */
	float *probability;
	/** [embedding_rows, embedding_cols]: what a layer computed (hg_predict_config.embed), or NULL
	 */
	float *embedding;
	int64_t embedding_rows; /**< rows; of a graph task with hg_predict_config.of_nodes the nodes */
	int64_t embedding_cols; /**< columns (hg_predictor_embedding_cols) */
	/** [embedding_rows]: the numbers of its nodes where its rows are not those of the prediction,
	 * else NULL: its rows have the ids of the prediction */
	int64_t *embedding_id;
	/** the names of the classes as the run knew them, UTF-8, one after the other, each with its
	 * terminating 0 (hg_prediction_class_name); or NULL */
	char *class_name;
	int64_t class_name_bytes; /**< of class_name */
	/** the texts by which the user knows the nodes (hg_dataset.node_name), in the order of the
	 * rows, or of the rows of the embedding where only these are nodes; or NULL */
	char *node_name;
	int64_t node_name_bytes; /**< of node_name */
} hg_prediction;

/** What hg_dataset_predict_with predicts. */
typedef struct hg_predict_config {
	size_t size;
	int embed;    /**< 1: also the embedding of `layer`; 0 (default): none */
	int layer;    /**< 0 to layers, or HG_EMBED_LAST (default), as hg_predictor_embed has it */
	int of_nodes; /**< of a graph task: 1: embeddings of nodes, 0 (default): of graphs */
	/** 1: the dataset is as it was read: a copy of its features is prepared (hg_predictor_prepare);
	 * 0 (default): hg_predictor_prepare has prepared it */
	int prepare;
} hg_predict_config;
/** The defaults of the fields. */
#define HG_PREDICT_CONFIG_INIT HG__INIT(hg_predict_config, HG__SET(layer, HG_EMBED_LAST))

/** How good predictions are, on the training, validation and test set. */
typedef struct hg_evaluation {
	size_t size;
	hg_metric metric;   /**< what was computed */
	double value[3];    /**< the metric; NaN where there is no such set */
	int64_t right[3];   /**< of classes: rows of these sets at their label */
	int64_t counted[3]; /**< rows of these sets that have a label or a target; 0: no such set */
	int64_t nonfinite_logits; /**< logits of all rows that are not finite */
} hg_evaluation;
/** An empty hg_evaluation with its size set. */
#define HG_EVALUATION_INIT HG__INIT_ZERO(hg_evaluation)

/** Checks that a dataset fits a model, and prepares its features as those of the training were:
 * standardises each column with the means and deviations of the training's dataset, unless it was
 * standardised with the same ones, and divides each row by its sum if the run did. Call it once, on
 * the dataset as it was read.
 * @param predictor  the predictor.
 * @param dataset    a dataset that hg_dataset_check accepts, changed in place; unchanged on
 *                   failure.
 * @param message    receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_FORMAT (it has no features, or it was
 *         standardised with other numbers than the data of the training, or that was not: the
 *         message names a column); HG_ERR_SHAPE
 *         (another number of features than the model reads, or a model of graphs and one graph, or
 *         a model of nodes and a batch: the message has both); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_predictor_prepare(const hg_predictor *predictor,
                                                   hg_dataset *dataset, char *message);

/** Predicts every row: uploads graph and features as the run did (self loops, weights of edges,
 * sparse or dense, type), runs the model and frees the upload. On the training's dataset and device
 * the logits have the bits of the run.
 * @param dataset     a dataset that hg_predictor_prepare has prepared.
 * @param predictor   the predictor.
 * @param prediction  receives the prediction, owned by the caller (hg_prediction_free); NULL on
 *                    failure.
 * @param message     receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_FORMAT, HG_ERR_SHAPE (as
 *         hg_predictor_prepare); HG_ERR_RANGE (a feature does not fit f16, or the policy refuses
 *         what is not proved); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_dataset_predict(const hg_dataset *dataset, hg_predictor *predictor,
                                                 hg_prediction **prediction, char *message);

/** Predicts as hg_dataset_predict, and more if the configuration says so.
 * @param dataset     a dataset that hg_predictor_prepare has prepared, unless config->prepare says
 *                    otherwise. It does not change.
 * @param predictor   the predictor.
 * @param config      what to predict; its size is set. NULL: the defaults.
 * @param prediction  receives the prediction, owned by the caller (hg_prediction_free); NULL on
 *                    failure.
 * @param message     receives the reason of a failure, or NULL.
 * @return HG_OK; the errors of hg_dataset_predict; HG_ERR_ARG also where config's size is not set,
 *         or the model has no such embedding (the message says which it has). */
HG_API HG_NODISCARD hg_status hg_dataset_predict_with(const hg_dataset *dataset,
                                                      hg_predictor *predictor,
                                                      const hg_predict_config *config,
                                                      hg_prediction **prediction, char *message);

/** Frees a prediction with its arrays.
 * @param prediction  a prediction or NULL. */
HG_API void hg_prediction_free(hg_prediction *prediction);

/** The name of a class.
 *
 * Cost      Linear in the number of classes.
 * @param prediction  the prediction or NULL.
 * @param c           the class, such as hg_prediction.label of a row.
 * @return its name, borrowed; NULL where it has none. */
HG_API const char *hg_prediction_class_name(const hg_prediction *prediction, int64_t c);

/** Compares predictions with the labels or targets of their dataset, as the training does.
 * @param prediction  the prediction.
 * @param dataset     the dataset, with labels, or with as many columns of targets as are predicted.
 * @param metric      a metric of what the model learnt. HG_METRIC_NONE: that which hg_train_config
 *                    takes by itself; hg_state_best has that of the run.
 * @param evaluation  receives the values; start from HG_EVALUATION_INIT.
 * @param message     receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, evaluation's size is not set, or the metric is not
 *         one of what is predicted); HG_ERR_SHAPE (the dataset has other rows or columns);
 *         HG_ERR_STATE (it has no labels or targets); HG_ERR_RANGE (a label is not one of the
 *         classes, or a target of several labels is neither 0 nor 1); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_prediction_evaluate(const hg_prediction *prediction,
                                                     const hg_dataset *dataset, hg_metric metric,
                                                     hg_evaluation *evaluation, char *message);

/** The format in which hg_prediction_write would write a file. Call it before long work.
 * @param path  the file or NULL.
 * @return ".csv", ".npz" or ".h5", a constant; NULL: its ending is none of them. */
HG_API const char *hg_prediction_format(const char *path);

/** Writes a prediction, atomically (hg_file_write). The ending of the name tells the format
 * (data/FORMAT.md). Each holds the id of every row, with class and probabilities, or with the
 * probabilities of several labels, or with the values of real targets, and the embedding if there
 * is one:
 *
 *     .csv   text: a line of names, "id,class,p0,p1,..", "id,p0,.." or "id,t0,..", then the rows;
 *            a class that has a name is named, none is an empty field then; an embedding of the
 *            same rows appends "e0,e1,.."
 *     .npz   numpy: id [n] int64, class [n] int32, probability or value [n, C] float32, embedding
 *            [rows, d] float32, embedding_id [rows] int64 where these are not the rows of id,
 *            class_names [C] texts
 *     .h5    HDF5, with a checksum: the same arrays
 *
 * @param prediction  the prediction.
 * @param path        the file.
 * @param message     receives the reason of a failure, or NULL.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, another ending, or a .csv and an embedding of other
 *         rows); HG_ERR_RANGE (an .npz of 4 GiB or more); HG_ERR_IO (it cannot be written);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_prediction_write(const hg_prediction *prediction, const char *path,
                                                  char *message);

HG_EXTERN_C_END
#endif
