#ifndef HG_BENCH_CALL_H
#define HG_BENCH_CALL_H

#include "autograd/attr.h"
#include "bench.h"

/* One op of the table, ready to run on given matrices without a tape. The op's own record runs it
 * forward and backward and gives its cost, so a kernel is timed as training uses it. */
struct call {
	struct hg__node node;
	struct hg__call call;
};
/* Prepare an op, on the workload's graph if use_graph is set. The operands are set afterwards: in[]
 * through call_in, the others in call.call. */
hg_status call_new(struct bench *b, const struct hg__op *op, int use_graph, const void *attr,
                   size_t bytes, struct call *call);
void call_in(struct call *call, int i, struct hg__mat mat);
/* Make what the graph caches for the op; call it after the operands are set. */
hg_status call_prepare(struct call *call);
hg_status call_forward(void *call);
hg_status call_backward(void *call);
struct hg__cost call_cost(const struct call *call);

#endif
