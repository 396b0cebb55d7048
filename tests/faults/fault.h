#ifndef HG_TESTS_FAULTS_FAULT_H
#define HG_TESTS_FAULTS_FAULT_H

#include "faults/world.h"
#include "halfgraph/doctor.h"

/* One row of faults.def. Planters build the whole world, with the fault where w->sick, and write
 * what is right into w->answer. */
struct fault {
	const char *id;
	hg_cause cause;
	const char *model, *layer, *op;
	int backward;
	void (*plant)(struct world *w, const struct fault *f);
	const char *what;
};

/* "conv2" -> 2 */
static inline int fault_layer(const struct fault *f)
{
	return f->layer[4] - '0';
}

#define FAULT(id, cause, model, layer, op, direction, plant, what) \
	void plant(struct world *w, const struct fault *f);
#include "faults/faults.def"
#undef FAULT

/* And one of innocents.def. */
struct innocent {
	const char *id;
	void (*plant)(struct world *w);
	const char *what;
};
#define INNOCENT(id, plant, what) void plant(struct world *w);
#include "faults/innocents.def"
#undef INNOCENT

#endif
