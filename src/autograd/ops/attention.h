/* What the files of attention share: attention.c, attention_weights.c, and for both of them
 * attention_operands.c, attention_range.c and attention_sample.c. */
#ifndef HG_AUTOGRAD_OPS_ATTENTION_H
#define HG_AUTOGRAD_OPS_ATTENTION_H

#include "autograd/about.h"

/* The operands, and what is kept for backward. */
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_C, ATTENTION_BIAS };
enum { ATTENTION_SOFTMAX, ATTENTION_PLUS };

/* Q, K and V may be columns of one operand, or the same columns. */
enum { SIDE_Q, SIDE_K, SIDE_V, SIDES };

/* Where a side is: in which operand, and in which of its equal parts side by side. */
struct hg__attention_place {
	int operand, part;
};
struct hg__attention_layout {
	struct hg__attention_place side[SIDES];
	int parts; /* the parts of operand q: Q alone, Q|K or Q|K|V */
};
struct hg__attention_layout hg__attention_layout(hg_score score, int has_k, int has_v);
struct hg__attention_layout hg__attention_layout_of(const struct hg__node *node);

/* The sides of a list of matrices, which are the operands or their gradients. */
void hg__attention_sides(const struct hg__attention_layout *layout,
                         const struct hg__mat of[HG__MAX_IN], struct hg__mat side[SIDES]);

static inline struct hg__attention_attr hg__attention_attr(const struct hg__node *node)
{
	struct hg__attention_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

/* Has the score f, which depends on the sign of a sum? Is it computed with c? */
static inline int hg__attention_is_leaky(hg_score score)
{
	return score == HG_SCORE_ADD || score == HG_SCORE_ADD_V2;
}
static inline int hg__attention_reads_c(hg_score score)
{
	return score == HG_SCORE_COSINE || score == HG_SCORE_ADD_V2;
}

/* attention_operands.c: checks the constants and the operands, but not v and its shape; and what
 * the kernels read. */
HG_NODISCARD hg_status hg__attention_infer(struct hg__infer *s);
HG_NODISCARD hg_status hg__attention_of(const struct hg__call *c, struct hg__attention *of);
HG_NODISCARD hg_status hg__attention_prepare(const struct hg__call *c);
/* attention_operands.c: the constants as a user gave them, and as messages
 * name them. */
HG_NODISCARD hg_status hg__attention_config(hg_tape *tape, const char *op,
                                            const hg_attention_operands *operands,
                                            const hg_attention_config *config,
                                            struct hg__attention_attr *attr);
int hg__attention_constants(const struct hg__node *node, struct hg__named *named);

/* attention_range.c */
struct hg__known hg__attention_range(const struct hg__range *r, struct hg__derivation *how);
void hg__attention_range_back(const struct hg__range *r, struct hg__gradients *grad);
/* attention_range.c: the bound on a score; also sets those on what is computed on the way to it.
 * And by how much exp(s) differs from its value for these bits of s, relative to it. */
double hg__attention_score(const struct hg__range *r, struct hg__rounding *rounding);
double hg__attention_stray(const struct hg__range *r);

/* attention_sample.c: hg__op.sample of both ops. */
int hg__attention_sample(int i, const struct hg__extent *x, struct hg__sample *s);
int hg__attention_weights_sample(int i, const struct hg__extent *x, struct hg__sample *s);

#endif
