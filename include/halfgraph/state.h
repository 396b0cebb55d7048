/** @file
 * The state of training in host memory. From it a run continues with the same bits, in this process
 * or another (data.h keeps it in a file).
 *
 *     tensor             for every parameter the f32 master and the optimiser's moments; for a
 *                        buffer (running statistics) the master alone
 *     group              learning rate and weight decay of every group of parameters (optim.h), as
 *                        they are now, and in a tensor which group it is in
 *     promotion          op nodes that are stored in f32 or x 2^-k because they overflowed behind a
 *                        guard (hg_policy.replan)
 *     loss_scale, step   the loss scaler with its counters and history; the number of steps begun,
 *                        skipped ones included, which dropout draws by
 *     best               of an hg_train: the best epoch so far, its weights and how well they did,
 *                        which is what a run reports
 *     epoch              of an hg_train: loss, accuracies and metrics of every epoch so far
 *     plateau            what a schedule that waits for a plateau has counted (schedule.h)
 *     setting            how the run was set up: library, device, seed, policy, optimiser, schedule
 *                        and, for an hg_train, model, loss, scale of targets and size of the data
 *
 * Settings serve for comparison and are never restored: a run has its own, and where they and the
 * data are the same it goes on with the same bits. An hg_predictor is made from them. Not part of a
 * state: gradients and the data.
 *
 * Owner     A state owns all of its memory, allocated with malloc. It needs no context.
 * Threads   Different states are independent; hg_optim_ functions: one thread at a time per
 *           context. */
#ifndef HALFGRAPH_STATE_H
#define HALFGRAPH_STATE_H

#include "halfgraph/metrics.h"
#include "halfgraph/optim.h"

HG_EXTERN_C_BEGIN

/** Most moments an optimiser keeps per parameter. */
#define HG_STATE_MOMENTS 2

/** A parameter or buffer in a state. */
typedef struct hg_state_tensor {
	char *name;    /**< of the parameter */
	int64_t rows;  /**< at least 1 */
	int64_t cols;  /**< at least 1 */
	float *master; /**< [rows, cols]; any bits, also numbers that are not finite */
	/** tapes assume |master| <= reach (HG_WEIGHT_ROOM); INFINITY: no tape assumes anything */
	double reach;
	int moments; /**< 0: buffers, plain SGD; 1: SGD with momentum; 2: Adam, AdamW */
	/** [rows, cols] each: the first moment (or the momentum) and the second */
	float *moment[HG_STATE_MOMENTS];
	float *best; /**< [rows, cols]: the master at the best epoch; NULL: hg_state_best says why */
	int group;   /**< its group of parameters, below hg_state.groups; 0: buffers, or no groups */
} hg_state_tensor;

/** A group of parameters. */
typedef struct hg_state_group {
	float lr; /**< finite and at least 0; a schedule multiplies it, and does not change it */
	float weight_decay; /**< finite and at least 0 */
} hg_state_group;

/** Which member of a setting holds its value. */
typedef enum hg_setting_kind {
	HG_SETTING_INTEGER = 0, /**< integer */
	HG_SETTING_REAL = 1,    /**< real */
	HG_SETTING_TEXT = 2     /**< text */
} hg_setting_kind;

/** One setting of a run. */
typedef struct hg_setting {
	char name[48];        /**< "model.dropout" */
	hg_setting_kind kind; /**< which of the following is its value */
	int64_t integer;      /**< also for an enumerator; a seed keeps its 64 bits */
	double real;          /**< a number */
	char text[64];        /**< a text, with its terminating 0 */
} hg_setting;

/** An op node that keeps another type or scale when tapes are recorded: the nth of its op in its
 * layer. */
typedef struct hg_promotion {
	char op[32];    /**< "spmm" */
	char layer[48]; /**< "conv0" */
	int64_t nth;    /**< from 0 */
	int32_t shift;  /**< its result is stored x 2^-shift, 1 to HG_SHIFT_MOST; 0: in f32 */
} hg_promotion;

/** The best epoch so far, by its validation (hg_train_report). Where it is known and
 * hg_state_tensor.best is NULL, the masters are its weights: the state is of a model, not of a run
 * that goes on. */
