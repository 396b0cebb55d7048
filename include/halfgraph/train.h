/** @file
 * The usual training loop: full-batch training of one model on one dataset, with evaluation and
 * early stopping.
 *
 *     hg_train_config config = hg_train_config_default("gcn");
 *     hg_train_data data = HG_TRAIN_DATA_INIT;         graph, features, labels, masks
 *     hg_train_create, hg_train_run, hg_train_predict, hg_train_free
 *
 * Owner     A run borrows the graph and the features until it is freed. Labels and masks are
 *           copied.
 * Threads   One thread at a time per context. */
#ifndef HALFGRAPH_TRAIN_H
#define HALFGRAPH_TRAIN_H

#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "halfgraph/optim.h"
#include "halfgraph/state.h"
#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/** What a run learns from. n is the number of nodes, or of graphs for a graph task. Host arrays are
 * copied by hg_train_create. */
typedef struct hg_train_data {
	size_t size;
	hg_model_input input;  /**< graph and features, borrowed until the run is freed */
	const int32_t *labels; /**< host [n]: class, or below 0 for an unlabelled row */
	/** host [n], not 0: in the set. NULL: every labelled row, also those of the other sets */
	const uint8_t *train_mask;
	const uint8_t *val_mask;  /**< host [n] or NULL: no validation */
	const uint8_t *test_mask; /**< host [n] or NULL: no test */
	/** how the features were prepared ("rows divided by their sums"), up to 63 bytes, or NULL. It
	 * is a setting of the state, so that going on with other features is reported */
	const char *features_note;
} hg_train_data;
/** An empty hg_train_data with its sizes set. */
#define HG_TRAIN_DATA_INIT \
	HG__INIT(hg_train_data, HG__SET(input.size, sizeof(hg_model_input)) HG__SET(input.x_amax, -1.0))

/** One epoch, for hg_train_fn. Accuracies are in [0, 1], and NaN where they are not evaluated. */
typedef struct hg_train_event {
	size_t size;
	int epoch;             /**< 1 to epochs */
	int epochs;            /**< of this run */
	double loss;           /**< training loss of the epoch, before its update */
	double train_accuracy; /**< on the training set */
	double val_accuracy;   /**< on the validation set */
	double test_accuracy;  /**< on the test set */
	/** wall time: forward pass, backward pass, update and, where there is one, the evaluation.
	 * Epochs that ran together have their mean */
	double epoch_ms;
	hg_step_info step; /**< what the epoch's step did */
	/** logits of all rows that are not finite, at this epoch's evaluation; where it is not 0 the
	 * accuracies are not reliable. 0 where there is no evaluation */
	int64_t nonfinite_logits;
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
	 * more classes than there are labelled rows is then refused */
	hg_model_config model;
	hg_optim_config optim;      /**< the optimiser */
	hg_policy policy;           /**< the precision */
	int first_layer_decay_only; /**< 1: weight decay on layer 0 alone, as in the GCN paper */
	int epochs;                 /**< at least 1 */
	/** 0: no early stopping; else the run ends after so many epochs in which neither validation
	 * accuracy nor validation loss improved */
	int patience;
	int eval_every;       /**< evaluate every so many epochs, at least 1 */
	hg_train_fn progress; /**< called for every epoch, or NULL */
	void *user;           /**< passed to progress */
	/** how steps run; per_launch is the number of epochs that run together, evaluations included */
	hg_step_config step;
} hg_train_config;

/** The default configuration of a run: the model's defaults, Adam with learning rate 0.01 and
 * weight decay 5e-4 (gcn: on layer 0 alone), policy fp16, 200 epochs, an evaluation after each, no
 * early stopping.
 * @param model  one that hg_model_names lists, borrowed. Another name or NULL is kept, and
 *               hg_train_create refuses it.
 * @return the configuration. */
HG_API hg_train_config hg_train_config_default(const char *model);

