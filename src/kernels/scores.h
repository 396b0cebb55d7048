/* Evaluation scores that stay on the device, so that many epochs can be queued without waiting for
 * the host: which epoch is the best so far, and whether training should stop early. Metrics other
 * than accuracy are computed by the host, which then enters them here (nn/train_score.c). */
#ifndef HG_KERNELS_SCORES_H
#define HG_KERNELS_SCORES_H

#include <math.h>

#include "kernels/step.h"

HG_EXTERN_C_BEGIN

enum hg__split { HG__SPLIT_TRAIN = 0, HG__SPLIT_VAL = 1, HG__SPLIT_TEST = 2, HG__SPLITS = 3 };

/* Counts of one evaluation. right: rows whose first largest logit is at their label; a row with a
 * NaN logit is never right. counted: rows of the split that have a label. nonfinite: logits of all
 * rows that are not finite. */
struct hg__counts {
	int64_t right[HG__SPLITS], counted[HG__SPLITS], nonfinite;
};

struct hg__score_note {
	struct hg__counts counts;
	double metric[HG__SPLITS]; /* of each split; NaN if there is none */
	float loss; /* of the validation split, or of the training split if there is none */
	int32_t is_best;
	int64_t epoch; /* from 1 */
};

struct hg__board {
	/* Set by the host before a run. */
	/* Number of the run's first step. Epoch e is over when the step counter is first_step + e. */
	int64_t first_step;
	/* Epochs that are multiples of `every` are evaluated, and the last one. */
	int64_t epochs, every;
	/* Epochs without a better validation metric or loss before training stops; 0: never. */
	int64_t patience;
	int32_t validates; /* 1: there is a validation split; 0: every epoch is the best so far */
	int32_t falls;     /* 1: a smaller metric is the better one; 0: a larger one */
	/* 1: an evaluation of the result of a run, which training does not see: the plateau of the
	 * schedule does not count it */
	int32_t unseen;

	/* Kept by hg__board_note. */
	int32_t keep;      /* 1: the last evaluation is the best, and its weights are to be kept */
	int64_t evaluated; /* the last epoch that was evaluated; 0: none yet */
	int64_t improved;  /* the last epoch with a better validation metric or loss */
	double top_metric; /* the best so far, of any epoch; negative if the metric falls */
	float low_loss;
	int32_t out_of_patience;
	struct hg__score_note best; /* epoch 0: none yet */
	int64_t taken;              /* number of evaluations; number k is in note[k % HG__NOTES] */
	struct hg__score_note note[HG__NOTES];
};

/* The accuracy of a split; NaN if the split is empty. */
HG_HD static inline double hg__accuracy_of(const struct hg__counts *c, int split)
{
	return c->counted[split] > 0 ? (double)c->right[split] / (double)c->counted[split]
	                             : (double)NAN;
}

/* Whether the state after the step just taken is to be evaluated. Each epoch is evaluated at most
 * once: queued steps that did nothing, because an earlier step stopped them, do not change the
 * state. */
HG_HD static inline int hg__board_is_due(const struct hg__board *b, const struct hg__step *step)
{
	const int64_t epoch = step->step - b->first_step;
	return epoch > b->evaluated && (epoch % b->every == 0 || epoch == b->epochs);
}

/* Records one evaluation. An epoch is the best if it has a better validation metric, or the same
 * and a lower validation loss; without a validation split the latest is the best. It is an
 * improvement if either value is better than ever before (Velickovic et al. 2018). */
HG_HD static inline void hg__board_note(struct hg__board *b, struct hg__step *step,
                                        const struct hg__counts *counts,
                                        const double metric[HG__SPLITS], float loss)
{
	const double sign = b->falls ? -1.0 : 1.0, now = sign * metric[HG__SPLIT_VAL],
	             best = sign * b->best.metric[HG__SPLIT_VAL];
	struct hg__score_note note;
	note.counts = *counts;
	for (int s = 0; s < HG__SPLITS; s++)
		note.metric[s] = metric[s];
	note.loss = loss;
	note.epoch = step->step - b->first_step;
	/* An epoch whose metric or loss is not a number loses every tie, also when it came first. */
	const int better = best != best ? now == now : now > best,
	          same = best != best ? now != now : now >= best,
	          lower = b->best.loss != b->best.loss ? loss == loss : loss < b->best.loss;
	note.is_best = !b->validates || !b->best.epoch || better || (same && lower);
	b->note[b->taken++ % HG__NOTES] = note;
	b->evaluated = note.epoch;
	b->keep = note.is_best;
	if (note.is_best)
		b->best = note;
	if (now > b->top_metric || loss < b->low_loss)
		b->improved = note.epoch;
	b->top_metric = now > b->top_metric ? now : b->top_metric;
	b->low_loss = loss < b->low_loss ? loss : b->low_loss;
	b->out_of_patience = b->validates && b->patience > 0 && note.epoch - b->improved >= b->patience;
	if (b->out_of_patience)
		step->stop = 1;
	if (!b->unseen)
		hg__step_plateau(step, metric[HG__SPLIT_VAL], b->falls);
}

/* The last action of the scores kernel, once it has counted everything. The metric is accuracy. */
HG_HD static inline void hg__board_close(struct hg__board *b, struct hg__step *step,
                                         const struct hg__counts *counts, float loss)
{
	double accuracy[HG__SPLITS];
	step->overflow = 0;
	b->keep = 0;
	for (int s = 0; s < HG__SPLITS; s++)
		accuracy[s] = hg__accuracy_of(counts, s);
	if (hg__board_is_due(b, step))
		hg__board_note(b, step, counts, accuracy, loss);
}

HG_EXTERN_C_END
#endif
