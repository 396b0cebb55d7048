#include <stdio.h>
#include <string.h>

#include "autograd/ops/epilogue.h"
#include "autograd/tape.h"
#include "precision/range.h"

/* Chains become one node:
 *
 *     bias_add, an activation, dropout; any two or all three of them in this order    an epilogue (ops/epilogue.c)
 *     batch_norm, relu                                                                 a batch_norm that ends with it
 *
 * The last of the chain takes the others in: its line holds the new node, its value stays where it was. The others remain on the tape for the reader; nothing
 * needs them, so they are not alive. A relu with dropout behind it goes to the dropout, not to the batch norm: as many kernels, less traffic.
 *
 * What lies between must be nobody else's: used once, not kept, not the output. Dropout keeps its key, so the elements that are dropped are the same. */

/* Uses of each value by nodes that the output or a kept value needs. */
static void count_uses(hg_tape *tape)
{
	for (int64_t v = 0; v < tape->values; v++)
		tape->value[v].uses = 0;
	for (int64_t k = tape->lines - 1; k >= 0; k--) {
		const struct hg__node *node = &tape->line[k].node;
		const struct hg__value *out = &tape->value[node->out];
		for (int i = 0; i < node->n_in && (out->keep || out->uses); i++)
			if (node->in[i] >= 0)
				tape->value[node->in[i]].uses++;
	}
}

static const struct epilogue_part *part_of(const struct hg__node *node)
{
	for (int i = 0; i < EPILOGUE_PARTS; i++)
		if (epilogue_parts[i].op == node->op)
			return &epilogue_parts[i];
	return NULL;
}

/* The node that alone makes and alone may hand on the X of this one; -1: there is none. */
static int32_t before(const hg_tape *tape, const struct hg__node *node)
{
	const struct hg__value *x = &tape->value[node->in[0]];
	return x->kind == HG__RESULT && x->uses == 1 && !x->keep ? x->node : -1;
}

/* The lines of the longest chain that ends here, the last one first. */
struct chain {
	int length;
	int32_t line[EPILOGUE_STAGES];
};

static struct chain chain_at(const hg_tape *tape, int32_t last)
{
	struct chain chain = {0};
	int stage = EPILOGUE_STAGES;
	for (int32_t k = last; k >= 0; k = before(tape, &tape->line[k].node)) {
		const struct epilogue_part *part = part_of(&tape->line[k].node);
		if (!part || part->stage >= stage)
			break;
		stage = part->stage;
		chain.line[chain.length++] = k;
	}
	return chain;
}

/* The operand and the constants of one part become the whole's. */
static void take(struct hg__node *whole, struct hg__epilogue_attr *attr, const struct hg__node *node)
{
	const struct epilogue_part *part = part_of(node);
	whole->in[0] = node->in[0];
	if (part->stage == EPILOGUE_BIAS) {
		whole->in[1] = node->in[1];
		whole->n_in = 2;
		whole->aux[0] = node->aux[0];
	} else if (part->stage == EPILOGUE_ACT) {
		attr->act = part->act;
		hg__attr_get(node, &attr->act_p, sizeof attr->act_p);
	} else
		hg__attr_get(node, &attr->p, sizeof attr->p);
}

/* relu right behind batch_norm, the last one first. */
static struct chain norm_at(const hg_tape *tape, int32_t last)
{
	struct chain chain = {0};
	const int32_t first = before(tape, &tape->line[last].node);
	if (tape->line[last].node.op == &hg__op_relu && first >= 0 && tape->line[first].node.op == &hg__op_batch_norm)
		chain = (struct chain){2, {last, first}};
	return chain;
}

static struct hg__line norm_of(const hg_tape *tape, const struct chain *chain)
{
	struct hg__line line = tape->line[chain->line[1]];
	struct hg__batch_norm_attr attr;
	hg__attr_get(&line.node, &attr, sizeof attr);
	attr.relu = 1;
	memcpy(line.node.attr, &attr, sizeof attr);
	line.node.out = tape->line[chain->line[0]].node.out;
	return line;
}

static struct hg__line epilogue_of(const hg_tape *tape, const struct chain *chain)
{
	struct hg__line line = tape->line[chain->line[0]];
	struct hg__epilogue_attr attr = {0};
	line.node.op = &hg__op_epilogue;
	line.node.scope = tape->line[chain->line[chain->length - 1]].node.scope;
	line.node.n_in = 1;
	for (int i = 0; i < chain->length; i++) {
		const struct hg__node *node = &tape->line[chain->line[i]].node;
		take(&line.node, &attr, node);
		line.node.verdict = hg__verdict_worse(line.node.verdict, node->verdict);
	}
	memset(line.node.attr, 0, sizeof line.node.attr);
	memcpy(line.node.attr, &attr, sizeof attr);
	return line;
}

/* "bias_add+relu+dropout" */
static hg_status title(hg_tape *tape, const struct chain *chain, const char **text)
{
	char name[96] = "";
	for (int i = chain->length - 1; i >= 0; i--) {
		const size_t length = strlen(name);
		snprintf(name + length, sizeof name - length, "%s%s", length ? "+" : "", tape->line[chain->line[i]].node.op->name);
	}
	return hg__tape_text(tape, name, text);
}

/* The chain becomes `line`, which also gets what it keeps for backward. */
static hg_status fuse(hg_tape *tape, const struct chain *chain, struct hg__line line)
{
	const int32_t last = chain->line[0];
	int fits = 0;
	HG__TRY(hg__tape_refit(tape, &line, &fits));
	if (!fits)
		return HG_OK;
	HG__TRY(title(tape, chain, &line.title));
	for (int i = 1; i < chain->length; i++) {
		struct hg__line *part = &tape->line[chain->line[i]];
		part->into = last;
		for (int k = 0; k < HG__MAX_AUX; k++)
			part->node.aux[k] = -1;
	}
	for (int k = 0; k < HG__MAX_AUX; k++)
		if (line.node.aux[k] >= 0)
			tape->value[line.node.aux[k]].node = last;
	tape->line[last] = line;
	return HG_OK;
}

hg_status hg__tape_fuse(hg_tape *tape)
{
	if (tape->ctx->separate_ops || tape->observer)
		return HG_OK;
	count_uses(tape);
	for (int64_t k = tape->lines - 1; k >= 0; k--) {
		const struct hg__value *out = &tape->value[tape->line[k].node.out];
		if (tape->line[k].into >= 0 || !(out->keep || out->uses))
			continue;
		const struct chain chain = chain_at(tape, (int32_t)k), norm = norm_at(tape, (int32_t)k);
		if (chain.length > 1)
			HG__TRY(fuse(tape, &chain, epilogue_of(tape, &chain)));
		else if (norm.length)
			HG__TRY(fuse(tape, &norm, norm_of(tape, &norm)));
	}
	return HG_OK;
}
