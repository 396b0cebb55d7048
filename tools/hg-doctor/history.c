#include "history.h"

#include <stdlib.h>

/* the room doubles from here */
#define FIRST_ROOM 256

void history_begin(struct history *c, int64_t first, double scale)
{
	*c = (struct history){.first = first, .scale = scale};
}

int history_add(struct history *c, const hg_train_event *event)
{
	if (c->count == c->room) {
		const int64_t room = c->room ? 2 * c->room : FIRST_ROOM;
		struct history_step *step = realloc(c->step, (size_t)room * sizeof *step);
		if (!step)
			return -1;
		c->step = step;
		c->room = room;
	}
	c->step[c->count++] = (struct history_step){event->loss, event->step.grad_norm, c->scale,
	                                            event->step.applied, event->step.reason};
	c->skipped += !event->step.applied;
	c->scale = (double)event->step.loss_scale;
	return 0;
}

void history_end(struct history *c)
{
	free(c->step);
	*c = (struct history){0};
}
