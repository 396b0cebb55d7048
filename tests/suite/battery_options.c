#include <string.h>

#include "autograd/attr.h"
#include "suite/battery.h"

/* A row for each op with options: how to read its attributes. The other ops have none. */

static void from_spmm(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__spmm_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->norm = (int)a.norm;
	o->alpha = (double)a.alpha;
}

static void from_sddmm_dot(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__sddmm_dot_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->heads = a.heads;
	o->alpha = (double)a.scale;
}

static void from_sddmm_add(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__sddmm_add_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->act = a.leaky ? 2 : 0;
	o->slope = (double)a.slope;
}

static void from_attention(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__attention_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->score = (int)a.score;
	o->weighted = a.weighted;
	o->heads = a.heads;
	o->slope = (double)a.slope;
	o->alpha = (double)a.scale;
	o->p = (double)a.dropout;
}

static void from_act(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__act_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->slope = o->alpha = (double)a.p;
}

static void from_dropout(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__dropout_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->p = (double)a.p;
}

static const struct oracle_op *act_of(int act)
{
	return act ? oracle_find(hg__functions[act - 1].name) : NULL;
}

static void from_epilogue(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__epilogue_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->activation = act_of(a.act);
	o->slope = o->alpha = (double)a.act_p;
	o->p = (double)a.p;
}

static void from_spmm_epilogue(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__spmm_epilogue_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->norm = (int)a.spmm.norm;
	o->alpha = (double)a.spmm.alpha;
	o->self = a.self;
	o->activation = act_of(a.act_drop.act);
	o->act_p = (double)a.act_drop.act_p;
	o->p = (double)a.act_drop.p;
}

static void from_attention_epilogue(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__attention_epilogue_attr a;
	hg__attr_get(node, &a, sizeof a);
	from_attention(node, o);
	o->weights_p = (double)a.attention.dropout;
	o->activation = act_of(a.act_drop.act);
	o->act_p = (double)a.act_drop.act_p;
	o->p = (double)a.act_drop.p;
	o->mean = a.mean;
	o->then_key = a.key;
}

static void from_scale(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__scale_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->alpha = (double)a.factor;
}

static void from_heads(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__heads_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->heads = a.heads;
}

static void from_batch_norm(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__batch_norm_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->eps = (double)a.eps;
	o->momentum = (double)a.momentum;
	o->act = a.relu;
}

static void from_layer_norm(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__layer_norm_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->eps = (double)a.eps;
}

static void from_readout(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__readout_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->reduce = (int)a.reduce;
}

static void from_gather(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__gather_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->at_source = a.end == HG_END_SOURCE;
}

static void from_scatter(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__scatter_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->at_source = a.end == HG_END_SOURCE;
	o->reduce = (int)a.reduce;
}

/* p: the smoothing of labels */
static void from_xent(const struct hg__node *node, struct oracle_call *o)
{
	struct hg__xent_attr a;
	hg__attr_get(node, &a, sizeof a);
	o->p = (double)a.smoothing;
}

static const struct {
	const char *name;
	void (*read)(const struct hg__node *, struct oracle_call *);
} readers[] = {
    {"spmm", from_spmm},
    {"sddmm_dot", from_sddmm_dot},
    {"sddmm_add", from_sddmm_add},
    {"attention", from_attention},
    {"attention_weights", from_attention},
    {"attention_epilogue", from_attention_epilogue},
    {"dropout", from_dropout},
    {"epilogue", from_epilogue},
    {"scale", from_scale},
    {"spmm_epilogue", from_spmm_epilogue},
    {"head_mean", from_heads},
    {"head_dot", from_heads},
    {"batch_norm", from_batch_norm},
    {"layer_norm", from_layer_norm},
    {"readout", from_readout},
    {"gather", from_gather},
    {"scatter", from_scatter},
    {"softmax_xent_weighted", from_xent},
};

void battery_options(const struct hg__node *node, struct oracle_call *o)
{
	o->heads = 1;
	if (node->op->act)
		from_act(node, o);
	for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
		if (strcmp(readers[i].name, node->op->name) == 0)
			readers[i].read(node, o);
}
