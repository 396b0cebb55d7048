#ifndef HG_DOCTOR_EXAM_H
#define HG_DOCTOR_EXAM_H

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

/* One step under examination.
 *
 *     inputs.c     leaves, labels, graphs' weights and parameters, before anything runs
 *     replay.c     forward and backward, node by node; each node then goes to judge.c
 *     copies.c     parameters of whose working copy nothing is left
 *     judge.c      is what it made bad, of good operands? beside the wide run (widen.c, look.c);
 *                  silent.c: or finite, and wrong all the same?
 *     scaled.c     a result that is stored x 2^-k: what did that cost?
 *     lines.c      rows and columns of which most is lost;  learnt.c: is anything left to learn?
 *     cause.c      and why: by rules, from the element at fault and its sum (sum.c: addends;
 *                  halves.c: the sum in f16, once more)
 *     vanished.c   of a division by zero: was it zero before it was rounded?
 *     finding.c    what is told of it: its name (result.c), its sum, its operands (operands.c)
 *     blame.c      which op of a fused node;  rows.c: what its rows are;  found.c: the lists
 *     update.c     the optimiser's step
 *     statistics.c running statistics, which only evaluations read
 *     chain.c      the way from there to the loss and the weights
 *     sentence.c, headline.c, remedy.c    in words, and what to do
 *     try.c        does it help? (change.c: the run that an option makes of a run;
 *                  changed_data.c: and its features)
 *
 * Everything that is found lies in the report's pages; the tape and the sandbox are gone when the
 * report is read. */

/* What a row of a value is; for edges of what graph. */
struct hg__rows {
	hg_row_kind kind;
	int known;
	hg_graph *graph;
};

/* What is known of a value, or of its gradient. */
struct hg__sight {
	int64_t bad, count; /* elements that are not finite, of all */
	int faint;          /* most of it was rounded to zero, here or in what it is made of */
	int tensor;         /* its place in the report, 1 ..; 0: none */
	double row_sum;     /* of a leaf: the largest sum of sizes over a row */
	int reached;        /* chain.c */
	int32_t from[2];    /* of a gradient: lines whose backward gave the last two parts of it */
	int parts;          /* and how many there were */
};

/* A launch as the chain sees it. */
struct hg__stop {
	const struct hg__task *launch;
	int backward;
	int64_t bad, count;
};

struct hg__found {
	hg_finding finding;
	/* the launch at fault, in order; -1: before all of them; INT64_MAX: after */
	int64_t stop;
	int32_t value;                /* an input or a parameter at fault: its value; -1: none */
	const struct hg__entry *line; /* NULL: none */
	/* of a node that does the work of several, the one at fault; NULL: none */
	const struct hg__op *op;
	int vanished;    /* ZERO: what is 0 there is so because it was rounded (vanished.c) */
	double gradient; /* OPTIMISER: of that element, without the loss scale */
	int moment;      /* it is a moment of an optimiser */
};

struct hg__exam {
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
	int evaluation; /* the forward pass of one, and nothing else */
	/* the largest gradient of its loss that this run has had, at loss scale 1; 0: unknown */
	double steepest;
	double pull;          /* sum of the sizes of its loss's own gradient, at the loss scale */
	struct hg__step step; /* as it is at the beginning */
	struct hg__page **pages;

	struct hg__sight *value, *grad; /* [values] */
	struct hg__rows *rows;          /* [values] */
	struct hg__stop *stop;          /* [stops], in the order of the step */
	int64_t stops;
	hg_doctor_tensor *tensor;
	int tensors, tensor_room;
	struct hg__found *found[2]; /* loud, silent: [most] each */
	int founds[2];
	struct hg__mat
	    before[HG__MAX_IN]; /* of the node at hand: gradients that its own are added to */
	int between_bad; /* of the node at hand: what its backward makes on the way is not finite */
	double loss;
};

/* rows.c */
void hg__rows_learn(struct hg__exam *exam);
/* The end points of edge e of a graph. */
HG_NODISCARD hg_status hg__edge_ends(hg_context *ctx, hg_graph *graph, int64_t e, int64_t *row,
                                     int64_t *col);

