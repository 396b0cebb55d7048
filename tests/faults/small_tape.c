#include "faults/small_tape.h"

hg_var tape_param(struct setup *s, hg_tape *tape, const char *name)
{
	return hg_tape_param(tape, hg_params_find(s->params, name));
}

hg_var tape_x(struct setup *s, hg_tape *tape)
{
	return hg_tape_variable(tape, s->tensor[X], "x");
}

hg_var tape_product(struct setup *s, hg_tape *tape)
{
	return hg_linear(tape, tape_x(s, tape), tape_param(s, tape, "w"), HG_NONE);
}

hg_var tape_batch_norm(struct setup *s, hg_tape *tape, hg_var x, float eps)
{
	hg_tape_scope(tape, "norm");
	return hg_batch_norm(tape, x, tape_param(s, tape, "gamma"), tape_param(s, tape, "beta"),
	                     hg_params_find(s->params, "mean"), hg_params_find(s->params, "var"), 0.5f,
	                     eps);
}

hg_var tape_layer_norm(struct setup *s, hg_tape *tape, hg_var x, float eps)
{
	hg_tape_scope(tape, "norm");
	return hg_layer_norm(tape, x, tape_param(s, tape, "gamma"), tape_param(s, tape, "beta"), eps);
}

hg_var tape_targets(struct setup *s, hg_tape *tape)
{
	hg_tape_scope(tape, NULL);
	return hg_tape_input(tape, s->tensor[TARGETS], "targets", -1.0);
}

hg_var tape_mse(struct setup *s, hg_tape *tape, hg_var y)
{
	return hg_mse(tape, y, tape_targets(s, tape), HG_NONE);
}
