/* When hg-train says that nothing was learnt: sequences of losses, and what it says of each. */
#include "harness.h"

#include <math.h>

#include "learnt.h"

struct course {
	const char *name;
	enum learnt expected;
	int resumed, skipped_first; /* skipped_first: how many steps at the beginning are skipped */
	double (*loss)(int step);
	double gradient;
	int steps;
	int batches; /* of an epoch, whose event has the gradient of one of them */
};

static double falls(int step)
{
	return 1.0 / (1 + step);
}

static double rises(int step)
{
	return 1.0 + step;
}

/* The loss rises at first, and is below the first one from the 15th step on. */
static double hill(int step)
{
	return step < 15 ? 1.0 + step : 0.5;
}

static double flat(int step)
{
	(void)step;
	return 1.5;
}

static double zero(int step)
{
	(void)step;
	return 0.0;
}

static double overflows(int step)
{
	return step < 30 ? falls(step) : (double)INFINITY;
}

/* The first loss overflows and is rescaled. */
static double mends(int step)
{
	return step < 2 ? (double)NAN : falls(step);
}

static const struct course courses[] = {
    {"falls", LEARNT, 0, 0, falls, 1, 200, 1},
    {"one step", LEARNT, 0, 0, falls, 1, 1, 1},
    {"one step, skipped", LEARNT_ALL_SKIPPED, 0, 1, falls, 1, 1, 1},
    {"every step skipped", LEARNT_ALL_SKIPPED, 0, 200, flat, 1, 200, 1},
    {"the scale calibrates", LEARNT, 0, 10, falls, 1, 200, 1},
    {"ends with infinity", LEARNT_NOT_FINITE, 0, 0, overflows, 1, 40, 1},
    {"mends", LEARNT, 0, 2, mends, 1, 40, 1},
    {"nothing but NaN", LEARNT_NOT_FINITE, 0, 2, mends, 1, 2, 1},
    {"no gradient", LEARNT_NO_GRADIENT, 0, 0, flat, 0, 5, 1},
    {"no gradient in the last batch", LEARNT, 0, 0, flat, 0, 5, 3},
    {"solved from the first", LEARNT, 0, 0, zero, 0, 200, 1},
    {"rises", LEARNT_NO_GAIN, 0, 0, rises, 1, LEARNT_STEPS + 1, 1},
    {"rises, too short to tell", LEARNT, 0, 0, rises, 1, LEARNT_STEPS, 1},
    {"rises, resumed", LEARNT, 1, 0, rises, 1, 200, 1},
    {"rises, then falls", LEARNT, 0, 0, hill, 1, LEARNT_STEPS + 1, 1},
    {"flat", LEARNT_NO_GAIN, 0, 0, flat, 1, 200, 1},
};

static void losses_are_classified(void)
{
	for (size_t k = 0; k < sizeof courses / sizeof *courses; k++) {
		const struct course *c = &courses[k];
		struct learning l;
		learning_begin(&l, c->resumed);
		for (int step = 0; step < c->steps; step++) {
			hg_train_event event = {.loss = c->loss(step), .steps = c->batches};
			event.step.applied = step >= c->skipped_first;
			event.skipped = event.step.applied ? 0 : event.steps;
			event.step.grad_norm = event.step.applied ? c->gradient : (double)INFINITY;
			learning_note(&l, &event);
		}
		CHECK_MSG(learning_verdict(&l) == c->expected, "%s: verdict %d, expected %d", c->name,
		          (int)learning_verdict(&l), (int)c->expected);
	}
	struct learning none;
	learning_begin(&none, 0);
	CHECK_EQ_I(learning_verdict(&none), LEARNT);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {TEST(losses_are_classified)};
	return RUN_TESTS(argc, argv, cases);
}