/* inputs.c */
HG_NODISCARD hg_status hg__exam_inputs(struct hg__exam *exam);
/* copies.c: parameters of whose working copy nothing is left. */
HG_NODISCARD hg_status hg__exam_copies(struct hg__exam *exam);
/* replay.c */
HG_NODISCARD hg_status hg__exam_replay(struct hg__exam *exam);
/* judge.c: after the node has run. wide: opened before it ran, NULL where an operand was bad. Then,
 * for what is added to a gradient, after it was; old: the gradient before, data NULL if this is the
 * first part of it. */
HG_NODISCARD hg_status hg__judge_forward(struct hg__exam *exam, const struct hg__task *launch);
HG_NODISCARD hg_status hg__judge_backward(struct hg__exam *exam, const struct hg__task *launch,
                                          struct hg__wide *wide, int good);
HG_NODISCARD hg_status hg__judge_added(struct hg__exam *exam, const struct hg__task *launch,
                                       int operand, const struct hg__mat *old);

/* A result of a node: its output, the gradient of an operand, or what backward makes on the way
 * there. */
enum { HG__OUTPUT = -1, HG__BETWEEN = -2 };
struct hg__result {
	const struct hg__task *launch;
	int64_t stop;          /* of the launch */
	int backward, operand; /* operand: or one of the above */
	int32_t value;         /* that it is, or is the gradient of */
	struct hg__mat got, wide;
};
/* result.c: what a value holds; is all finite that a launch reads, forward or backward? */
struct hg__mat hg__value_mat(const hg_tape *tape, int32_t value);
int hg__operands_good(const struct hg__exam *exam, const struct hg__task *launch, int backward);
/* result.c: what a result is called: "conv2/spmm", "gradient of ..." */
HG_NODISCARD hg_status hg__result_name(struct hg__exam *exam, const struct hg__result *result,
                                       const char **name);
/* result.c: the sum behind an element of a result, with the gradient that was there before; none
 * of what is between. */
