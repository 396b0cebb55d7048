/* Attention becomes attention with an epilogue (attention_epilogue.c), together with what comes
 * after it: the mean over its heads, bias_add, an activation and dropout. At least one of these
 * must be there. */
#include <string.h>

#include "autograd/attr.h"
#include "autograd/fuse.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/epilogue.h"
#include "precision/range.h"

static const struct hg__node *node_at(const struct hg__recording *recording, int32_t k)
{
	return &recording->entry[k].node;
}

static int is(const struct hg__recording *recording, int32_t k, const struct hg__op *op)
{
	return k >= 0 && node_at(recording, k)->op == op;
}

/* Whether entry k takes the mean over all heads of what it reads, if that is attention. */
static int means_heads(const struct hg__recording *recording, int32_t k)
{
	struct hg__heads_attr mean;
	if (!is(recording, k, &hg__op_head_mean))
		return 0;
	const int32_t before = hg__previous_entry(recording, node_at(recording, k));
	hg__attr_get(node_at(recording, k), &mean, sizeof mean);
	return is(recording, before, &hg__op_attention) &&
	       hg__attention_attr(node_at(recording, before)).heads == mean.heads;
}

static struct hg__chain match(const struct hg__recording *recording, int32_t last)
{
	const struct hg__chain none = {0};
	struct hg__chain chain = hg__epilogue_chain(recording, last);
	int32_t k = last;
	if (!hg__epilogue_may_end(recording, &chain))
		return none;
	if (chain.length)
		k = hg__previous_entry(recording, node_at(recording, chain.entry[chain.length - 1]));
	if (means_heads(recording, k)) {
		chain.entry[chain.length++] = k;
		k = hg__previous_entry(recording, node_at(recording, k));
	}
	if (!chain.length || !is(recording, k, &hg__op_attention))
		return none;
	chain.entry[chain.length++] = k;
	return chain;
}

/* The fused node: attention's operands, constants and kept values, the constants and the worst
 * verdict of the chain, and b with what its gradient needs. Both dropouts keep their random
 * keys. */
static struct hg__entry build(const struct hg__recording *recording, const struct hg__chain *chain)
{
	const struct hg__node *attention = &recording->entry[chain->entry[chain->length - 1]].node;
	struct hg__entry entry = recording->entry[chain->entry[0]];
	struct hg__attention_epilogue_attr attr = {.key = entry.node.rng_key};
	struct hg__node parts = {.in = {-1, -1}, .aux = {-1}};
	hg_verdict verdict = attention->verdict;
	for (int i = 0; i < chain->length - 1; i++) {
		const struct hg__node *part = &recording->entry[chain->entry[i]].node;
		verdict = hg__verdict_worse(verdict, part->verdict);
		if (part->op == &hg__op_head_mean)
			attr.mean = 1;
		else
			hg__epilogue_take(&parts, &attr.act_drop, part);
	}
	hg__attr_get(attention, &attr.attention, sizeof attr.attention);
	entry.node.op = &hg__op_attention_epilogue;
	entry.node.scope = attention->scope;
	entry.node.graph = attention->graph;
	entry.node.rng_key = attention->rng_key;
	entry.node.verdict = verdict;
	entry.node.n_in = ATTENTION_EPILOGUE_B + 1;
	for (int i = 0; i < ATTENTION_EPILOGUE_B; i++)
		entry.node.in[i] = i < attention->n_in ? attention->in[i] : -1;
	entry.node.in[ATTENTION_EPILOGUE_B] = parts.in[1];
	for (int i = 0; i < HG__MAX_AUX; i++)
		entry.node.aux[i] = i <= ATTENTION_PLUS ? attention->aux[i] : -1;
	entry.node.aux[ATTENTION_EPILOGUE_DB] = parts.aux[0];
	memset(entry.node.attr, 0, sizeof entry.node.attr);
	memcpy(entry.node.attr, &attr, sizeof attr);
	return entry;
}

const struct hg__rewrite hg__rewrite_attention_epilogue = {match, build};
