#ifndef HG_AUTOGRAD_ATTR_H
#define HG_AUTOGRAD_ATTR_H

#include <string.h>

#include "autograd/op.h"

HG_EXTERN_C_BEGIN

/* The constants of an op, as hg__node.attr and hg__sample.attr hold them: one struct for each op
 * that has constants. */
struct hg__spmm_attr {
	hg_norm norm;
	float alpha;
};
struct hg__gather_attr {
	hg_end end;
};
struct hg__scatter_attr {
	hg_end end;
	hg_reduce reduce;
};
struct hg__sddmm_dot_attr {
	int heads;
	float scale;
};
struct hg__attention_attr {
	hg_score score;
	int heads, weighted;
	float slope, scale, dropout;
};
struct hg__act_attr { /* ops of the list of functions: slope, alpha; 0 where there is none */
	float p;
};
struct hg__sddmm_add_attr {
	int leaky;
	float slope;
};
struct hg__dropout_attr {
	float p;
};
struct hg__scale_attr {
	float factor;
};
struct hg__heads_attr { /* head_mean, head_dot */
	int heads;
};
struct hg__batch_norm_attr {
	float momentum, eps;
	int relu; /* 1: relu is applied to the result (fuse.c) */
};
struct hg__layer_norm_attr {
	float eps;
};
struct hg__readout_attr {
	hg_reduce reduce;
};
/* of struct hg__act_drop (kernels/epilogue.h) */
struct hg__epilogue_attr {
	int act;
	float act_p, p;
};
struct hg__spmm_epilogue_attr {
	struct hg__spmm_attr spmm; /* first: ops/spmm.h */
	int self;                  /* 1: Z is X */
	struct hg__epilogue_attr act_drop;
};
struct hg__attention_epilogue_attr {
	struct hg__attention_attr attention; /* first: ops/attention.h */
	struct hg__epilogue_attr act_drop;
	int mean; /* 1: of the heads */
	/* of the dropout of elements; the key of the node is that of the weights' dropout */
	uint64_t key;
};
struct hg__xent_attr { /* softmax_xent_weighted */
	float smoothing;
};
struct hg__cast_attr {
	hg_dtype dtype;
};

/* Copies the constants out of the bytes, so that no pointer has a wrong type. */
static inline void hg__attr_get(const struct hg__node *node, void *attr, size_t bytes)
{
	memcpy(attr, node->attr, bytes);
}

HG_EXTERN_C_END
#endif
