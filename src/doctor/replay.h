#ifndef HG_DOCTOR_REPLAY_H
#define HG_DOCTOR_REPLAY_H

#include "autograd/about.h"
#include "autograd/tape.h"
#include "doctor/growth.h"
#include "doctor/look.h"
#include "doctor/page.h"
#include "doctor/sum.h"
#include "doctor/widen.h"
#include "halfgraph/doctor.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* The replay of one step: what its files share.
 *
 *     inputs.c       checks leaves, labels, weights of graphs and parameters before anything runs
 *     copies.c       finds parameters whose f16 working copy is all 0
 *     replay.c       runs forward and backward, node by node, and hands each node to judge.c
 *     judge.c        compares what a node made with its f32 run on the same operands (widen.c,
 *                    look.c)
 *     nonfinite.c    finds results that are not finite although the operands are;
 *     silent.c       results that are finite and wrong; scaled.c: of those stored x 2^-k;
 *     lines.c        rows and columns of which most is lost. learnt.c: is anything left to learn?
 *     cause.c        decides the cause by rules, from the element at fault and its sum (sum.c:
 *                    its addends; halves.c: the sum in f16, once more)
 *     vanished.c     decides whether a divisor was 0 before it was rounded
 *     finding.c      fills in a finding: names (result.c), the sum, the operands (operands.c)
 *     attribution.c  names the op of a fused node; rows.c: what rows are; found.c: the lists
 *     update.c       checks the optimiser's step
 *     statistics.c   checks running statistics, which only evaluations read
 *     chain.c        follows a fault to the loss and the weights
 *     sentence.c, headline.c, remedy.c    say it in words, and what to do
 *     try.c          trains with each remedy (change.c: an option applied to a configuration;
 *                    changed_data.c: to the features)
 *
 * Findings live in the report's pages, because the tape and the saved state are gone when the
 * report is read. */

/* What a row of a value is; for edges of what graph. */
struct hg__rows {
	hg_row_kind kind;
	int known;
	hg_graph *graph;
};

/* What is known of a value, or of its gradient. */
struct hg__value_info {
	int64_t bad, count; /* elements that are not finite, of all */
	int underflowed;    /* most of it was rounded to zero, here or in what it is made of */
	int tensor;         /* its index in the report, from 1; 0: none */
	double row_sum;     /* of a leaf: the largest sum of sizes over a row */
	int reached;        /* chain.c */
	int32_t from[2];    /* of a gradient: lines whose backward gave the last two parts of it */
	int parts;          /* and how many there were */
};

/* One launch of the step, in order: the unit that findings are sorted by and chains are made of. */
struct hg__event {
	const struct hg__task *launch;
	int backward;
	int64_t bad, count;
};

struct hg__found {
	hg_finding finding;
	/* the index of the launch at fault; -1: before all of them; INT64_MAX: after */
	int64_t event;
	int32_t value;                /* an input or a parameter at fault: its value; -1: none */
	const struct hg__entry *line; /* NULL: none */
	/* of a node that does the work of several, the one at fault; NULL: none */
	const struct hg__op *op;
	int vanished;    /* ZERO: what is 0 there is so because it was rounded (vanished.c) */
	double gradient; /* OPTIMISER: of that element, without the loss scale */
	int moment;      /* it is a moment of an optimiser */
};

struct hg__replay {
	hg_context *ctx;
	hg_tape *tape;
	hg_params *params;
	hg_optim *optim;
	hg_graph *features;  /* sparse features, where they are known; NULL else */
	double features_sum; /* of their sizes, over a row, the largest */
	/* dense ones of a training run, in f16, and the f32 that they were uploaded from, compact;
	 * NULL: either is not there */
	const hg_tensor *x;
	const float *uploaded;
	const hg_graph *bad_graph;     /* whose weights are not finite; NULL: none */
	const hg_train_config *config; /* of a training run; NULL: none */
	const hg_progress *progress;
	const struct hg__growth *growth;
	int silent, most;
	int evaluation; /* 1: the forward pass of an evaluation alone */
	/* the largest gradient of its loss that this run has had, at loss scale 1; 0: unknown */
	double steepest;
	double pull;          /* sum of the sizes of its loss's own gradient, at the loss scale */
	struct hg__step step; /* as it is at the beginning */
	struct hg__page **pages;

	struct hg__value_info *value, *grad; /* [values] */
	struct hg__rows *rows;               /* [values] */
	struct hg__event *event;             /* [events], in the order of the step */
	int64_t events;
	hg_doctor_tensor *tensor;
	int tensors, tensor_room;
	struct hg__found *found[2]; /* of what is not finite; of what is silent: [most] each */
	int founds[2];
	struct hg__mat
	    before[HG__MAX_IN]; /* of the node at hand: gradients that its own are added to */
	int between_bad; /* of the node at hand: what its backward makes on the way is not finite */
	double loss;
};

