#ifndef HG_TESTS_UNIT_RANDOM_TAPE_H
#define HG_TESTS_UNIT_RANDOM_TAPE_H

/* A tape that grows by random ops, for tests that compare such tapes with themselves op by op. */
#include <stdio.h>

#include "unit/tape.h"

enum { WALK_VALUES = 40 };

/* The values of a tape so far, and their widths. */
struct walk {
	struct bench *b;
	hg_tape *tape;
	hg_var value[WALK_VALUES];
	int64_t width[WALK_VALUES];
	int values, params;
};

/* A weight or bias of its own: the n-th call gives the same parameter on each tape of a bench. */
static inline hg_var walk_param(struct walk *w, int64_t rows, int64_t cols)
{
	char name[64];
	snprintf(name, sizeof name, "p%d_%lldx%lld", w->params++, (long long)rows, (long long)cols);
	return hg_tape_param(w->tape, param(w->b, name, rows, cols));
}

static inline void walk_add(struct walk *w, hg_var value, int64_t width)
{
	CHECK(w->values < WALK_VALUES);
	w->value[w->values] = value;
	w->width[w->values++] = width;
}

/* Adds the sum of this value and another one of its width, if there is one. */
static inline void walk_add_sum(struct walk *w, int from)
{
	for (int k = 0; k < w->values; k++)
		if (k != from && w->width[k] == w->width[from]) {
			walk_add(w, hg_add(w->tape, w->value[from], w->value[k]), w->width[from]);
			return;
		}
}

#endif
