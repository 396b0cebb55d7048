/** @file
 * The usual training loop: one model on one dataset, all of it in every step or, of a dataset of
 * many graphs, in batches of graphs, with evaluation and early stopping. It learns classes
 * (cross-entropy), several labels (BCE) or real targets (MSE, MAE), of nodes or of graphs.
 *
 *     hg_train_config config = hg_train_config_default("gcn");
 *     hg_train_data data = HG_TRAIN_DATA_INIT;         graph, features, labels or targets, masks
 *     hg_train_create, hg_train_run, hg_train_predict, hg_train_free
 *
 * Owner     A run borrows the graph and the features until it is freed. Labels, targets and masks
 *           are copied.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_TRAIN_H
#define HALFGRAPH_TRAIN_H

#include "halfgraph/metrics.h"
#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "halfgraph/optim.h"
#include "halfgraph/schedule.h"
#include "halfgraph/state.h"
#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/** What a run minimises: the mean over the training split of a loss of ops_norm.h. */
typedef enum hg_loss {
	HG_LOSS_CROSS_ENTROPY = 0, /**< hg_softmax_xent of classes: the only one that reads labels */
	HG_LOSS_BCE = 1,           /**< hg_bce_logits of several labels: targets that are 0 or 1 */
	HG_LOSS_MSE = 2,           /**< hg_mse of real targets */
	HG_LOSS_MAE = 3            /**< hg_mae of real targets */
} hg_loss;

/** What a run learns from. n is the number of nodes, or of graphs for a graph task. Host arrays are
 * copied by hg_train_create. */
typedef struct hg_train_data {
	size_t size;
	hg_model_input input;  /**< graph and features, borrowed until the run is freed */
	const int32_t *labels; /**< host [n]: class, or below 0 for an unlabelled row */
	/** host [n], not 0: in the set. NULL: every row with a label or target, also those of the other
	 * sets */
	const uint8_t *train_mask;
	const uint8_t *val_mask;  /**< host [n] or NULL: no validation */
	const uint8_t *test_mask; /**< host [n] or NULL: no test */
	/** how the features were prepared ("rows divided by their sums"), up to 63 bytes, or NULL. It
	 * is a setting of the state, so that going on with other features is reported */
	const char *features_note;
	/** host [n, target_cols], NaN: missing; what every loss but cross-entropy learns from, which
	 * does not read it */
	const float *targets;
	int64_t target_cols; /**< columns of targets, at least 1 where they are read */
	int rows_normalized; /**< 1: the rows of the features were divided by their sums */
	int self_loops;      /**< 1: self loops were added to the graph */
	/** 1: the weights of the edges were left out. These three are settings of the state, too: a
	 * prediction prepares its data alike (hg_predictor_prepare) */
	int unweighted;
	/** host [columns of the features], copied: what they were standardised with
	 * (hg_dataset_standardize), for the state and predictions; or NULL */
	const double *column_mean;
	const double *column_deviation; /**< as column_mean; both or none */
	/** the names of the classes for the state and predictions, copied: UTF-8, one for each class
	 * after the other, each with its terminating 0; or NULL. Only cross-entropy reads them */
	const char *class_name;
	int64_t class_name_bytes; /**< of class_name */
} hg_train_data;
/** An empty hg_train_data with its sizes set. */
#define HG_TRAIN_DATA_INIT \
	HG__INIT(hg_train_data, HG__SET(input.size, sizeof(hg_model_input)) HG__SET(input.x_amax, -1.0))

/** One epoch, for hg_train_fn. Accuracies are those of classes, in [0, 1]. They and the metrics are
 * NaN where they are not evaluated. */
typedef struct hg_train_event {
	size_t size;
	int epoch;  /**< 1 to epochs */
	int epochs; /**< of this run */
	/** training loss of the epoch, before its update; with batches the mean over all that is
	 * learnt, each batch before its own update */
	double loss;
	double train_accuracy; /**< on the training set */
	double val_accuracy;   /**< on the validation set */
	double test_accuracy;  /**< on the test set */
	/** wall time: forward pass, backward pass, update and, where there is one, the evaluation.
	 * Epochs that ran together have their mean */
	double epoch_ms;
	/** what the epoch's step did; with batches the last one that was applied, or the last one, with
	 * the counts and the loss scale after all of them */
	hg_step_info step;
	/** logits of all rows that are not finite, at this epoch's evaluation; where it is not 0 the
	 * accuracies are not reliable. 0 where there is no evaluation */
	int64_t nonfinite_logits;
	double train_metric; /**< hg_train_config.metric on the training set */
	double val_metric;   /**< on the validation set */
	double test_metric;  /**< on the test set */
	int64_t steps;       /**< of this epoch: 1, or the number of batches */
	int64_t skipped;     /**< steps of this epoch that were skipped */
	int64_t overflowed;  /**< those of them whose forward pass overflowed */
	/** of epoch_ms: the time in which the device had nothing to do, before the first of the batches
	 * that are queued together and while their tapes were recorded; 0 without batches */
	double prepare_ms;
} hg_train_event;

