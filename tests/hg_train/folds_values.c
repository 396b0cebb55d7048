/* The figures of a cross-validation, from curves with values by hand. */
#include "harness.h"

#include <math.h>

#include "folds.h"

enum { FOLDS = 3, EPOCHS = 4 };

/* Curves of the folds, and where fold k has its own best epoch. */
struct course {
	const char *name;
	hg_metric metric;
	int held_out, done; /* done: folds that were trained */
	double validation[FOLDS][EPOCHS], test[FOLDS][EPOCHS];
	int best[FOLDS];
	double own_mean, own_std, one_mean, one_std;
	int epoch;
};

static void feed(struct folds *f, const struct course *c)
{
	for (int k = 0; k < c->done; k++) {
		hg_train_event event = {.size = sizeof event};
		hg_train_report report = HG_TRAIN_REPORT_INIT;
		for (int e = 0; e < EPOCHS; e++) {
			event.epoch = e + 1;
			event.val_metric = c->validation[k][e];
			event.test_metric = c->test[k][e];
			folds_note(f, &event);
		}
		report.metric = c->metric;
		report.best_val_metric = c->validation[k][c->best[k] - 1];
		report.test_metric = c->test[k][c->best[k] - 1];
		folds_next(f, &report);
	}
}

/* NaN is only like NaN. The sums have three terms and values about 1. */
static int is_close(double a, double b)
{
	return isnan(b) ? isnan(a) : fabs(a - b) < 16 * 0x1p-52;
}

#define ACC HG_METRIC_ACCURACY
static const struct course courses[] = {
    /* means of the validation curve: 0.5, 0.6, 0.7, 0.6 */
    {"test sets",
     ACC,
     0,
     3,
     {{0.5, 0.9, 0.7, 0.6}, {0.5, 0.4, 0.7, 0.8}, {0.5, 0.5, 0.7, 0.4}},
     {{0.1, 0.2, 0.3, 0.4}, {0.2, 0.3, 0.6, 0.5}, {0.3, 0.4, 0.9, 0.6}},
     {2, 4, 3},
     (0.2 + 0.5 + 0.9) / 3,
     0.35118845842842461,
     0.6,
     0.3,
     3},
    {"the held-out fold validates",
     ACC,
     1,
     3,
     {{0.5, 0.9, 0.7, 0.6}, {0.5, 0.4, 0.7, 0.8}, {0.5, 0.5, 0.7, 0.4}},
     {{0}},
     {2, 4, 3},
     0.8,
     0.1,
     0.7,
     0.0,
     3},
    {"the first of several",
     ACC,
     1,
     3,
     {{0.5, 0.75, 0.25, 0.75}, {0.5, 0.75, 0.5, 0.75}, {0.5, 0.75, 0.25, 0.75}},
     {{0}},
     {2, 2, 2},
     0.75,
     0.0,
     0.75,
     0.0,
     2},
    {"an error falls",
     HG_METRIC_MAE,
     1,
     3,
     {{4, 3, 2, 5}, {4, 1, 2, 5}, {4, 5, 2, 5}},
     {{0}},
     {3, 2, 3},
     5.0 / 3,
     0.57735026918962573,
     2,
     0,
     3},
    /* epoch 2 has the largest mean, but fold 1 was not evaluated there */
    {"not evaluated everywhere",
     ACC,
     1,
     3,
     {{0.5, 0.9, NAN, 0.6}, {0.5, NAN, NAN, 0.6}, {0.5, 0.9, NAN, 0.6}},
     {{0}},
     {2, 4, 2},
     0.8,
     0.17320508075688773,
     0.6,
     0.0,
     4},
    {"never evaluated",
     ACC,
     0,
     3,
     {{NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}},
     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
     {4, 4, 4},
     1,
     0,
     NAN,
     NAN,
     0},
    {"interrupted",
     ACC,
     1,
     2,
     {{0.5, 0.9, 0.7, 0.6}, {0.5, 0.7, 0.9, 0.8}, {0}},
     {{0}},
     {2, 3, 1},
     0.9,
     0.0,
     0.8,
     0.14142135623730953,
     2},
};

static void choices(void)
{
	for (size_t k = 0; k < sizeof courses / sizeof *courses; k++) {
		const struct course *c = &courses[k];
		struct folds f;
		CHECK(folds_begin(&f, FOLDS, c->held_out, 1, EPOCHS) == 0);
		feed(&f, c);
		folds_end(&f);
		const struct folds_choice own = folds_own(&f), one = folds_one(&f);
		CHECK_MSG(f.seeds == 1 && f.partial == (c->done < FOLDS ? c->done : 0), "%s", c->name);
		CHECK_MSG(f.epoch[0] == c->epoch, "%s: epoch %d", c->name, f.epoch[0]);
		CHECK_MSG(is_close(own.mean, c->own_mean), "%s: %.17g", c->name, own.mean);
		CHECK_MSG(is_close(own.over_folds, c->own_std), "%s: %.17g", c->name, own.over_folds);
		CHECK_MSG(is_close(one.mean, c->one_mean), "%s: %.17g", c->name, one.mean);
		CHECK_MSG(is_close(one.over_folds, c->one_std), "%s: %.17g", c->name, one.over_folds);
		folds_free(&f);
	}
}

/* Each seed chooses an epoch of its own; an incomplete second seed does not count. */
static void seeds(void)
{
	struct folds f;
	struct course part = courses[0];
	part.done = 2;
	CHECK(folds_begin(&f, FOLDS, 1, 3, EPOCHS) == 0);
	feed(&f, &courses[1]);
	feed(&f, &courses[2]);
	feed(&f, &part);
	folds_end(&f);
	const struct folds_choice one = folds_one(&f), own = folds_own(&f);
	CHECK(f.seeds == 2 && !f.partial && f.epoch[0] == 3 && f.epoch[1] == 2);
	CHECK(is_close(one.mean, 0.725) && is_close(one.over_seeds, 0.05 / sqrt(2)));
	CHECK(is_close(own.mean, 0.775) && is_close(own.over_folds, 0.05));
	folds_free(&f);
}

static void without_folds_nothing_happens(void)
{
	struct folds f;
	const hg_train_report report = HG_TRAIN_REPORT_INIT;
	CHECK(folds_begin(&f, 0, 0, 5, EPOCHS) == 0);
	folds_note(&f, &(hg_train_event){.epoch = 1});
	folds_next(&f, &report);
	folds_end(&f);
	CHECK(f.seeds == 0 && !f.validation);
	folds_free(&f);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(choices), TEST(seeds),
	                                         TEST(without_folds_nothing_happens)};
	return RUN_TESTS(argc, argv, cases);
}
