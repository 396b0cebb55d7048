#ifndef HG_NN_TRAIN_H
#define HG_NN_TRAIN_H

#include "halfgraph/train.h"
#include "nn/best.h"
#include "nn/evaluate.h"
#include "nn/saved.h"
#include "nn/state.h"
#include "nn/step.h"

HG_EXTERN_C_BEGIN

struct hg_train {
	hg_context *ctx;
	hg_train_config config;
	hg_model_input input; /* borrowed, as by the tapes */
	hg_params *params;
	hg_model *model;
	hg_optim *optim;
	struct hg__targets targets;
	int64_t nodes, edges;   /* of the graph */
	char features_note[64]; /* hg_train_data.features_note */
	hg_tape *tape;          /* training */
	hg_var loss;
	hg_step *step; /* on this tape */
	struct hg__evaluator evaluator;
	struct hg__best best;
	struct hg__board *board; /* on the device: scores of the evaluations of a run */
	struct hg__board seen;   /* the host's copy of the board */
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
	int replans; /* how often the tapes were recorded again (replan.c) */
};

/* train.c: allocates train->begin. */
HG_NODISCARD hg_status hg__train_begin_init(hg_train *train);
/* train.c: records both tapes and makes the step on them. */
HG_NODISCARD hg_status hg__train_record(hg_train *train);
/* replan.c: changes what the tapes assume, after the last step was skipped because its forward pass
 * overflowed (overflowed: its info), or after a weight outgrew what the tapes assume (outgrown: the
 * parameter's name). Either is NULL if it did not happen. */
HG_NODISCARD hg_status hg__train_replan(hg_train *train, const char *outgrown,
                                        const hg_step_info *overflowed, int *changed);
/* Replaces both tapes by new recordings. If that fails there are no tapes. */
HG_NODISCARD hg_status hg__train_record_again(hg_train *train);

HG_EXTERN_C_END
#endif
