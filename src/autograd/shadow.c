#include "halfgraph/shadow.h"

#include "autograd/op.h"
#include "halfgraph/shadow.h"

/* The public shadow ops. Each records the op of the same name, whose result must be a half. */

hg_var hg_shadow_exp(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_exp, NULL, &x, 1);
}

hg_var hg_shadow_log(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_log, NULL, &x, 1);
}

hg_var hg_shadow_sqrt(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_sqrt, NULL, &x, 1);
}

hg_var hg_shadow_div(hg_tape *tape, hg_var a, hg_var b)
{
	const hg_var in[] = {a, b};
	return hg__record_shadow(tape, &hg__op_div, NULL, in, 2);
}

hg_var hg_shadow_softmax(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_softmax, NULL, &x, 1);
}

hg_var hg_shadow_log_softmax(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_log_softmax, NULL, &x, 1);
}

hg_var hg_shadow_softmax_xent(hg_tape *tape, hg_var logits, hg_var labels, hg_var mask)
{
	const hg_var in[] = {logits, labels, mask};
	return hg__record_shadow(tape, &hg__op_softmax_xent, NULL, in, 3);
}

hg_var hg_shadow_row_sum(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_row_sum, NULL, &x, 1);
}

hg_var hg_shadow_row_mean(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_row_mean, NULL, &x, 1);
}

hg_var hg_shadow_row_norm(hg_tape *tape, hg_var x)
{
	return hg__record_shadow(tape, &hg__op_row_norm, NULL, &x, 1);
}

hg_var hg_shadow_edge_softmax(hg_tape *tape, hg_graph *graph, hg_var e)
{
	return hg__record_shadow(tape, &hg__op_edge_softmax, graph, &e, 1);
}