/** What came of hg_train_run. */
typedef struct hg_train_report {
	size_t size;
	int epochs_run; /**< epochs of this run */
	/** the epoch with the highest validation accuracy (ties: the lower validation loss); the last
	 * one without a validation set */
	int best_epoch;
	double best_val_accuracy; /**< at the best epoch; NaN without a validation set */
	double test_accuracy;     /**< at the best epoch; NaN without a test set */
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
} hg_train_report;
/** An empty hg_train_report with its size set. */
#define HG_TRAIN_REPORT_INIT HG__INIT_ZERO(hg_train_report)

/** A training run: parameters, model, optimiser, tapes. */
typedef struct hg_train hg_train;

/** Creates a run: uploads labels and masks, makes the model, records and compiles the tapes.
 * @param context  the context, which stays open until the run is freed.
 * @param config   copied.
 * @param data     what it points to is copied or borrowed as its fields say.
 * @param train    receives the run, owned by the caller; NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, a size is not set, graph, labels or features are
 *         missing or of another context, no row is labelled and in train_mask, more classes than
 *         labelled rows, or a field is out of its range: the message names it); HG_ERR_SHAPE
 *         (graph, features and model do not fit); HG_ERR_DTYPE (features are neither f16 nor f32);
 *         HG_ERR_RANGE (the policy refuses a narrowing, or a label is not below out_features);
 *         HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_create(hg_context *context, const hg_train_config *config,
                                              const hg_train_data *data, hg_train **train);

/** Frees a run with its parameters, model and tapes. Not from its progress function.
 * @param train  a run or NULL. */
HG_API void hg_train_free(hg_train *train);

/** Trains for config.epochs epochs and then puts the weights of the best of them in place. Called
 * once more it goes on from those; after hg_train_set_state, from that state. Each call counts its
 * epochs from 1 and looks for its own best epoch.
 * @param train   the run.
 * @param report  receives the outcome; start from HG_TRAIN_REPORT_INIT.
 * @return HG_OK, also where steps were skipped or the loss is not finite (see the report);
 *         HG_INFO_STOPPED (progress asked for it; the report is complete); HG_ERR_ARG (a pointer is
 *         NULL, or report's size is not set); HG_ERR_STATE (called from its progress function, or
 *         an earlier call failed while it recorded its tapes again); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_run(hg_train *train, hg_train_report *report);

/** Copies the state of training (state.h): after a run, the state after its last step, not that of
 * its best epoch; in a progress function, the state after the last of the epochs that ran together.
 * 20 epochs give the same bits as 10 epochs, this function, hg_train_set_state into a run of the
 * same configuration and data, and 10 more epochs.
 * @param train  the run.
 * @param state  receives the state, owned by the caller (hg_state_free); NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_get_state(hg_train *train, hg_state **state);

/** Puts a state in place, to go on from there. The run's own settings stay. Everything is checked
 * and allocated before anything changes.
 * @param train  the run.
 * @param state  the state, copied.
 * @return HG_OK; HG_INFO_DIFFERS (it is in place, but a setting differs: the message names it);
 *         HG_ERR_ARG (a pointer is NULL, or hg_state_fault); HG_ERR_SHAPE (the parameters do not
 *         fit: the message names both shapes); HG_ERR_UNSUPPORTED (it promotes an op this library
 *         lacks); HG_ERR_STATE (called from its progress function); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_set_state(hg_train *train, const hg_state *state);

/** Classifies every row with the weights in place: after hg_train_run, those of the best epoch.
 *
 * Shapes    n rows: nodes, or graphs for a graph task; C columns: out_features.
 * @param train       the run.
 * @param prediction  host [n], receives the first largest logit that is a number; -1 where none is.
 * @param logits      host f32 [n, C], receives the logits; or NULL.
 * @return HG_OK; HG_ERR_ARG (train or prediction is NULL); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_train_predict(hg_train *train, int32_t *prediction, float *logits);

/** The parameters of a run.
 * @param train  a run or NULL.
 * @return the params, borrowed until the run is freed; NULL for NULL. */
HG_API hg_params *hg_train_params(hg_train *train);

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
