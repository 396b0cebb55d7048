#include <stdio.h>
#include <string.h>

#include "autograd/fuse.h"
#include "autograd/tape.h"

/* Chains of nodes become one fused node, which needs fewer kernels and less memory traffic. Which
 * chains, and what they become, stands in a table of rewrites (rewrites.def).
 *
 * The entry of the last node of a chain holds the fused node, and its value stays the same one. The
 * other entries remain on the tape for hg_tape_print, but nothing reads their values, so they do
 * not run. A value inside a chain must have one use, must not be kept and must not be the output.
 */

static const struct hg__rewrite *const rewrites[] = {
#define HG_REWRITE(name) &hg__rewrite_##name,
#include "autograd/rewrites.def"
#undef HG_REWRITE
};

/* How often each value is read by nodes that the output or a kept value needs. */
static void count_uses(struct hg__recording *recording)
{
	for (int64_t v = 0; v < recording->values; v++)
		recording->value[v].uses = 0;
	for (int64_t k = recording->entries - 1; k >= 0; k--) {
		const struct hg__node *node = &recording->entry[k].node;
		const struct hg__value *out = &recording->value[node->out];
		for (int i = 0; i < node->n_in && (out->keep || out->uses); i++)
			if (node->in[i] >= 0)
				recording->value[node->in[i]].uses++;
	}
}

/* "bias_add+relu+dropout" */
static hg_status fused_title(hg_tape *tape, const struct hg__chain *chain, const char **text)
{
	char name[96] = "";
	for (int i = chain->length - 1; i >= 0; i--) {
		const size_t length = strlen(name);
		snprintf(name + length, sizeof name - length, "%s%s", length ? "+" : "",
		         tape->recording.entry[chain->entry[i]].node.op->name);
	}
	return hg__tape_text(tape, name, text);
}

/* Replaces the last entry of the chain by the fused one and appends what it keeps for backward.
 * *done 0: the policy does not accept it, and nothing has changed. */
static hg_status fuse_chain(hg_tape *tape, const struct hg__chain *chain, struct hg__entry entry,
                            int *done)
{
	struct hg__recording *recording = &tape->recording;
	const int32_t last = chain->entry[0];
	HG__TRY(hg__tape_refit(tape, &entry, done));
	if (!*done)
		return HG_OK;
	HG__TRY(fused_title(tape, chain, &entry.title));
	for (int i = 1; i < chain->length; i++) {
		struct hg__entry *part = &recording->entry[chain->entry[i]];
		part->fused_into = last;
		for (int k = 0; k < HG__MAX_AUX; k++)
			part->node.aux[k] = -1;
	}
	for (int k = 0; k < HG__MAX_AUX; k++)
		if (entry.node.aux[k] >= 0)
			recording->value[entry.node.aux[k]].node = last;
	recording->entry[last] = entry;
	return HG_OK;
}

/* Tries each rewrite at this entry until one is accepted. */
static hg_status fuse_at(hg_tape *tape, int32_t last)
{
	const struct hg__recording *recording = &tape->recording;
	int done = 0;
	for (size_t r = 0; r < sizeof rewrites / sizeof rewrites[0] && !done; r++) {
		const struct hg__chain chain = rewrites[r]->match(recording, last);
		if (chain.length > 1)
			HG__TRY(fuse_chain(tape, &chain, rewrites[r]->build(recording, &chain), &done));
	}
	return HG_OK;
}

hg_status hg__tape_fuse(hg_tape *tape)
{
	struct hg__recording *recording = &tape->recording;
	if (tape->ctx->separate_ops)
		return HG_OK;
	count_uses(recording);
	for (int64_t k = recording->entries - 1; k >= 0; k--)
		if (hg__is_needed(recording, k))
			HG__TRY(fuse_at(tape, (int32_t)k));
	return HG_OK;
}
