#include <math.h>

#include "autograd/attr.h"
#include "suite/ranges.h"

/* The constants that a user may choose, op by op. (What ops have in common says nothing about
 * them.) */

static float log_uniform(int low, int high)
{
	return (float)ldexp(1.0 + test_uniform(), low + (int)test_below(high - low));
}

/* Ordinary, so small that it is a subnormal half, or larger than any half. */
static float factor(void)
{
	static const float special[] = {0.0f, 1e-7f, 3e-5f, 65504.0f, 65520.0f, 1e9f};
	const float size = test_below(4) ? log_uniform(-10, 8) : special[test_below(6)];
	return test_below(4) ? size : -size;
}

static float below_one(void)
{
	static const float special[] = {0.0f, 0x1p-24f, 0.5f, 0.999f, 0x1.fffffep-1f};
	return test_below(2) ? (float)test_uniform() : special[test_below(5)];
}

static void spmm(void *attr)
{
	struct hg__spmm_attr *a = attr;
	a->norm = (hg_norm)test_below(4);
	a->alpha = factor();
}

static void scale(void *attr)
{
	((struct hg__scale_attr *)attr)->factor = factor();
}

static void sddmm_dot(void *attr)
{
	((struct hg__sddmm_dot_attr *)attr)->scale = factor();
}

static void sddmm_add(void *attr)
{
	struct hg__sddmm_add_attr *a = attr;
	a->leaky = (int)test_below(2);
	a->slope = below_one();
}

static void attention(void *attr)
{
	struct hg__attention_attr *a = attr;
	a->slope = below_one();
	a->scale = factor();
	a->dropout = test_below(2) ? fminf(below_one(), 0.999f) : 0.0f;
}

/* The constant of an op of the list of functions, from its range: [0, 1], or all positive
 * numbers. */
static float constant(const struct hg__constant *c)
{
	return !c->name ? 0.0f : c->high <= 1.0f ? below_one() : log_uniform(-12, 8);
}

static void dropout(void *attr)
{
	((struct hg__dropout_attr *)attr)->p = below_one();
}

static void batch_norm(void *attr)
{
	struct hg__batch_norm_attr *a = attr;
	a->eps = log_uniform(-40, 2);
	a->relu = (int)test_below(2);
}

static void layer_norm(void *attr)
{
	((struct hg__layer_norm_attr *)attr)->eps = log_uniform(-40, 2);
}

static void then(struct hg__epilogue_attr *a)
{
	size_t count = 0;
	const struct hg__op *const *ops = hg__op_list(&count);
	for (size_t i = 0; a->act && i < count; i++)
		if (ops[i]->act == a->act)
			a->act_p = constant(&ops[i]->constant);
	a->p = test_below(2) ? below_one() : 0.0f;
}

static void epilogue(void *attr)
{
	then(attr);
}

static void spmm_epilogue(void *attr)
{
	struct hg__spmm_epilogue_attr *a = attr;
	spmm(&a->spmm);
	then(&a->act_drop);
}

static void attention_epilogue(void *attr)
{
	struct hg__attention_epilogue_attr *a = attr;
	attention(&a->attention);
	then(&a->act_drop);
}

static void xent(void *attr)
{
	((struct hg__xent_attr *)attr)->smoothing = test_below(2) ? below_one() : 0.0f;
}

static const struct {
	const struct hg__op *op;
	void (*draw)(void *attr);
} draws[] = {
    {&hg__op_spmm, spmm},
    {&hg__op_scale, scale},
    {&hg__op_sddmm_dot, sddmm_dot},
    {&hg__op_sddmm_add, sddmm_add},
    {&hg__op_attention, attention},
    {&hg__op_attention_weights, attention},
    {&hg__op_attention_epilogue, attention_epilogue},
    {&hg__op_dropout, dropout},
    {&hg__op_batch_norm, batch_norm},
    {&hg__op_layer_norm, layer_norm},
    {&hg__op_epilogue, epilogue},
    {&hg__op_spmm_epilogue, spmm_epilogue},
    {&hg__op_softmax_xent_weighted, xent},
};

void ranges_attr(const struct hg__op *op, unsigned char attr[HG__ATTR_BYTES])
{
	_Alignas(8) unsigned char own[HG__ATTR_BYTES];
	memcpy(own, attr, sizeof own);
	if (op->constant.name)
		((struct hg__act_attr *)(void *)own)->p = constant(&op->constant);
	for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++)
		if (strcmp(draws[i].op->name, op->name) == 0)
			draws[i].draw(own);
	memcpy(attr, own, sizeof own);
}

/* Ops that are linear in operand 0, apart from a bias or a second sum. */
static const struct hg__op *const affine[] = {
    &hg__op_linear,    &hg__op_bias_add, &hg__op_add,     &hg__op_combine, &hg__op_concat,
    &hg__op_head_mean, &hg__op_head_dot, &hg__op_readout, &hg__op_cast,    &hg__op_scatter,
};

int ranges_is_linear(const struct hg__op *op, const unsigned char attr[HG__ATTR_BYTES])
{
	struct hg__readout_attr readout;
	memcpy(&readout, attr, sizeof readout);
	struct hg__scatter_attr scatter;
	memcpy(&scatter, attr, sizeof scatter);
	if ((strcmp(op->name, hg__op_readout.name) == 0 && readout.reduce == HG_REDUCE_MAX) ||
	    (strcmp(op->name, hg__op_scatter.name) == 0 && scatter.reduce == HG_REDUCE_MAX))
		return 0;
	for (size_t i = 0; i < sizeof affine / sizeof affine[0]; i++)
		if (strcmp(affine[i]->name, op->name) == 0)
			return 1;
	return (op->traits & HG__LINEAR) != 0;
}
