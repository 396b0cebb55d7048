#ifndef HG_KERNELS_SCORES_H
#define HG_KERNELS_SCORES_H

#include <math.h>

#include "kernels/step.h"

HG_EXTERN_C_BEGIN

/* What a run keeps on the device of its evaluations, so that many epochs can be queued without a
 * word
 * from the host: which epoch was the best so far, and whether there is patience left. */

enum hg__split { HG__SPLIT_TRAIN = 0, HG__SPLIT_VAL = 1, HG__SPLIT_TEST = 2, HG__SPLITS = 3 };

/* Counted in one evaluation. right: rows whose first largest logit is at their label (a row with a
 * NaN
 * logit is not right); counted: rows of the split with a label; nonfinite: logits, of all rows. */
struct hg__counts {
	int64_t right[HG__SPLITS], counted[HG__SPLITS], nonfinite;
};

struct hg__score_note {
	struct hg__counts counts;
	float loss; /* of the validation split, or of the training split where there is none */
	int32_t is_best;
	int64_t epoch; /* from 1 */
};

struct hg__board {
	/* Set by the host before a run. */
	/* number of the run's first step: epoch e is over when the step counter is first_step + e */
	int64_t first_step;
	/* epochs that are multiples of `every` are evaluated, and the last one */
	int64_t epochs, every;
	/* epochs without a better validation accuracy or loss; 0: no end but the last */
	int64_t patience;
	int32_t validates; /* there is a validation split; else every epoch is the best so far */

	/* Kept by hg__board_note. */
	int32_t keep;        /* the last evaluation is the best: its weights are to be kept */
	int64_t evaluated;   /* the last epoch that was; 0: none yet */
	int64_t improved;    /* the last one that reached a better validation accuracy or loss */
	double top_accuracy; /* each the best that was seen, not always in the same epoch */
	float low_loss;
	int32_t out_of_patience;
	struct hg__score_note best; /* epoch 0: none yet */
	int64_t taken;              /* evaluations; number k is in note[k % HG__NOTES] */
	struct hg__score_note note[HG__NOTES];
};

/* NaN of an empty split. */
HG_HD static inline double hg__accuracy_of(const struct hg__counts *c, int split)
{
	return c->counted[split] > 0 ? (double)c->right[split] / (double)c->counted[split]
	                             : (double)NAN;
}

/* Is the state after step number `step` to be evaluated? Each epoch at most once: queued steps that
 * did nothing, because an earlier one stopped them, make no new state. */
HG_HD static inline int hg__board_is_due(const struct hg__board *b, const struct hg__step *step)
{
	const int64_t epoch = step->step - b->first_step;
	return epoch > b->evaluated && (epoch % b->every == 0 || epoch == b->epochs);
}

/* Best: a higher validation accuracy, or the same and a lower validation loss; without a validation
 * split, the latest. Improved: either of the two is better than it ever was (Velickovic et al.
 * 2018). */
HG_HD static inline void hg__board_note(struct hg__board *b, struct hg__step *step,
                                        const struct hg__counts *counts, float loss)
{
	const double accuracy = hg__accuracy_of(counts, HG__SPLIT_VAL),
	             best = hg__accuracy_of(&b->best.counts, HG__SPLIT_VAL);
	struct hg__score_note note;
	note.counts = *counts;
	note.loss = loss;
	note.epoch = step->step - b->first_step;
	note.is_best = !b->validates || !b->best.epoch || accuracy > best ||
	               (accuracy >= best && loss < b->best.loss);
	b->note[b->taken++ % HG__NOTES] = note;
	b->evaluated = note.epoch;
	b->keep = note.is_best;
	if (note.is_best)
		b->best = note;
	if (accuracy > b->top_accuracy || loss < b->low_loss)
		b->improved = note.epoch;
	b->top_accuracy = accuracy > b->top_accuracy ? accuracy : b->top_accuracy;
	b->low_loss = loss < b->low_loss ? loss : b->low_loss;
	b->out_of_patience = b->validates && b->patience > 0 && note.epoch - b->improved >= b->patience;
	if (b->out_of_patience)
		step->stop = 1;
}

/* What a kernel does with all it has counted. */
HG_HD static inline void hg__board_close(struct hg__board *b, struct hg__step *step,
                                         const struct hg__counts *counts, float loss)
{
	step->trip = 0;
	b->keep = 0;
	if (hg__board_is_due(b, step))
		hg__board_note(b, step, counts, loss);
}

HG_EXTERN_C_END
#endif
