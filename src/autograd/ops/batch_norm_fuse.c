/* batch_norm followed by relu becomes a batch_norm that applies the relu. A relu between a batch
 * norm and a dropout is fused with the dropout instead, which takes as many kernels and less
 * traffic: that rewrite is tried first. */
#include <string.h>

#include "autograd/attr.h"
#include "autograd/fuse.h"

/* A batch_norm followed by relu, the last one first. */
static struct hg__chain match_norm(const struct hg__recording *recording, int32_t last)
{
	struct hg__chain chain = {0};
	const int32_t first = hg__previous_entry(recording, &recording->entry[last].node);
	if (recording->entry[last].node.op == &hg__op_relu && first >= 0 &&
	    recording->entry[first].node.op == &hg__op_batch_norm)
		chain = (struct hg__chain){2, {last, first}};
	return chain;
}

static struct hg__entry build_norm(const struct hg__recording *recording,
                                   const struct hg__chain *chain)
{
	struct hg__entry entry = recording->entry[chain->entry[1]];
	struct hg__batch_norm_attr attr;
	hg__attr_get(&entry.node, &attr, sizeof attr);
	attr.relu = 1;
	memcpy(entry.node.attr, &attr, sizeof attr);
	entry.node.out = recording->entry[chain->entry[0]].node.out;
	return entry;
}

const struct hg__rewrite hg__rewrite_batch_norm = {match_norm, build_norm};
