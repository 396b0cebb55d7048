#ifndef HG_NN_TRAIN_H
#define HG_NN_TRAIN_H

#include "halfgraph/batches.h"
#include "halfgraph/train.h"
#include "nn/best.h"
#include "nn/evaluate.h"
#include "nn/saved.h"
#include "nn/state.h"
#include "nn/step.h"
#include "nn/train_buckets.h"
#include "nn/truth.h"

HG_EXTERN_C_BEGIN

/* The tensors that a step reads of what is learnt: rows of hg_batches_config. */
enum { HG__BATCH_TRUTH = 0, HG__BATCH_MASK = 1 };

/* A run whose steps are on batches of graphs. Batches are padded to few shapes, which have a tape
 * and a step each. Where that is not possible, each batch has a graph, a tape and a step of its
 * own, and they are gone when the next batch comes. */
struct hg__train_batches {
	hg_batches *all;            /* NULL: every step is on all rows */
	hg_batches_config from;     /* what they are made of */
	struct hg__buckets buckets; /* of padded batches */
	hg_batch batch;             /* the one in place */
	struct hg__truth truth;     /* what is learnt from it; its tensors are borrowed */
	struct hg__buffer arena;    /* the tapes of all batches run in it */
	struct hg__watch_past past; /* counts of the observers of former batches */
	int64_t reaches;            /* params->reaches when the evaluation was recorded */
};

/* What an epoch in batches did. */
struct hg__epoch {
	double loss, prepare_seconds;
	hg_step_info step; /* as hg_train_event has it */
	int64_t steps, skipped, overflowed;
};

struct hg_train {
	hg_context *ctx;
	hg_train_config config;
	hg_model_input input; /* borrowed, as by the tapes */
	hg_params *params;
	hg_model *model;
	hg_optim *optim;
	struct hg__truth truth;
	int64_t nodes, edges;   /* of the graph */
	char features_note[64]; /* hg_train_data.features_note */
	/* as in hg_train_data */
	int rows_normalized, self_loops, unweighted;
	uint64_t targets_hash;       /* of the labels and the splits */
	uint64_t class_weights_hash; /* 0: there are none */
	/* double [in_features]: what the columns of the features were standardised with; empty: nothing
	 */
	struct hg__buffer column_mean, column_deviation;
	struct hg__buffer class_name; /* char [class_name_bytes]; empty: the classes have no names */
	int64_t class_name_bytes;
	hg_tape *tape; /* training */
	hg_var loss;
	hg_step *step;                  /* on this tape */
	struct hg__evaluator evaluator; /* on all rows, also of a run in batches */
	struct hg__train_batches batches;
	struct hg__best best;
	struct hg__board *board; /* on the device: scores of the evaluations of a run */
	struct hg__board seen;   /* the host's copy of the board */
	int64_t first_step;      /* of this run */
	int in_progress;         /* 1 while the caller's progress function runs */
	/* 1: a run is over. The masters are those of the best epoch, and `best` holds those of the last
	 * step. */
	int swapped;
	/* The state before a group of epochs. It is made before the first group in which the caller can
	 * stop. */
	struct hg__saved begin;
	/* [epoch_room]; it grows as epochs pass, because most runs are asked for more epochs than they
	 * need */
	double *epoch_ms;
	int64_t epoch_room;
	int replans; /* how often an op node was promoted (replan.c) */
	/* how often the tapes were recorded again, and that number when the best epoch was evaluated;
	 * -1: not known */
	int64_t recordings, best_recording;
	/* the best epoch that hg_train_set_state brought. The next run has to find a better one, unless
	 * `own_best`: the state was of other data or of another model, where it is not comparable */
	hg_state_best best_before;
	int own_best;
	hg_state_epoch *history; /* [history_room]: all epochs, also those before hg_train_set_state */
	int64_t epochs, history_room;
};

/* train.c: of what the columns were standardised with; 0: they were not. */
uint64_t hg__train_columns_hash(const hg_train *train);
/* train.c: the schedule of a run whose first step this is. */
HG_NODISCARD hg_status hg__train_schedule(hg_train *train, int64_t first_step);
/* train_record.c: allocates train->begin. */
HG_NODISCARD hg_status hg__train_begin_init(hg_train *train);
/* train_record.c: records both tapes and makes the step on them; of a run in batches the tape is
 * that of the batch in place. */
