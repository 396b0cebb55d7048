#ifndef HG_TESTS_FAULTS_FAULT_H
#define HG_TESTS_FAULTS_FAULT_H

#include "faults/setup.h"
#include "halfgraph/doctor.h"

/* A row of faults.def. A planter builds the whole set-up, with its fault if s->planted, and writes
 * to s->expected what the doctor should report. */
struct fault {
	const char *id;
	hg_cause cause;
	const char *model, *layer;
	/* NULL: the fault exists only on a context with separate ops */
	const char *op;
	const char *separate_op; /* on a context with separate ops */
	int backward;
	void (*plant)(struct setup *s, const struct fault *f);
	const char *what;
};

/* "conv2" -> 2 */
static inline int fault_layer(const struct fault *f)
{
	return f->layer[4] - '0';
}

#define FAULT(id, cause, model, layer, op, direction, plant, what) \
	void plant(struct setup *s, const struct fault *f);
#define ATTENTION_FAULT(id, cause, layer, op, separate, direction, plant, what) \
	FAULT(id, cause, "gat", layer, op, direction, plant, what)
#include "faults/faults.def"
#undef ATTENTION_FAULT
#undef FAULT

/* A row of healthy.def. */
struct healthy {
	const char *id;
	void (*plant)(struct setup *s);
	const char *what;
};
#define HEALTHY(id, plant, what) void plant(struct setup *s);
#include "faults/healthy.def"
#undef HEALTHY

#endif
