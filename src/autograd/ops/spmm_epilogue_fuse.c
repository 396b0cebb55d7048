/* spmm with f32 sums becomes an aggregation with an epilogue (spmm_epilogue.c), together with what
 * comes after it: add or combine, then bias_add, an activation and dropout. At least one of these
 * must be there. */
#include <string.h>

#include "autograd/attr.h"
#include "autograd/fuse.h"
#include "autograd/ops/epilogue.h"
#include "autograd/ops/spmm.h"
#include "precision/range.h"

static int is_f32_aggregation(const struct hg__recording *recording, int32_t entry)
{
	return entry >= 0 && recording->entry[entry].node.op == &hg__op_spmm &&
	       recording->entry[entry].node.accumulate == HG_ACC_F32;
}

/* The operand of this sum of two that an aggregation makes; -1: none. Of combine only operand 1 can
 * be one, because combine multiplies its operand 0 by 1 + eps. */
static int aggregated_operand(const struct hg__recording *recording, const struct hg__node *node)
{
	for (int i = 1; i >= 0; i--)
		if ((node->op == &hg__op_add || (node->op == &hg__op_combine && i == 1)) &&
		    is_f32_aggregation(recording, hg__sole_maker(recording, node, i)))
			return i;
	return -1;
}

/* The chain that ends here, with the sum of two and the aggregation before it. Length 0: there is
 * none. */
static struct hg__chain match_aggregation(const struct hg__recording *recording, int32_t last)
{
	const struct hg__chain parts = hg__epilogue_chain(recording, last);
	struct hg__chain chain = parts;
	int32_t k =
	    chain.length
	        ? hg__previous_entry(recording, &recording->entry[chain.entry[chain.length - 1]].node)
	        : last;
	const int i = k < 0 ? -1 : aggregated_operand(recording, &recording->entry[k].node);
	if (i >= 0) {
		chain.entry[chain.length++] = k;
		k = hg__sole_maker(recording, &recording->entry[k].node, i);
	}
	if (!chain.length || !hg__epilogue_may_end(recording, &parts) ||
	    !is_f32_aggregation(recording, k))
		chain.length = 0;
	else
		chain.entry[chain.length++] = k;
	return chain;
}

/* Operands of ops/spmm_epilogue.c: X, w, Z, eps, b. */
enum { Z = 2, EPS, B };

static void take_sum_operand(const struct hg__recording *recording, struct hg__node *whole,
                             struct hg__spmm_epilogue_attr *attr, const struct hg__node *node)
{
	const int other = 1 - aggregated_operand(recording, node);
	attr->self = node->in[other] == whole->in[0];
	whole->in[Z] = attr->self ? -1 : node->in[other];
	whole->in[EPS] = node->op == &hg__op_combine ? node->in[2] : -1;
}

/* The fused node of an aggregation: the constants and the worst verdict of the chain, and b with
 * what its gradient needs. */
static struct hg__entry build_aggregation(const struct hg__recording *recording,
                                          const struct hg__chain *chain)
{
	const struct hg__node *sum = &recording->entry[chain->entry[chain->length - 1]].node;
	struct hg__entry entry = recording->entry[chain->entry[0]];
	struct hg__node *node = &entry.node;
	struct hg__spmm_epilogue_attr attr = {0};
	struct hg__node parts = {.in = {-1, -1}, .aux = {-1}};
	hg__attr_get(sum, &attr.spmm, sizeof attr.spmm);
	node->op = &hg__op_spmm_epilogue;
	node->scope = sum->scope;
	node->graph = sum->graph;
	node->n_in = B + 1;
	node->in[0] = sum->in[0];
	node->in[1] = sum->in[1];
	node->in[Z] = node->in[EPS] = -1;
	for (int i = 0; i < chain->length; i++) {
		const struct hg__node *part = &recording->entry[chain->entry[i]].node;
		node->verdict = hg__verdict_worse(node->verdict, part->verdict);
		if (epilogue_stage(part->op) >= 0)
			hg__epilogue_take(&parts, &attr.act_drop, part);
		else if (part != sum)
			take_sum_operand(recording, node, &attr, part);
	}
	node->in[B] = parts.in[1];
	for (int i = 0; i < HG__MAX_AUX; i++)
		node->aux[i] = i == 0 ? parts.aux[0] : -1;
	memset(node->attr, 0, sizeof node->attr);
	memcpy(node->attr, &attr, sizeof attr);
	return entry;
}

const struct hg__rewrite hg__rewrite_spmm_epilogue = {match_aggregation, build_aggregation};
