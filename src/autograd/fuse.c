#include <stdio.h>
#include <string.h>

#include "autograd/ops/epilogue.h"
#include "autograd/tape.h"
#include "precision/range.h"

/* Chains of nodes become one fused node, which needs fewer kernels and less memory traffic:
 *
 *     bias_add, an activation, dropout: any two or all three, in this order    an epilogue
 *         (ops/epilogue.c)
 *     spmm with f32 sums, then add or combine, then those three; at least one of these after spmm
 *         an aggregation with an epilogue (ops/spmm_epilogue.c), for activations in the list of
 *         its endings
 *     batch_norm, relu    a batch_norm that applies the relu
 *
 * The entry of the last node of a chain holds the fused node, and its value stays the same one. The
 * other entries remain on the tape for hg_tape_print, but nothing reads their values, so they do
 * not run. A relu between a batch norm and a dropout is fused with the dropout: that takes as many
 * kernels as fusing it with the batch norm, and less traffic.
 *
 * A value inside a chain must have one use, must not be kept and must not be the output. Dropout
 * keeps its random key, so fusing does not change which elements are dropped. */

/* How often each value is read by nodes that the output or a kept value needs. */
static void count_uses(hg_tape *tape)
{
	for (int64_t v = 0; v < tape->values; v++)
		tape->value[v].uses = 0;
	for (int64_t k = tape->entries - 1; k >= 0; k--) {
		const struct hg__node *node = &tape->entry[k].node;
		const struct hg__value *out = &tape->value[node->out];
		for (int i = 0; i < node->n_in && (out->keep || out->uses); i++)
			if (node->in[i] >= 0)
				tape->value[node->in[i]].uses++;
	}
}

/* The entry that makes operand i, if this node is its only reader and its value is not kept; else
 * -1. */
static int32_t sole_maker(const hg_tape *tape, const struct hg__node *node, int i)
{
	const struct hg__value *x = &tape->value[node->in[i]];
	return x->kind == HG__RESULT && x->uses == 1 && !x->keep ? x->node : -1;
}

static int32_t previous_entry(const hg_tape *tape, const struct hg__node *node)
{
	return sole_maker(tape, node, 0);
}

/* The entries of a chain, the last one first. */
struct chain {
	int length;
	int32_t entry[2 + EPILOGUE_STAGES];
};

static struct chain chain_at(const hg_tape *tape, int32_t last)
{
	struct chain chain = {0};
	int stage = EPILOGUE_STAGES;
	for (int32_t k = last; k >= 0; k = previous_entry(tape, &tape->entry[k].node)) {
		const int own = epilogue_stage(tape->entry[k].node.op);
		if (own < 0 || own >= stage)
			break;
		stage = own;
		chain.entry[chain.length++] = k;
	}
	return chain;
}

