/* bias_add, an activation and dropout, any two or all three in this order, become an epilogue
 * (epilogue.c). Dropout keeps its random key, so fusing does not change which elements are
 * dropped. */
#include <string.h>

#include "autograd/attr.h"
#include "autograd/fuse.h"
#include "autograd/ops/epilogue.h"
#include "precision/range.h"

struct hg__chain hg__epilogue_chain(const struct hg__recording *recording, int32_t last)
{
	struct hg__chain chain = {0};
	int stage = EPILOGUE_STAGES;
	for (int32_t k = last; k >= 0; k = hg__previous_entry(recording, &recording->entry[k].node)) {
		const int own = epilogue_stage(recording->entry[k].node.op);
		if (own < 0 || own >= stage)
			break;
		stage = own;
		chain.entry[chain.length++] = k;
	}
	return chain;
}

int hg__epilogue_may_end(const struct hg__recording *recording, const struct hg__chain *parts)
{
	for (int i = 0; i < parts->length; i++)
		if (recording->entry[parts->entry[i]].node.op->act > HG__ACT_SUM_EPILOGUES)
			return 0;
	return 1;
}

/* Copies the operand and the constants of one part into the fused node. */
void hg__epilogue_take(struct hg__node *whole, struct hg__epilogue_attr *attr,
                       const struct hg__node *node)
{
	const int stage = epilogue_stage(node->op);
	whole->in[0] = node->in[0];
	if (stage == EPILOGUE_BIAS) {
		whole->in[1] = node->in[1];
		whole->n_in = 2;
		whole->aux[0] = node->aux[0];
	} else if (stage == EPILOGUE_ACT) {
		attr->act = node->op->act;
		hg__attr_get(node, &attr->act_p, sizeof attr->act_p);
	} else
		hg__attr_get(node, &attr->p, sizeof attr->p);
}

static struct hg__entry build_epilogue(const struct hg__recording *recording,
                                       const struct hg__chain *chain)
{
	struct hg__entry entry = recording->entry[chain->entry[0]];
	struct hg__epilogue_attr attr = {0};
	entry.node.op = &hg__op_epilogue;
	entry.node.scope = recording->entry[chain->entry[chain->length - 1]].node.scope;
	entry.node.n_in = 1;
	for (int i = 0; i < chain->length; i++) {
		const struct hg__node *node = &recording->entry[chain->entry[i]].node;
		hg__epilogue_take(&entry.node, &attr, node);
		entry.node.verdict = hg__verdict_worse(entry.node.verdict, node->verdict);
	}
	memset(entry.node.attr, 0, sizeof entry.node.attr);
	memcpy(entry.node.attr, &attr, sizeof attr);
	return entry;
}

const struct hg__rewrite hg__rewrite_epilogue = {hg__epilogue_chain, build_epilogue};
