#ifndef HG_AUTOGRAD_FUSE_H
#define HG_AUTOGRAD_FUSE_H

#include "autograd/recording.h"

HG_EXTERN_C_BEGIN

/* A rewrite says which chain of entries one fused node can replace, and makes that node. Every
 * rewrite is one file beside its fused op, ops/NAME_fuse.c, and one line of rewrites.def. */

enum { HG__CHAIN_MOST = 5 };

/* The entries of a chain, the last one first. Length 0: there is no chain. */
struct hg__chain {
	int length;
	int32_t entry[HG__CHAIN_MOST];
};

struct hg__rewrite {
	/* The longest chain that ends at this entry. */
	struct hg__chain (*match)(const struct hg__recording *recording, int32_t last);
	/* The entry that replaces the chain's last one: its node with operands, constants, the worst
	 * verdict of the chain, and the same result. */
	struct hg__entry (*build)(const struct hg__recording *recording, const struct hg__chain *chain);
};

#define HG_REWRITE(name) extern const struct hg__rewrite hg__rewrite_##name;
#include "autograd/rewrites.def"
#undef HG_REWRITE

/* Does this entry run? It does unless another one does its work, or nothing reads its result
 * (fuse.c counts the readers). */
static inline int hg__is_needed(const struct hg__recording *recording, int64_t entry)
{
	const struct hg__entry *of = &recording->entry[entry];
	const struct hg__value *out = &recording->value[of->node.out];
	return of->fused_into < 0 && (out->keep || out->uses);
}

/* The entry that makes operand i, if this node is its only reader and its value is not kept; else
 * -1. */
static inline int32_t hg__sole_maker(const struct hg__recording *recording,
                                     const struct hg__node *node, int i)
{
	const struct hg__value *x = &recording->value[node->in[i]];
	return x->kind == HG__RESULT && x->uses == 1 && !x->keep ? x->node : -1;
}

static inline int32_t hg__previous_entry(const struct hg__recording *recording,
                                         const struct hg__node *node)
{
	return hg__sole_maker(recording, node, 0);
}

HG_EXTERN_C_END
#endif
