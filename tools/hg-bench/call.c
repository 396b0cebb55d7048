#include "call.h"

hg_status call_new(struct bench *b, const struct hg__op *op, int use_graph, const void *attr,
                   size_t bytes, struct call *call)
{
	*call = (struct call){.node = {.op = op,
	                               .in = {-1, -1, -1, -1},
	                               .aux = {-1, -1},
	                               .graph = use_graph ? b->graph : NULL,
	                               .scope = ""}};
	call->node.accumulate = b->policy->accumulate;
	call->call = (struct hg__call){
	    .ctx = b->ctx, .k = b->ctx->backend->kernels, .node = &call->node, .mode = HG_TRAIN};
	if (bytes)
		memcpy(call->node.attr, attr, bytes);
	return use_graph ? hg__graph_csr(b->graph, &call->call.csr) : HG_OK;
}

void call_in(struct call *call, int i, struct hg__mat mat)
{
	call->call.in[i] = mat;
	call->node.in[i] = i;
	if (i >= call->node.n_in)
		call->node.n_in = i + 1;
}

hg_status call_prepare(struct call *call)
{
	return call->node.op->prepare ? call->node.op->prepare(&call->call) : HG_OK;
}

hg_status call_forward(void *call)
{
	const struct call *c = call;
	return c->node.op->forward(&c->call);
}

hg_status call_backward(void *call)
{
	const struct call *c = call;
	return c->node.op->backward(&c->call);
}

struct hg__cost call_cost(const struct call *call)
{
	struct hg__cost cost = {0, 0};
	call->node.op->cost(&call->call, &cost);
	return cost;
}