typedef struct hg_state_best {
	int64_t step;     /**< steps begun when it was over; 0: no best epoch is known */
	hg_metric metric; /**< what decided that it is the best */
	double value[3];  /**< the metric on the training, validation and test set; NaN: no such set */
	/** rows at their label, of the training, validation and test set, as they were counted then. A
	 * run reports this accuracy (hg_state_accuracy), unless its tapes were recorded again */
	int64_t right[3];
	int64_t counted[3];       /**< rows of these sets that have a label; 0: no such set */
	int64_t nonfinite_logits; /**< as in hg_train_event */
	float loss;               /**< on the validation set, or the training set without one */
} hg_state_best;

/** An epoch that is over. What was not evaluated is NaN. */
typedef struct hg_state_epoch {
	int64_t step;          /**< steps begun when it was over */
	double loss;           /**< training loss, before its update */
	double train_accuracy; /**< on the training set */
	double val_accuracy;   /**< on the validation set */
	double test_accuracy;  /**< on the test set */
	double train_metric;   /**< what decides which epoch is the best, on the training set */
	double val_metric;     /**< on the validation set */
	double test_metric;    /**< on the test set */
} hg_state_epoch;

/** The state of training. */
typedef struct hg_state {
	char *origin;             /**< what messages call it, such as a file name; NULL: "the state" */
	int64_t tensors;          /**< length of tensor */
	int64_t settings;         /**< length of setting */
	int64_t promotions;       /**< length of promotion */
	hg_state_tensor *tensor;  /**< [tensors] */
	hg_setting *setting;      /**< [settings] */
	hg_promotion *promotion;  /**< [promotions] */
	hg_loss_scale loss_scale; /**< the loss scaler */
	int64_t step;             /**< steps begun */
	hg_state_best best;       /**< the best epoch so far */
	int64_t epochs;           /**< length of epoch */
	hg_state_epoch *epoch;    /**< [epochs], their steps ascend */
	hg_plateau plateau;       /**< of the schedule of the learning rate */
	int64_t columns;          /**< length of column_mean; 0: features were not standardised */
	double *column_mean;      /**< [columns]: subtracted from each column of the features */
	double *column_deviation; /**< [columns]: what it was divided by; 0: the column became 0 */
	/** the names of the classes, UTF-8, one after the other, each with its terminating 0; or NULL
	 */
	char *class_name;
	int64_t class_name_bytes; /**< of class_name */
	int groups;               /**< length of group; 0: the rates are not known */
	hg_state_group *group;    /**< [groups], group 0 first */
} hg_state;

/** Creates an empty state.
 * @param state  receives the state, owned by the caller.
 * @return HG_OK; HG_ERR_ARG (NULL); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_create(hg_state **state);

/** Frees a state with everything in it.
 * @param state  a state or NULL. */
HG_API void hg_state_free(hg_state *state);

/** Adds a tensor of zeros, with reach INFINITY, and with a best weight if the others have one.
 * @param state    the state; unchanged on failure.
 * @param name     a name no other tensor has, copied.
 * @param rows     at least 1.
 * @param cols     at least 1.
 * @param moments  0 to HG_STATE_MOMENTS.
 * @param tensor   receives the tensor, to be filled, borrowed until the next one is added; or NULL.
 * @return HG_OK; HG_ERR_ARG (an argument is not as above); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_tensor(hg_state *state, const char *name, int64_t rows,
                                                  int64_t cols, int moments,
                                                  hg_state_tensor **tensor);

/** Adds a group of parameters, which tensors may then be in (hg_state_tensor.group).
 * @param state  the state; unchanged on failure.
 * @param group  copied.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or a rate is not finite or below 0);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_group(hg_state *state, const hg_state_group *group);

/** Adds a setting.
 * @param state    the state; unchanged on failure.
 * @param setting  copied. Its name is not empty and no other setting has it.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or its name or text is not as above);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_setting(hg_state *state, const hg_setting *setting);

/** Adds a promotion.
 * @param state      the state; unchanged on failure.
 * @param promotion  copied. No other promotion has its op, layer and nth.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, it exists already, nth is negative or shift is out
 *         of range); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_promotion(hg_state *state,
                                                     const hg_promotion *promotion);

/** Gives every tensor a best weight, to be overwritten: a copy of its master.
 * @param state  the state, with best.step set; unchanged on failure.
 * @return HG_OK; HG_ERR_ARG (state is NULL, best.step is below 1, or a tensor has one already);
 *         HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_best(hg_state *state);

/** Adds an epoch to the history.
 * @param state  the state; unchanged on failure.
 * @param epoch  copied. Its step is above that of the epoch before, and above 0.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL, or its step is not as above); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_add_epoch(hg_state *state, const hg_state_epoch *epoch);

/** Sets what the columns of the features were standardised with (hg_dataset_standardize).
 * @param state      the state; unchanged on failure.
 * @param columns    number of columns; 0: they were not standardised.
 * @param mean       host [columns], copied.
 * @param deviation  host [columns], copied.
 * @return HG_OK; HG_ERR_ARG (state is NULL, columns is negative, a pointer is NULL where columns is
 *         not 0, or a number is not finite or a deviation below 0); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_set_columns(hg_state *state, int64_t columns,
                                                   const double *mean, const double *deviation);

/** Sets the names of the classes.
 * @param state  the state; unchanged on failure.
 * @param names  [bytes], copied: texts one after the other, each with its terminating 0.
 * @param bytes  at least 0; 0: the classes have no names.
 * @return HG_OK; HG_ERR_ARG (state is NULL, or names and bytes are not as above); HG_ERR_NOMEM. */
