#ifndef HG_BENCH_CALL_H
#define HG_BENCH_CALL_H

#include "autograd/attr.h"
#include "bench.h"

/* One op of the table, ready to run on matrices at hand: what the tape would do, without a tape.
 * The op's own record runs it both ways and says what it costs, so a kernel is timed as training
 * uses it. */
struct call {
	struct hg__node node;
	struct hg__call call;
};
/* An op on the workload's graph; operands are set in call.call afterwards: in[] through call_in. */
hg_status call_new(struct bench *b, const struct hg__op *op, int use_graph, const void *attr,
                   size_t bytes, struct call *call);
void call_in(struct call *call, int i, struct hg__mat mat);
/* What the graph caches for it, once the operands are set. */
hg_status call_prepare(struct call *call);
hg_status call_forward(void *call);
hg_status call_backward(void *call);
struct hg__cost call_cost(const struct call *call);

#endif
