/* The list of nodes that overflowed in an earlier step, as recording reads it. */
#include <string.h>

#include "autograd/tape.h"

static int is_same(const struct hg__promotion *p, const struct hg__promotion *q)
{
	return p->op == q->op && p->nth == q->nth && strcmp(p->scope, q->scope) == 0;
}

/* The name that a node of this op gets if it is recorded next. */
struct hg__promotion hg__promotion_name(const struct hg__recording *recording,
                                        const struct hg__op *op, const char *scope, int64_t before)
{
	struct hg__promotion name = {.op = op};
	strncpy(name.scope, scope, sizeof name.scope - 1);
	for (int64_t k = 0; k < before; k++)
		name.nth += recording->entry[k].op == op &&
		            strncmp(recording->entry[k].scope, scope, sizeof name.scope - 1) == 0;
	return name;
}

struct hg__promotion *hg__promotion_find(const hg_params *params, const struct hg__promotion *name)
{
	for (int64_t i = 0; i < params->promotions; i++)
		if (is_same(&params->promotion[i], name))
			return &params->promotion[i];
	return NULL;
}

const struct hg__promotion *hg__promotion_of(const hg_tape *tape, const struct hg__node *node)
{
	if (!tape->params->promotions)
		return NULL;
	const struct hg__promotion name =
	    hg__promotion_name(&tape->recording, node->op, node->scope, tape->recording.entries);
	return hg__promotion_find(tape->params, &name);
}

/* Not with sums in f16: they scale by a half on the way, and 2^-k may not fit there. */
int hg__may_rescale(const hg_tape *tape, const struct hg__node *node)
{
	return tape->params->policy.accumulate == HG_ACC_F32 && node->op->rescales &&
	       node->op->rescales(node);
}
