#ifndef HG_NN_TRAIN_H
#define HG_NN_TRAIN_H

#include "halfgraph/train.h"
#include "nn/evaluate.h"
#include "nn/rewind.h"
#include "nn/snapshot.h"
#include "nn/state.h"
#include "nn/step.h"

HG_EXTERN_C_BEGIN

struct hg_train {
	hg_context *ctx;
	hg_train_config config;
	hg_model_input input; /* borrowed, as the tapes do */
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
	struct hg__snapshot best;
	struct hg__board *board; /* device: what the evaluations of a run have found */
	struct hg__board seen;   /* the host's copy of it */
	int telling;             /* the caller's progress function runs */
	/* a run is over: the masters are the best epoch's, and `best` holds those of its last step */
	int swapped;
	/* of a group of epochs; made when there first is one that the caller may stop in the middle */
	struct hg__rewind begin;
	/* [epoch_room], grows as epochs pass: most runs are asked for more of them than they need */
	double *epoch_ms;
	int64_t epoch_room;
	int replans; /* times that the tapes were recorded again (replan.c) */
};

/* train.c: both tapes, and the step on them. */
HG_NODISCARD hg_status hg__train_record(hg_train *train);
/* replan.c: after steps of which one was skipped because of its forward pass (overflowed: its
 * info), or whose weights are larger than the tapes assume (outgrown names the parameter); or
 * NULL. */
HG_NODISCARD hg_status hg__train_replan(hg_train *train, const char *outgrown,
                                        const hg_step_info *overflowed, int *changed);
/* And both tapes once more, in place of those there are: where that fails, there are none. */
HG_NODISCARD hg_status hg__train_record_again(hg_train *train);

HG_EXTERN_C_END
#endif