/** Called for every epoch, in order. Epochs that ran together are reported one after the other when
 * all of them have finished; a stop at one of them undoes those after it. How many run together
 * changes nothing but the time. The function may read the run, its state and its predictions;
 * hg_train_run and hg_train_set_state are HG_ERR_STATE in it, and it must not call hg_train_free.
 * @param user   hg_train_config.user.
 * @param event  the epoch, valid during the call.
 * @return 0 to go on; not 0 to stop: hg_train_run then returns HG_INFO_STOPPED and a complete
 *         report. */
typedef int (*hg_train_fn)(void *user, const hg_train_event *event);

/** How a run trains. Start from hg_train_config_default. */
typedef struct hg_train_config {
	size_t size;
	/** the model. in_features and out_features 0: taken from the data; a largest label that makes
	 * more classes than there are labelled rows is then refused. With targets out_features is
	 * their number of columns */
	hg_model_config model;
	hg_optim_config optim;      /**< the optimiser */
	hg_policy policy;           /**< the precision */
	int first_layer_decay_only; /**< 1: weight decay on layer 0 alone, as in the GCN paper */
	int epochs;                 /**< at least 1 */
	/** 0: no early stopping; else the run ends after so many epochs in which neither the validation
	 * metric nor the validation loss improved */
	int patience;
	int eval_every;       /**< evaluate every so many epochs, at least 1 */
	hg_train_fn progress; /**< called for every epoch, or NULL */
	void *user;           /**< passed to progress */
	/** how steps run; per_launch is the number of epochs that run together, evaluations included */
	hg_step_config step;
	hg_loss loss; /**< default HG_LOSS_CROSS_ENTROPY */
	/** decides which epoch is the best. HG_METRIC_NONE (default): accuracy for cross-entropy,
	 * ROC-AUC for BCE, RMSE for MSE, MAE for MAE. All but the accuracy of classes are computed by
	 * the host, which waits for the logits of every evaluation */
	hg_metric metric;
	/** 1: MSE and MAE learn targets as they are; 0 (default): each column minus its mean, divided
	 * by its standard deviation, both of the training set. Metrics and predictions are those of
	 * the targets as they are either way; losses are of what is learnt */
	int raw_targets;
	/** 0 (default): every step is on all rows; else graph tasks take a step on each batch of so
	 * many graphs of the training set, which every epoch shuffles anew by the context's seed and
	 * its own number (batches.h). An epoch runs alone then.
	 * Batches are padded to few shapes, each with a tape and a captured step, unless a node has
	 * more than 1024 edges or sparse features cannot be made dense (docs/batches.md) */
	int64_t batch_graphs;
	/** of the learning rate. warmup, every and total are epochs here, each of so many steps as it
	 * has batches; the factor is that of the step. With total 0 cosine and one-cycle end with the
	 * run: at the steps before it and its epochs. A plateau follows the validation metric */
	hg_schedule_config schedule;
	/** host [class_weight_count], read by hg_train_create, or NULL: all 1. Cross-entropy: the
	 * weights of the classes; BCE: of the ones in each column of targets. Finite, at least 0, and
	 * above 0 for a class that is learnt. Metrics are those without weights, and so is the
	 * validation loss that decides between epochs of the same metric */
	const float *class_weights;
	int64_t class_weight_count; /**< as many as out_features */
	float label_smoothing;      /**< cross-entropy: in [0, 1); default 0 */
	/** with batch_graphs: an evaluation computes the logits of so many graphs at a time. 0
	 * (default): of graphs of some 2^20 nodes together, or fewer where there are more than 64
	 * features, but at least batch_graphs, so that its memory does not grow with the dataset. Where
	 * batches are not padded it is on all graphs at once */
	int64_t eval_graphs;
} hg_train_config;

/** The default configuration of a run: the model's defaults, Adam with learning rate 0.01 (sgc:
 * 0.2) and weight decay 5e-4 (gcn: on layer 0 alone; sgc: 1e-5; appnp: 5e-3, on layer 0 alone),
 * policy fp16, 200 epochs, an evaluation after each, no early stopping.
 * @param model  one that hg_model_names lists, borrowed. Another name or NULL is kept, and
 *               hg_train_create refuses it.
 * @return the configuration. */
HG_API hg_train_config hg_train_config_default(const char *model);