HG_NODISCARD hg_status hg__train_record(hg_train *train);
/* train_record.c: the tape of a step with its loss, its step, and the evaluation. */
HG_NODISCARD hg_status hg__train_record_tape(hg_train *train);
HG_NODISCARD hg_status hg__train_record_step(hg_train *train);
HG_NODISCARD hg_status hg__train_record_evaluation(hg_train *train);
/* train_record.c: what hg__train_record does behind the tape of a step. */
HG_NODISCARD hg_status hg__train_record_rest(hg_train *train);
/* train_record.c: the graphs of an evaluation's batch; 0: it is on all rows at once. */
int64_t hg__train_evaluation_graphs(const hg_train *train);
/* train_batches.c: makes the batches of what is learnt, once t->truth is there, and puts the first
 * one in place. */
HG_NODISCARD hg_status hg__train_batches_init(hg_train *train, const hg_train_data *data);
void hg__train_batches_fini(hg_train *train);
/* train_batches.c: puts batch k of an epoch in place. There is no tape of another one any more. */
HG_NODISCARD hg_status hg__train_batches_load(hg_train *train, int64_t epoch, int64_t k);
/* train_batches.c: the same once there is a batch. */
void hg__train_batch_place(hg_train *train, const hg_batch *batch);
/* train_batches.c: steps of an epoch, and the number of steps after an epoch of this run. */
int64_t hg__train_steps(const hg_train *train);
int64_t hg__train_steps_after(const hg_train *train, int64_t epoch);
/* train_record.c: frees tape and step, and what their recording left with the model. */
void hg__train_tape_free(hg_train *train);
/* train_epoch.c: queued steps of the run may stop those behind them (step.h). */
HG_NODISCARD hg_status hg__train_group_begin(hg_train *train);
/* train_epoch.c: a step on each batch of an epoch. Waits for the device. */
HG_NODISCARD hg_status hg__train_epoch(hg_train *train, int64_t epoch, struct hg__epoch *done);
/* train_epoch.c: records the evaluation again if a weight has a new bound since then. */
HG_NODISCARD hg_status hg__train_evaluation_renew(hg_train *train);
/* train_report.c: the report of a run that is over. best: its best epoch. */
struct hg__train_sums {
	int64_t together;       /* the most epochs that ran without a wait */
	int64_t skipped_before; /* steps that earlier runs had skipped */
	int64_t steps;
	double ms, prepare_ms; /* of all epochs */
};
HG_NODISCARD hg_status hg__train_report(hg_train *train, const struct hg__train_sums *sums,
                                        const hg_train_event *last,
                                        const struct hg__score_note *best, hg_train_report *report);
/* train_score.c: one evaluation whose metric the host computes. Waits for the device. */
HG_NODISCARD hg_status hg__train_score(hg_train *train);
/* train_score.c: evaluates the weights in place once more. The board does not change. */
HG_NODISCARD hg_status hg__train_score_again(hg_train *train, struct hg__score_note *note);
/* replan.c: changes what the tapes assume, after the last step was skipped because its forward pass
 * overflowed (overflowed: its info), or after a weight outgrew what the tapes assume (outgrown: the
 * parameter's name). Either is NULL if it did not happen. */
HG_NODISCARD hg_status hg__train_replan(hg_train *train, const char *outgrown,
                                        const hg_step_info *overflowed, int *changed);
/* train_best.c: the best epoch and the history. */
/* Adds an epoch to the history. */
HG_NODISCARD hg_status hg__train_note_epoch(hg_train *train, const hg_train_event *event);
/* On the board the best epoch so far is one before the run. */
#define HG__EPOCH_BEFORE (-1)
/* What the board of a run begins with as its best epoch: best_before, or none. */
struct hg__score_note hg__train_best_before(const hg_train *train);
/* Adds both to the state of the run. */
HG_NODISCARD hg_status hg__train_get_best(const hg_train *train, hg_state *state);
/* Takes both from a state, in two steps: the first allocates what the second needs. */
struct hg__train_past {
	hg_state_epoch *history;
	int64_t room;
	void *staging;
	size_t staging_bytes;
};
HG_NODISCARD hg_status hg__train_past_init(const hg_train *train, const hg_state *theirs,
                                           struct hg__train_past *past);
HG_NODISCARD hg_status hg__train_past_put(hg_train *train, const hg_state *theirs,
                                          struct hg__train_past *past);
void hg__train_past_fini(hg_context *ctx, struct hg__train_past *past);
/* Replaces both tapes by new recordings. If that fails there are no tapes. */
HG_NODISCARD hg_status hg__train_record_again(hg_train *train);

HG_EXTERN_C_END
#endif