/* Copies the operand and the constants of one part into the fused node. */
static void take_part(struct hg__node *whole, struct hg__epilogue_attr *attr,
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

/* ---- an aggregation with an epilogue ---- */

static int is_f32_aggregation(const hg_tape *tape, int32_t entry)
{
	return entry >= 0 && tape->entry[entry].node.op == &hg__op_spmm &&
	       tape->entry[entry].node.accumulate == HG_ACC_F32;
}

/* The operand of this sum of two that an aggregation makes; -1: none. Of combine only operand 1 can
 * be one, because combine multiplies its operand 0 by 1 + eps. */
static int aggregated_operand(const hg_tape *tape, const struct hg__node *node)
{
	for (int i = 1; i >= 0; i--)
		if ((node->op == &hg__op_add || (node->op == &hg__op_combine && i == 1)) &&
		    is_f32_aggregation(tape, sole_maker(tape, node, i)))
			return i;
	return -1;
}

/* Can an aggregation apply these parts before it stores a row? Its kernels know only the
 * activations up to HG__ACT_ENDINGS. */
static int may_end(const hg_tape *tape, const struct chain *parts)
{
	for (int i = 0; i < parts->length; i++)
		if (tape->entry[parts->entry[i]].node.op->act > HG__ACT_ENDINGS)
			return 0;
	return 1;
}

/* The chain that ends here, with the sum of two and the aggregation before it. Length 0: there is
 * none. */
static struct chain aggregation_at(const hg_tape *tape, int32_t last, const struct chain *parts)
{
	struct chain chain = *parts;
	int32_t k = chain.length
	                ? previous_entry(tape, &tape->entry[chain.entry[chain.length - 1]].node)
	                : last;
	const int i = k < 0 ? -1 : aggregated_operand(tape, &tape->entry[k].node);
	if (i >= 0) {
		chain.entry[chain.length++] = k;
		k = sole_maker(tape, &tape->entry[k].node, i);
	}
	if (!chain.length || !may_end(tape, parts) || !is_f32_aggregation(tape, k))
		chain.length = 0;
	else
		chain.entry[chain.length++] = k;
	return chain;
}

/* Operands of ops/spmm_epilogue.c: X, w, Z, eps, b. */
enum { Z = 2, EPS, B };

static void take_sum_operand(const hg_tape *tape, struct hg__node *whole,
                             struct hg__spmm_epilogue_attr *attr, const struct hg__node *node)
{
	const int other = 1 - aggregated_operand(tape, node);
	attr->self = node->in[other] == whole->in[0];
	whole->in[Z] = attr->self ? -1 : node->in[other];
	whole->in[EPS] = node->op == &hg__op_combine ? node->in[2] : -1;
}

/* A batch_norm followed by relu, the last one first. */
static struct chain norm_at(const hg_tape *tape, int32_t last)
{
	struct chain chain = {0};
	const int32_t first = previous_entry(tape, &tape->entry[last].node);
	if (tape->entry[last].node.op == &hg__op_relu && first >= 0 &&
	    tape->entry[first].node.op == &hg__op_batch_norm)
		chain = (struct chain){2, {last, first}};
	return chain;
}

static struct hg__entry norm_of(const hg_tape *tape, const struct chain *chain)
{
	struct hg__entry entry = tape->entry[chain->entry[1]];
	struct hg__batch_norm_attr attr;
	hg__attr_get(&entry.node, &attr, sizeof attr);
	attr.relu = 1;
	memcpy(entry.node.attr, &attr, sizeof attr);
	entry.node.out = tape->entry[chain->entry[0]].node.out;
	return entry;
}

static struct hg__entry epilogue_of(const hg_tape *tape, const struct chain *chain)
{
	struct hg__entry entry = tape->entry[chain->entry[0]];
	struct hg__epilogue_attr attr = {0};
	entry.node.op = &hg__op_epilogue;
	entry.node.scope = tape->entry[chain->entry[chain->length - 1]].node.scope;
	entry.node.n_in = 1;
	for (int i = 0; i < chain->length; i++) {
		const struct hg__node *node = &tape->entry[chain->entry[i]].node;
		take_part(&entry.node, &attr, node);
		entry.node.verdict = hg__verdict_worse(entry.node.verdict, node->verdict);
	}
	memset(entry.node.attr, 0, sizeof entry.node.attr);
	memcpy(entry.node.attr, &attr, sizeof attr);
	return entry;
}

/* The fused node of an aggregation: the constants and the worst verdict of the chain, and b with
 * what its gradient needs. */
static struct hg__entry aggregation_of(const hg_tape *tape, const struct chain *chain)
{
	const struct hg__node *sum = &tape->entry[chain->entry[chain->length - 1]].node;
	struct hg__entry entry = tape->entry[chain->entry[0]];
	struct hg__node *node = &entry.node;
	struct hg__spmm_epilogue_attr attr = {0};
	struct hg__node parts = {.in = {-1, -1}, .aux = {-1, -1}};
	hg__attr_get(sum, &attr.spmm, sizeof attr.spmm);
	node->op = &hg__op_spmm_epilogue;
	node->scope = sum->scope;
	node->graph = sum->graph;
	node->n_in = B + 1;
	node->in[0] = sum->in[0];
	node->in[1] = sum->in[1];
	node->in[Z] = node->in[EPS] = -1;
	for (int i = 0; i < chain->length; i++) {
		const struct hg__node *part = &tape->entry[chain->entry[i]].node;
		node->verdict = hg__verdict_worse(node->verdict, part->verdict);
		if (epilogue_stage(part->op) >= 0)
			take_part(&parts, &attr.then, part);
		else if (part != sum)
			take_sum_operand(tape, node, &attr, part);
	}
	node->in[B] = parts.in[1];
	for (int i = 0; i < HG__MAX_AUX; i++)
		node->aux[i] = parts.aux[i];
	memset(node->attr, 0, sizeof node->attr);
	memcpy(node->attr, &attr, sizeof attr);
	return entry;
}

/* "bias_add+relu+dropout" */
static hg_status fused_title(hg_tape *tape, const struct chain *chain, const char **text)
{
	char name[96] = "";
	for (int i = chain->length - 1; i >= 0; i--) {
		const size_t length = strlen(name);
		snprintf(name + length, sizeof name - length, "%s%s", length ? "+" : "",
		         tape->entry[chain->entry[i]].node.op->name);
	}
	return hg__tape_text(tape, name, text);
}

/* Replaces the last entry of the chain by the fused one and appends what it keeps for backward.
 * *done 0: the policy does not accept it, and nothing has changed. */
static hg_status fuse_chain(hg_tape *tape, const struct chain *chain, struct hg__entry entry,
                            int *done)
{
	const int32_t last = chain->entry[0];
	HG__TRY(hg__tape_refit(tape, &entry, done));
	if (!*done)
		return HG_OK;
	HG__TRY(fused_title(tape, chain, &entry.title));
	for (int i = 1; i < chain->length; i++) {
		struct hg__entry *part = &tape->entry[chain->entry[i]];
		part->fused_into = last;
		for (int k = 0; k < HG__MAX_AUX; k++)
			part->node.aux[k] = -1;
	}
	for (int k = 0; k < HG__MAX_AUX; k++)
		if (entry.node.aux[k] >= 0)
			tape->value[entry.node.aux[k]].node = last;
	tape->entry[last] = entry;
	return HG_OK;
}

/* Fuses the longest chain that ends here. */
static hg_status fuse_at(hg_tape *tape, int32_t last)
{
	const struct chain parts = chain_at(tape, last), sum = aggregation_at(tape, last, &parts),
	                   norm = norm_at(tape, last);
	int done = 0;
	if (sum.length)
		HG__TRY(fuse_chain(tape, &sum, aggregation_of(tape, &sum), &done));
	if (!done && parts.length > 1)
		HG__TRY(fuse_chain(tape, &parts, epilogue_of(tape, &parts), &done));
	if (!done && norm.length)
		HG__TRY(fuse_chain(tape, &norm, norm_of(tape, &norm), &done));
	return HG_OK;
}

hg_status hg__tape_fuse(hg_tape *tape)
{
	if (tape->ctx->separate_ops)
		return HG_OK;
	count_uses(tape);
	for (int64_t k = tape->entries - 1; k >= 0; k--) {
		const struct hg__value *out = &tape->value[tape->entry[k].node.out];
		if (tape->entry[k].fused_into < 0 && (out->keep || out->uses))
			HG__TRY(fuse_at(tape, (int32_t)k));
	}
	return HG_OK;
}
