#ifndef HALFGRAPH_TRAIN_H
#define HALFGRAPH_TRAIN_H

#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "halfgraph/optim.h"
#include "halfgraph/state.h"
#include "halfgraph/step.h"

HG_EXTERN_C_BEGIN

/* The loop most people want: full-batch training of one model on one dataset, with early stopping.
 * Host arrays are borrowed for the call to create. */
typedef struct hg_train_data {
	size_t size;
	hg_model_input input;
	/* [n], or [graphs] for a graph task; < 0: unlabelled */
	const int32_t *labels;
	/* same length, non-zero: in the set. train NULL: every labelled row, also those in val and
	 * test; val or test NULL, or without a labelled row: none */
	const uint8_t *train_mask, *val_mask, *test_mask;
	const char
	    *features_note; /* how the features were made ready ("rows divided by their sums"), up to 63
	                     * bytes, or NULL. A setting of the state: to go on with others is told */
} hg_train_data;
#define HG_TRAIN_DATA_INIT                                        \
	{                                                             \
		sizeof(hg_train_data), HG_MODEL_INPUT_INIT, 0, 0, 0, 0, 0 \
	}

typedef struct hg_train_event {
	size_t size;
	int epoch, epochs; /* 1 .. epochs */
	/* accuracies in [0, 1]; NaN where not evaluated */
	double loss, train_accuracy, val_accuracy, test_accuracy;
	/* Wall time of the epoch, its evaluation included: forward, backward, update, and where the
	 * epoch is
	 * evaluated the forward pass and the counting. Epochs that ran together took their mean. */
	double epoch_ms;
	hg_step_info step;
	/* of all rows, at this epoch's evaluation; where not 0 the accuracies rest on overflow. 0 where
	 * not evaluated */
	int64_t nonfinite_logits;
} hg_train_event;
/* Called for every epoch in order; returns non-zero to stop (then hg_train_run returns
 * HG_INFO_STOPPED with a complete report). Epochs that ran together are told one after the other
 * when all of them are over; a stop at one of them undoes those after it. How many run together
 * changes nothing but the time: an overflow after which the tapes are recorded again, and the end
 * of
 * patience, stop the rest of them on the device. The function may read the run, its state and its
 * predictions; hg_train_run and hg_train_set_state are HG_ERR_STATE in it, and hg_train_free is a
 * mistake. */
typedef int (*hg_train_fn)(void *user, const hg_train_event *event);

typedef struct hg_train_config {
	size_t size;
	/* in_features, out_features 0: taken from the data; labels that make more classes than there
	 * are labelled rows are refused then */
	hg_model_config model;
	hg_optim_config optim;
	hg_policy policy;
	int first_layer_decay_only; /* weight decay on layer 0 alone (the GCN paper) */
	/* patience 0: no early stopping; else epochs without a better validation accuracy or loss */
	int epochs, patience;
	int eval_every;
	hg_train_fn progress;
	void *user;
	hg_step_config step; /* how many epochs run together, evaluations included: per_launch */
} hg_train_config;
/* The model's own defaults, Adam 0.01, fp16, 200 epochs, evaluation every epoch. */
HG_API hg_train_config hg_train_config_default(const char *model);

typedef struct hg_train_report {
	size_t size;
	/* best_epoch by validation accuracy (ties: lower validation loss); the last one without a
	 * validation set */
	int epochs_run, best_epoch;
	double best_val_accuracy, test_accuracy; /* test at the best epoch */
	double final_loss, epoch_ms_median;
	size_t peak_bytes, state_bytes, arena_bytes;
	int64_t steps_skipped; /* in this run */
	float loss_scale_final;
	int loss_finite;          /* the last loss was finite */
	int64_t nonfinite_logits; /* at the best epoch, as in hg_train_event */
	int captured;             /* the last epoch was launched as captured work (step.h) */
	int epochs_together;      /* most epochs that were queued without a wait between them */
	/* times that a node overflowed behind its guard, and was recorded again, rescaled or in f32
	 * (hg_policy.replan) */
	int replans;
	/* tensors that the forward pass of a step converts from f16 to f32 or back (hg_plan_info) */
	int casts;
	/* The least headroom, in bits, that a value in f16 had in the steps that were looked at, and
	 * its name, which lives as long as the run (observe.h); INFINITY, NULL: none was seen. */
	double headroom;
	const char *headroom_name;
	int rescaled,
	    /* results of the training tape at the end that are stored x 2^-k, and that run in f32 since
	     * they overflowed or by hg_policy.unproved */
	    promoted;
} hg_train_report;
#define HG_TRAIN_REPORT_INIT                                                                   \
	{                                                                                          \
		sizeof(hg_train_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

typedef struct hg_train hg_train;
HG_API HG_NODISCARD hg_status hg_train_create(hg_context *context, const hg_train_config *config,
                                              const hg_train_data *data, hg_train **train);
HG_API void hg_train_free(hg_train *train);
/* Runs config.epochs epochs and leaves the weights of the best of them. Called again it goes on
 * from these; after hg_train_set_state, from that state. Every run counts its epochs from 1 and
 * looks for a best one of its own: what was best or out of patience before does not matter to
 * it. */
HG_API HG_NODISCARD hg_status hg_train_run(hg_train *train, hg_train_report *report);
/* Where training stands (state.h): after a run, behind its last step, not at its best epoch. In a
 * progress function: behind the last epoch of those that ran together. 20 epochs, and 10, this,
 * hg_train_set_state into a run of the same configuration and data, and 10 more, are the same bit
 * for bit. */
HG_API HG_NODISCARD hg_status hg_train_get_state(hg_train *train, hg_state **state);
/* As hg_optim_set_state. In a progress function: HG_ERR_STATE. */
HG_API HG_NODISCARD hg_status hg_train_set_state(hg_train *train, const hg_state *state);
/* Class of every node (or graph) with the weights of the best epoch: prediction [n], the first
 * largest logit that is a number, -1 where none is; logits [n, out] f32 or NULL. */
HG_API HG_NODISCARD hg_status hg_train_predict(hg_train *train, int32_t *prediction, float *logits);
HG_API hg_params *hg_train_params(hg_train *train);
/* to record it on a tape of yours: another graph, other features */
HG_API hg_model *hg_train_model(hg_train *train);
/* to read what was observed (observe.h); what records the tapes again makes it again, too */
HG_API hg_step *hg_train_step(hg_train *train);
/* The training tape, for hg_tape_print; its values do not outlive an evaluation, and hg_train_run
 * and hg_train_set_state may record it again. */
HG_API const hg_tape *hg_train_tape(const hg_train *train);

HG_EXTERN_C_END
#endif