HG_API HG_NODISCARD hg_status hg_state_set_class_names(hg_state *state, const char *names,
                                                       int64_t bytes);

/** The accuracy of the best epoch, in [0, 1].
 * @param best  the best epoch or NULL.
 * @param set   0: training, 1: validation, 2: test.
 * @return right / counted; NaN for an empty set, another one or NULL. */
HG_API double hg_state_accuracy(const hg_state_best *best, int set);

/** A tensor of a state by its name.
 *
 * Cost      Linear in the number of tensors.
 * @param state  a state or NULL.
 * @param name   the name.
 * @return the tensor, borrowed; NULL if there is none. */
HG_API const hg_state_tensor *hg_state_find_tensor(const hg_state *state, const char *name);

/** A setting of a state by its name.
 *
 * Cost      Linear in the number of settings.
 * @param state  a state or NULL.
 * @param name   the name.
 * @return the setting, borrowed; NULL if there is none. */
HG_API const hg_setting *hg_state_find_setting(const hg_state *state, const char *name);

/** Checks the loss scale, the counters, the reaches, the groups, the best epoch and the history of
 * a state. Weights may have any value.
 * @param state  a state or NULL.
 * @return what is wrong, as a constant text; NULL if nothing is. */
HG_API const char *hg_state_fault(const hg_state *state);

/** Copies the state of an optimiser and its parameters. Waits for the device.
 * @param optim  the optimiser.
 * @param state  receives the state, owned by the caller (hg_state_free); NULL on failure.
 * @return HG_OK; HG_ERR_ARG (a pointer is NULL); HG_ERR_NOMEM; HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_get_state(hg_optim *optim, hg_state **state);

/** Puts a state into an optimiser and its parameters, to go on from there. Everything is checked
 * and allocated before anything changes. Promotions take effect on tapes that are recorded
 * afterwards (an hg_train records its own again). Working copies are narrowed from the masters as
 * in a step: what f16 cannot hold becomes infinite in them, and is not an error.
 *
 * Groups of parameters are made before, as they were for the state (hg_optim_add_group,
 * hg_optim_assign). Then every group gets the learning rate and the weight decay of the state.
 * Where the setting optim.lr or optim.weight_decay differs, this run's own stay in all groups
 * instead. A state without groups leaves both as they are.
 * @param optim  the optimiser.
 * @param state  the state, copied.
 * @return HG_OK; HG_INFO_DIFFERS (it is in place, but settings differ: hg_context_error names the
 *         first ones with both values; where one of the loss scale differs, the scale starts at
 *         this run's init_scale and its counters go on); HG_ERR_ARG (a pointer is NULL, or
 *         hg_state_fault); HG_ERR_SHAPE (parameters do not fit: another shape, missing or
 *         additional ones, other moments, other groups: the message names them);
 *         HG_ERR_UNSUPPORTED (it promotes an op that this library lacks); HG_ERR_NOMEM;
 *         HG_ERR_DEVICE. */
HG_API HG_NODISCARD hg_status hg_optim_set_state(hg_optim *optim, const hg_state *state);

HG_EXTERN_C_END
#endif