/** Class weights that balance a training set, for hg_train_config.class_weights. With n_c rows of
 * class c that are learnt, of n in all, and C classes
 *
 *     w[c] = n / (C n_c)                                          cross-entropy
 *     w[c] = (zeros of column c) / (ones of column c)             BCE
 *
 * and 1 where a divisor is 0 or, of BCE, a column has no zeros.
 * @param data     labels or targets, and train_mask.
 * @param rows     nodes, or graphs for a graph task.
 * @param loss     HG_LOSS_CROSS_ENTROPY or HG_LOSS_BCE.
 * @param count    length of weights: the classes, or data->target_cols. Labels from count on do
 *                 not count.
 * @param weights  host [count], receives the weights.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, also the one the loss learns from, rows below 0,
 *         count below 1 or, for BCE, not target_cols, another loss, or data's size is not set);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_train_balance(const hg_train_data *data, int64_t rows,
                                               hg_loss loss, int64_t count, float *weights);

/** What came of hg_train_run. */
typedef struct hg_train_report {
	size_t size;
	int epochs_run; /**< epochs of this run */
	/** the epoch with the best validation metric (ties: the lower validation loss); the last one
	 * without a validation set. 0: one before this run, of the state that it began from */
	int best_epoch;
	double best_val_accuracy; /**< at the best epoch; NaN without a validation set of classes */
	double test_accuracy;     /**< at the best epoch; NaN without a test set of classes */
	double final_loss;        /**< training loss of the last epoch */
	double epoch_ms_median;   /**< median of hg_train_event.epoch_ms */
	size_t peak_bytes;        /**< most device bytes the context has held (hg_context_memory) */
	size_t state_bytes;       /**< as in hg_plan_info, of the training tape */
	size_t arena_bytes;       /**< as in hg_plan_info, of the training tape */
	int64_t steps_skipped;    /**< skipped steps of this run */
	float loss_scale_final;   /**< loss scale after the last step */
	int loss_finite;          /**< 1: final_loss is finite */
	int64_t nonfinite_logits; /**< at the best epoch, as in hg_train_event */
	int captured;             /**< 1: the last epoch was launched as captured work (step.h) */
	int epochs_together;      /**< most epochs that were queued without a wait between them */
	/** times an op node overflowed behind its guard and was recorded again, rescaled or in f32
	 * (hg_policy.replan) */
	int replans;
	int casts; /**< conversions of whole tensors in a forward pass (hg_plan_info.casts) */
	/** least headroom in bits of an f16 value that the observer saw (observe.h); INFINITY: it saw
	 * none */
	double headroom;
	const char *headroom_name; /**< the tensor with it, owned by the run; NULL: none */
	int rescaled;              /**< results of the final training tape that are stored x 2^-k */
	int promoted;              /**< results of the final training tape that were promoted to f32 */
	hg_metric metric;          /**< the metric that decided which epoch is the best */
	hg_loss loss;              /**< what was minimised */
	double best_val_metric;    /**< at the best epoch; NaN without a validation set */
	double test_metric;        /**< at the best epoch; NaN without a test set */
	int64_t steps_run;         /**< steps of this run */
	/** the sum of hg_train_event.prepare_ms as a part of the time of all epochs; 0 without
	 * batches */
	double prepare_share;
} hg_train_report;
/** An empty hg_train_report with its size set. */
#define HG_TRAIN_REPORT_INIT HG__INIT_ZERO(hg_train_report)

/** A training run: parameters, model, optimiser, tapes. */
typedef struct hg_train hg_train;

/** Creates a run: uploads labels or targets and masks, makes the model, records and compiles the
 * tapes.
 * @param context  the context, which stays open until the run is freed.
 * @param config   copied.
 * @param data     what it points to is copied or borrowed as its fields say.
 * @param train    receives the run, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, a size is not set, graph, features or what the
 *         loss learns from are missing or of another context, no row is labelled and in
 *         train_mask, more classes than labelled rows, a metric that is not one of this loss, a
 *         plateau without val_mask, class weights or smoothing that do not fit the loss, or a field
 *         is out of its range: the message names it); HG_ERR_SHAPE (graph, features, targets
 *         and model do not fit); HG_ERR_DTYPE (features are neither f16 nor f32); HG_ERR_RANGE (the
 *         policy refuses a narrowing, a label is not below out_features, a target is infinite, or
 *         one of BCE is neither 0 nor 1); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_create(hg_context *context, const hg_train_config *config,
                                              const hg_train_data *data, hg_train **train);

/** Frees a run with its parameters, model and tapes. Not from its progress function.
 * @param train  a run or NULL. */
HG_API void hg_train_free(hg_train *train);

