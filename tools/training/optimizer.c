/* The options of the optimiser. */
#include "optimizer.h"

#include <string.h>

/* Options of some optimisers alone. Of another one they would silently have no effect. */
static const struct {
	const char *option;
	int sgd; /* 1: of sgd; 0: of adam and adamw */
} some[] = {{"--momentum", 1}, {"--nesterov", 1}, {"--beta1", 0}, {"--beta2", 0}, {"--eps", 0}};

static hg_optim_kind kind_named(const char *name)
{
	return !name || strcmp(name, "adam") == 0 ? HG_ADAM
	       : strcmp(name, "adamw") == 0       ? HG_ADAMW
	                                          : HG_SGD;
}

int optimizer_check(struct tool_line *line, const struct training *t)
{
	const int sgd = kind_named(t->optimizer) == HG_SGD;
	for (size_t k = 0; k < sizeof some / sizeof *some; k++)
		if (tool_given(line, some[k].option) && some[k].sgd != sgd)
			return tool_refuse(line, "%s is an option of --optimizer %s, but the optimiser is %s",
			                   some[k].option, some[k].sgd ? "sgd" : "adam and adamw",
			                   t->optimizer ? t->optimizer : "adam");
	/* false for NaN: --momentum was not given */
	return t->nesterov && !(t->momentum > 0)
	           ? tool_refuse(line, "--nesterov needs a --momentum above 0")
	           : 0;
}

void optimizer_make(const struct training *t, hg_optim_config *optim)
{
	if (t->optimizer)
		optim->kind = kind_named(t->optimizer);
	optim->nesterov = t->nesterov;
	training_set_float(&optim->lr, t->lr);
	training_set_float(&optim->weight_decay, t->weight_decay);
	training_set_float(&optim->momentum, t->momentum);
	training_set_float(&optim->beta1, t->beta1);
	training_set_float(&optim->beta2, t->beta2);
	training_set_float(&optim->eps, t->eps);
	training_set_float(&optim->clip_norm, t->clip);
}
