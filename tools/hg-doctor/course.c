#include "course.h"

#include <stdlib.h>

/* Then twice as many, and so on. */
#define FIRST_ROOM 256

void course_begin(struct course *c, int64_t first, double scale)
{
	*c = (struct course){.first = first, .scale = scale};
}

int course_note(struct course *c, const hg_train_event *event)
{
	if (c->count == c->room) {
		const int64_t room = c->room ? 2 * c->room : FIRST_ROOM;
		struct course_step *step = realloc(c->step, (size_t)room * sizeof *step);
		if (!step)
			return -1;
		c->step = step;
		c->room = room;
	}
	c->step[c->count++] = (struct course_step){event->loss, event->step.grad_norm, c->scale,
	                                           event->step.applied, event->step.reason};
	c->skipped += !event->step.applied;
	c->scale = (double)event->step.loss_scale;
	return 0;
}

void course_end(struct course *c)
{
	free(c->step);
	*c = (struct course){0};
}