/* rows.c */
void hg__rows_learn(struct hg__replay *replay);
/* The end points of edge e of a graph. */
HG_NODISCARD hg_status hg__edge_ends(hg_context *ctx, hg_graph *graph, int64_t e, int64_t *row,
                                     int64_t *col);

/* inputs.c */
HG_NODISCARD hg_status hg__check_inputs(struct hg__replay *replay);
/* copies.c: parameters of whose working copy nothing is left. */
HG_NODISCARD hg_status hg__check_copies(struct hg__replay *replay);
/* replay.c */
HG_NODISCARD hg_status hg__replay_run(struct hg__replay *replay);
/* judge.c: after the node has run. wide: opened before it ran, NULL where an operand was bad. Then,
 * for what is added to a gradient, after it was; old: the gradient before, data NULL if this is the
 * first part of it. */
HG_NODISCARD hg_status hg__judge_forward(struct hg__replay *replay, const struct hg__task *launch);
HG_NODISCARD hg_status hg__judge_backward(struct hg__replay *replay, const struct hg__task *launch,
                                          struct hg__wide *wide, int good);
HG_NODISCARD hg_status hg__judge_added(struct hg__replay *replay, const struct hg__task *launch,
                                       int operand, const struct hg__mat *old);

/* A result of a node: its output, the gradient of an operand, or what backward makes on the way
 * there. */
enum { HG__OUTPUT = -1, HG__BETWEEN = -2 };
struct hg__result {
	const struct hg__task *launch;
	int64_t event;         /* of the launch */
	int backward, operand; /* operand: or one of the above */
	int32_t value;         /* that it is, or is the gradient of */
	struct hg__mat got, wide;
};
/* result.c: what a value holds; is all finite that a launch reads, forward or backward? */
struct hg__mat hg__value_mat(const hg_tape *tape, int32_t value);
int hg__operands_good(const struct hg__replay *replay, const struct hg__task *launch, int backward);
/* result.c: what a result is called: "conv2/spmm", "gradient of ..." */
HG_NODISCARD hg_status hg__result_name(struct hg__replay *replay, const struct hg__result *result,
                                       const char **name);
/* result.c: the sum behind an element of a result, with the gradient that was there before; none
 * of what is between. */
HG_NODISCARD hg_status hg__sum_of_result(const struct hg__replay *replay,
                                         const struct hg__result *result, int64_t row, int64_t col,
                                         struct hg__sum *sum);
/* cause.c: why is element (row, col) not finite, which is `wide` where there is room? sum: open if
 * there is one. */
struct hg__fault {
	const struct hg__result *result;
	int64_t row, col;
	double wide;
	const struct hg__sum *sum;
};
struct hg__why {
	hg_cause cause;
	hg_zero zero;
};
HG_NODISCARD hg_status hg__cause_of(const struct hg__replay *replay, const struct hg__fault *fault,
                                    struct hg__why *why);
/* nonfinite.c: what is not finite. good 0: of operands of which some were not. */
HG_NODISCARD hg_status hg__judge_nonfinite(struct hg__replay *replay,
                                           const struct hg__result *result,
                                           const struct hg__look *look, int good);
/* Two gradients of one tensor, at one element: what was there, and what is added. */
struct hg__parts {
	int32_t from[2]; /* the lines that they come from; -1: unknown */
	int count;       /* parts up to now */
	double value[2];
};
/* nonfinite.c: both are finite, and their sum is not? old: what was there. */
HG_NODISCARD hg_status hg__judge_parts(struct hg__replay *replay, const struct hg__result *result,
                                       struct hg__look *look, const struct hg__mat *old,
                                       struct hg__parts *parts);
/* operands.c: what the op had there; and whose gradients were added. */
HG_NODISCARD hg_status hg__tell_operands(struct hg__replay *replay, const struct hg__result *result,
                                         hg_finding *f);
HG_NODISCARD hg_status hg__tell_gradients(struct hg__replay *replay, hg_finding *f,
                                          const struct hg__parts *parts);
/* silent.c: what is finite and wrong all the same. */
HG_NODISCARD hg_status hg__judge_silent(struct hg__replay *replay, const struct hg__result *result,
                                        const struct hg__look *look, int underflowed,
                                        int *underflows);
/* scaled.c: and where a result is stored x 2^-k. */
HG_NODISCARD hg_status hg__judge_scaled(struct hg__replay *replay, const struct hg__result *result,
                                        const struct hg__look *look, int *underflows);
