/* What the files of attention share: attention.c, attention_weights.c, attention_epilogue.c, and
 * for all of them attention_operands.c, attention_range.c and attention_sample.c. */
#ifndef HG_AUTOGRAD_OPS_ATTENTION_H
#define HG_AUTOGRAD_OPS_ATTENTION_H

#include "autograd/about.h"

/* The operands, and what is kept for backward. */
enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_C, ATTENTION_BIAS };
enum { ATTENTION_LOG_SUM, ATTENTION_PLUS };
/* attention_epilogue.c: one more operand, b, and f32 [1, h d], written in the backward pass: db
 * before it is narrowed, if b is not a parameter. */
enum { ATTENTION_EPILOGUE_B = ATTENTION_BIAS + 1, ATTENTION_EPILOGUE_DB = ATTENTION_PLUS + 3 };

/* The three matrices of attention, called sides here. They may be columns of one operand, or the
 * same columns. */
enum { SIDE_Q, SIDE_K, SIDE_V, SIDES };

/* Where a side is: in which operand, and in which of the parts of equal width that the columns of
 * the operand are divided into. */
struct hg__attention_place {
	int operand, part;
};
struct hg__attention_layout {
	struct hg__attention_place side[SIDES];
	int parts; /* the parts of operand q: Q alone, Q|K or Q|K|V */
};
struct hg__attention_layout hg__attention_layout(hg_score score, int has_k, int has_v);
struct hg__attention_layout hg__attention_layout_of(const struct hg__node *node);

/* Finds the sides in `of`, which is the list of the operands or of their gradients. */
void hg__attention_sides(const struct hg__attention_layout *layout,
                         const struct hg__mat of[HG__MAX_IN], struct hg__mat side[SIDES]);

static inline struct hg__attention_attr hg__attention_attr(const struct hg__node *node)
{
	struct hg__attention_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

/* Whether the score is computed with f (the leaky relu), and whether with c. */
static inline int hg__attention_is_leaky(hg_score score)
{
	return score == HG_SCORE_ADD || score == HG_SCORE_ADD_V2;
}
static inline int hg__attention_reads_c(hg_score score)
{
	return score == HG_SCORE_COSINE || score == HG_SCORE_ADD_V2;
}

/* attention_operands.c. hg__attention_infer checks the constants and all operands but v, and sets
 * the shape of ATTENTION_LOG_SUM. hg__attention_of collects what the kernels read, and
 * hg__attention_prepare makes that available before a step is captured. hg__attention_config reads
 * the constants that a user gave, and hg__attention_constants names them for messages. */
HG_NODISCARD hg_status hg__attention_infer(struct hg__infer *s);
HG_NODISCARD hg_status hg__attention_of(const struct hg__call *c, struct hg__attention *of);
HG_NODISCARD hg_status hg__attention_prepare(const struct hg__call *c);
HG_NODISCARD hg_status hg__attention_config(hg_tape *tape, const char *op,
                                            const hg_attention_operands *operands,
                                            const hg_attention_config *config,
                                            struct hg__attention_attr *attr);
int hg__attention_constants(const struct hg__node *node, struct hg__named *named);

/* attention.c. hg__attention_forward computes y, or `ended` with the epilogue, or both
 * (kernels/attention.h). hg__attention_backward computes the gradients of the operands of attention
 * from y and its gradient, which is `dout`, or, with the epilogue that `end` describes, what that
 * makes of dout. In hg__attention_sum y is the result of attention and dy its gradient.
 * hg__attention_staged is hg__op.staged. */
HG_NODISCARD hg_status hg__attention_forward(const struct hg__call *c, struct hg__mat y,
                                             struct hg__mat ended,
                                             const struct hg__sum_epilogue *epilogue);
HG_NODISCARD hg_status hg__attention_backward(const struct hg__call *c, struct hg__mat y,
                                              const struct hg__epilogue_back_args *end);
/* hg__op.replaces; y: where the result of attention is kept. */
unsigned hg__attention_replaces(const struct hg__node *node, int i, unsigned y);
HG_NODISCARD hg_status hg__attention_sum(const struct hg__call *c, const struct hg__element *e,
                                         struct hg__mat y, struct hg__mat dy,
                                         struct hg__terms *t);
int64_t hg__attention_staged(const struct hg__node *node, hg_mode mode, int64_t cols);
void hg__attention_cost(const struct hg__call *c, struct hg__cost *cost);
int hg__attention_heads(const struct hg__node *node, int operand, int64_t cols,
                        struct hg__heads_in *in);

/* attention_range.c */
struct hg__known hg__attention_range(const struct hg__range *r, struct hg__derivation *how);
void hg__attention_range_back(const struct hg__range *r, struct hg__gradients *grad);
/* attention_range.c. hg__attention_score returns the bound on a score, and adds to `rounding` the
 * bounds on what is computed on the way to it. hg__attention_weight_error bounds the relative error
 * of a weight p that the backward pass computes from the same scores. */
double hg__attention_score(const struct hg__range *r, struct hg__rounding *rounding);
double hg__attention_weight_error(const struct hg__range *r);

/* attention_sample.c: hg__op.sample of all three ops. */
int hg__attention_sample(int i, const struct hg__extent *x, struct hg__sample *s);
int hg__attention_weights_sample(int i, const struct hg__extent *x, struct hg__sample *s);
int hg__attention_epilogue_sample(int i, const struct hg__extent *x, struct hg__sample *s);

#endif