HG_NODISCARD hg_status hg__sum_of_result(const struct hg__exam *exam,
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
HG_NODISCARD hg_status hg__cause_of(const struct hg__exam *exam, const struct hg__fault *fault,
                                    struct hg__why *why);
/* loud.c: what is not finite. good 0: of operands of which some were not. */
HG_NODISCARD hg_status hg__judge_loud(struct hg__exam *exam, const struct hg__result *result,
                                      const struct hg__look *look, int good);
/* Two gradients of one tensor, at one element: what was there, and what is added. */
struct hg__parts {
	int32_t from[2]; /* the lines that they come from; -1: unknown */
	int count;       /* parts up to now */
	double value[2];
};
/* loud.c: both are finite, and their sum is not? old: what was there. */
HG_NODISCARD hg_status hg__judge_parts(struct hg__exam *exam, const struct hg__result *result,
                                       struct hg__look *look, const struct hg__mat *old,
                                       struct hg__parts *parts);
/* operands.c: what the op had there; and whose gradients were added. */
HG_NODISCARD hg_status hg__tell_operands(struct hg__exam *exam, const struct hg__result *result,
                                         hg_finding *f);
HG_NODISCARD hg_status hg__tell_gradients(struct hg__exam *exam, hg_finding *f,
                                          const struct hg__parts *parts);
/* silent.c: what is finite and wrong all the same. */
HG_NODISCARD hg_status hg__judge_silent(struct hg__exam *exam, const struct hg__result *result,
                                        const struct hg__look *look, int faint, int *fades);
/* scaled.c: and where a result is stored x 2^-k. */
HG_NODISCARD hg_status hg__judge_scaled(struct hg__exam *exam, const struct hg__result *result,
                                        const struct hg__look *look, int *fades);
/* learnt.c: does a gradient of this size, at the loss scale, change nothing any more? */
int hg__is_learnt(const struct hg__exam *exam, double size);
/* Was most of it stored as zero? */
int hg__fades(const struct hg__look *look);
/* finding.c: a finding at an element of a result: names, place, sum. */
HG_NODISCARD hg_status hg__found_in(struct hg__exam *exam, struct hg__found *found,
                                    const struct hg__result *result, int64_t row, int64_t col,
                                    const struct hg__sum *sum, const struct hg__half_sum *half);
/* vanished.c: element (row, col) of a result divides by an operand that is 0, or takes its root or
 * logarithm: is it 0 because it was rounded when it was stored? */
HG_NODISCARD hg_status hg__operand_vanished(const struct hg__exam *exam,
                                            const struct hg__result *result, int64_t row,
                                            int64_t col, int *vanished);
/* update.c; and moments that were bad before it. */
HG_NODISCARD hg_status hg__exam_moments(struct hg__exam *exam);
HG_NODISCARD hg_status hg__exam_update(struct hg__exam *exam);
/* statistics.c: the running statistics of all norms of a training step, after its replay, when the
 * run's own state is back. */
HG_NODISCARD hg_status hg__exam_statistics(struct hg__exam *exam);
/* statistics.c: those that the norm at hand reads in an evaluation; *bad 1: its result is their
 * doing. */
HG_NODISCARD hg_status hg__judge_statistics(struct hg__exam *exam, const struct hg__task *launch,
                                            int *bad);
/* statistics.c: does a norm of the tape keep its running statistics here? */
int hg__is_running_statistic(const struct hg__exam *exam, const hg_param *param);
/* Is the finding one of running statistics? Other parameters are bad without an op. */
static inline int hg__is_of_statistics(const hg_finding *f)
{
	return f->cause == HG_CAUSE_INPUT && f->evaluation && *f->op;
}
/* growth.c: of what overflowed, are weights to blame that the updates have blown up? */
HG_NODISCARD hg_status hg__exam_growth(const struct hg__exam *exam, struct hg__found *found);
/* heads.c: which attention head the element's column is. */
void hg__name_head(const struct hg__exam *exam, int32_t value, hg_finding *f);
/* operands.c: the x below a root or a logarithm, if it is negative; NULL else. */
const double *hg__negative_operand(const hg_finding *f);
/* chain.c */
HG_NODISCARD hg_status hg__exam_chain(struct hg__exam *exam, struct hg__found *found);
/* sentence.c */
HG_NODISCARD hg_status hg__exam_sentence(struct hg__exam *exam, struct hg__found *found);
/* remedy.c */
HG_NODISCARD hg_status hg__exam_remedies(struct hg__exam *exam, struct hg__found *found);

/* found.c: a new finding in the list of the loud or the silent ones, with what is usual; NULL if
 * there are enough of them. */
struct hg__found *hg__found_new(struct hg__exam *exam, int silent, hg_cause cause);
/* found.c: its element. */
HG_NODISCARD hg_status hg__found_at(struct hg__exam *exam, struct hg__found *found,
                                    const struct hg__rows *rows, int64_t row, int64_t col);
/* found.c: a line of the report's table of tensors. */
HG_NODISCARD hg_status hg__note_tensor(struct hg__exam *exam, const hg_doctor_tensor *tensor,
                                       const struct hg__look *look, int *place);

/* blame.c: the op and the layer of a node; of one that does the work of several, the one that did
 * it. */
struct hg__part {
	const struct hg__op *op;
	const char *layer;
};
struct hg__blame {
	const struct hg__task *launch;
	int backward, operand; /* operand -1: what is kept between (aux) */
	int64_t row, col;
	double sum;  /* of the aggregation at that element, after its factors */
	double wide; /* all of the element */
};
HG_NODISCARD hg_status hg__blame(struct hg__exam *exam, const struct hg__blame *blame,
                                 struct hg__part *part);

/* Is it a cast that nobody wrote, made while the tape was recorded so that types fit? */
static inline int hg__is_own_cast(const hg_tape *tape, int64_t line)
{
	const struct hg__node *node = &tape->entry[line].node;
	if (!(node->op->traits & HG__CASTS))
		return 0;
	return tape->value[node->in[0]].cast_view[tape->value[node->out].dtype] == node->out;
}
static inline const struct hg__entry *hg__entry_of(const struct hg__exam *exam,
                                                   const struct hg__task *launch)
{
	return &exam->tape->entry[launch->entry];
}

HG_EXTERN_C_END
#endif