/* learnt.c: does a gradient of this size, at the loss scale, change nothing any more? */
int hg__is_learnt(const struct hg__replay *replay, double size);
/* Was most of it stored as zero? */
int hg__underflows(const struct hg__look *look);
/* finding.c: a finding at an element of a result: names, place, sum. */
HG_NODISCARD hg_status hg__found_in(struct hg__replay *replay, struct hg__found *found,
                                    const struct hg__result *result, int64_t row, int64_t col,
                                    const struct hg__sum *sum, const struct hg__half_sum *half);
/* vanished.c: element (row, col) of a result divides by an operand that is 0, or takes its root or
 * logarithm: is it 0 because it was rounded when it was stored? */
HG_NODISCARD hg_status hg__operand_vanished(const struct hg__replay *replay,
                                            const struct hg__result *result, int64_t row,
                                            int64_t col, int *vanished);
/* update.c; and moments that were bad before it. */
HG_NODISCARD hg_status hg__check_moments(struct hg__replay *replay);
HG_NODISCARD hg_status hg__check_update(struct hg__replay *replay);
/* statistics.c: the running statistics of all norms of a training step, after its replay, when the
 * run's own state is back. */
HG_NODISCARD hg_status hg__check_statistics(struct hg__replay *replay);
/* statistics.c: those that the norm at hand reads in an evaluation; *bad 1: its result is their
 * doing. */
HG_NODISCARD hg_status hg__judge_statistics(struct hg__replay *replay,
                                            const struct hg__task *launch, int *bad);
/* statistics.c: does a norm of the tape keep its running statistics here? */
int hg__is_running_statistic(const struct hg__replay *replay, const hg_param *param);
/* Is the finding one of running statistics? Other parameters are bad without an op. */
static inline int hg__is_of_statistics(const hg_finding *f)
{
	return f->cause == HG_CAUSE_INPUT && f->evaluation && *f->op;
}
/* growth.c: is an overflow caused by weights that the updates have blown up? */
HG_NODISCARD hg_status hg__check_growth(const struct hg__replay *replay, struct hg__found *found);
/* heads.c: which attention head the element's column is. */
void hg__name_head(const struct hg__replay *replay, int32_t value, hg_finding *f);
/* operands.c: the x below a root or a logarithm, if it is negative; NULL else. */
const double *hg__negative_operand(const hg_finding *f);
/* chain.c */
HG_NODISCARD hg_status hg__trace_chain(struct hg__replay *replay, struct hg__found *found);
/* sentence.c */
HG_NODISCARD hg_status hg__write_sentence(struct hg__replay *replay, struct hg__found *found);
/* remedy.c */
HG_NODISCARD hg_status hg__list_remedies(struct hg__replay *replay, struct hg__found *found);

/* found.c: a new finding with the usual values, in the list of what is not finite or (silent 1) of
 * what is; NULL where the list is full. */
struct hg__found *hg__found_new(struct hg__replay *replay, int silent, hg_cause cause);
/* found.c: its element. */
HG_NODISCARD hg_status hg__found_at(struct hg__replay *replay, struct hg__found *found,
                                    const struct hg__rows *rows, int64_t row, int64_t col);
/* found.c: a line of the report's table of tensors. */
HG_NODISCARD hg_status hg__note_tensor(struct hg__replay *replay, const hg_doctor_tensor *tensor,
                                       const struct hg__look *look, int *place);

/* attribution.c: the op and the layer of a node; of a fused node, those of the op at fault. */
struct hg__part {
	const struct hg__op *op;
	const char *layer;
};
struct hg__attribution {
	const struct hg__task *launch;
	int backward, operand; /* operand -1: what is kept between (aux) */
	int64_t row, col;
	double sum;  /* of the aggregation at that element, after its factors */
	double wide; /* all of the element */
};
HG_NODISCARD hg_status hg__attribute(struct hg__replay *replay, const struct hg__attribution *blame,
                                     struct hg__part *part);

/* Is it a cast that nobody wrote, made while the tape was recorded so that types fit? */
static inline int hg__is_own_cast(const hg_tape *tape, int64_t line)
{
	const struct hg__node *node = &tape->entry[line].node;
	if (!(node->op->traits & HG__CASTS))
		return 0;
	return tape->value[node->in[0]].cast_view[tape->value[node->out].dtype] == node->out;
}
static inline const struct hg__entry *hg__entry_of(const struct hg__replay *replay,
                                                   const struct hg__task *launch)
{
	return &replay->tape->entry[launch->entry];
}

HG_EXTERN_C_END
#endif