/** Trains for config.epochs epochs and then puts the weights of the best of them in place. Called
 * once more it goes on from those; after hg_train_set_state, from that state. Each call counts its
 * epochs from 1 and looks for its own best epoch; but the first one after a state of the same
 * model, policy and data goes on with the best epoch of the state, until it finds a better one.
 * What is reported is what hg_train_predict gives afterwards: if the tapes were recorded again
 * after the best epoch, it is evaluated once more.
 * @param train   the run.
 * @param report  receives the outcome; start from HG_TRAIN_REPORT_INIT.
 * @return HG_OK, also where steps were skipped or the loss is not finite (see the report);
 *         HG_INFO_STOPPED (progress asked for it; the report is complete); HG_ERR_ARG (a pointer is
 *         NULL, or report's size is not set); HG_ERR_STATE (called from its progress function, or
 *         an earlier call failed while it recorded its tapes again); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_run(hg_train *train, hg_train_report *report);

/** Copies the state of training (state.h): after a run, the state after its last step, with the
 * best epoch and its weights beside it; in a progress function, the state after the last of the
 * epochs that ran together, with the history of those that were reported.
 * 20 epochs give the same bits as 10 epochs, this function, hg_train_set_state into a run of the
 * same configuration and data, and 10 more epochs.
 * @param train  the run.
 * @param state  receives the state, owned by the caller (hg_state_free); NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_get_state(hg_train *train, hg_state **state);

/** Puts a state in place, to go on from there: its last weights, and its history, to which later
 * epochs are added. The run's own settings stay. Everything is checked and allocated before
 * anything changes.
 * @param train  the run.
 * @param state  the state, copied.
 * @return HG_OK; HG_INFO_DIFFERS (it is in place, but settings differ: the message names them);
 *         HG_ERR_ARG (a pointer is NULL, or hg_state_fault); HG_ERR_SHAPE (the parameters do not
 *         fit: the message names both shapes); HG_ERR_UNSUPPORTED (it promotes an op this library
 *         lacks); HG_ERR_STATE (called from its progress function); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_set_state(hg_train *train, const hg_state *state);

/** Predicts every row with the weights in place: after hg_train_run, those of the best epoch.
 *
 * Shapes    n rows: nodes, or graphs for a graph task; C columns: out_features.
 * @param train       the run.
 * @param prediction  host [n], receives the first largest logit that is a number; -1 where none is.
 *                    May be NULL where the run learns targets.
 * @param logits      host f32 [n, C], receives the logits, or the predicted real targets; or NULL.
 * @return HG_OK; HG_ERR_ARG (train is NULL, or what must not be NULL is); HG_ERR_STATE (a run
 *         failed as it recorded its evaluation again); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_predict(hg_train *train, int32_t *prediction, float *logits);

/** How a column of the model's output becomes a prediction: output * deviation + mean. Where
 * targets are standardised, a state has both as its settings "target.mean 0", "target.deviation 0"
 * and so on.
 * @param train      the run.
 * @param column     a column of the targets, from 0.
 * @param mean       receives the mean of the targets in the training set; 0 if they are learnt as
 *                   they are.
 * @param deviation  receives their standard deviation; 1 if they are learnt as they are, or all the
 *                   same.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or there is no such column). */
HG_API HG_NODISCARD hg_status hg_train_target_scale(const hg_train *train, int64_t column,
                                                    double *mean, double *deviation);

/** The parameters of a run.
 * @param train  a run or NULL.
 * @return the params, borrowed until the run is freed; NULL for NULL. */
HG_API hg_params *hg_train_params(hg_train *train);

/** The optimiser of a run, for groups of parameters with rates of their own (hg_optim_add_group,
 * hg_optim_assign, hg_optim_set_lr): after hg_train_create, or in the progress function, where the
 * change holds from the epoch after those that ran together. Group 0 has the rate and the decay of
 * the configuration; with first_layer_decay_only the parameters behind layer 0 are in group 1,
 * without decay. A state has the rates of all groups: a run that goes on makes the groups again
 * before it takes one (hg_optim_set_state). Its schedule is that of the run, and its steps are
 * those of hg_train_run.
 * @param train  a run or NULL.
 * @return the optimiser, borrowed until the run is freed; NULL for NULL. */
HG_API hg_optim *hg_train_optim(hg_train *train);

/** The model of a run, for instance to record it on another graph.
 * @param train  a run or NULL.
 * @return the model, borrowed until the run is freed; NULL for NULL. */
HG_API hg_model *hg_train_model(hg_train *train);

/** The step of a run, to read what the observer saw (observe.h).
 * @param train  a run or NULL.
 * @return the step, borrowed until hg_train_run or hg_train_set_state records the tapes again; NULL
 *         for NULL. */
HG_API hg_step *hg_train_step(hg_train *train);

/** The training tape of a run, for hg_tape_print and hg_tape_explain. Its values do not outlive an
 * evaluation.
 * @param train  a run or NULL.
 * @return the tape, borrowed until hg_train_run or hg_train_set_state records it again; NULL for
 *         NULL. */
HG_API const hg_tape *hg_train_tape(const hg_train *train);

HG_EXTERN_C_END
#endif
