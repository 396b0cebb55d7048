/* Diagnosis: a model that overflows in f16, and a doctor that says where, why and what to do. */
#include "planted.h"

#include <stdio.h>

struct mine {
	struct planted data;
	hg_tensor *labels;
	hg_params *params;
};

/* exp of a large number: beyond f16's 65504 from 11.09 on */
static hg_var record(void *user, hg_tape *tape)
{
	const struct mine *m = user;
	const hg_var x = hg_tape_input(tape, m->data.features, "x", -1.0);
	const hg_var w = hg_tape_param(tape, hg_params_find(m->params, "w"));
	hg_tape_scope(tape, "gate");
	const hg_var gate = hg_exp(tape, hg_scale(tape, x, 8.0f));
	hg_tape_scope(tape, NULL);
	return hg_softmax_xent(tape, hg_linear(tape, gate, w, HG_NONE),
	                       hg_tape_input(tape, m->labels, "labels", -1.0), HG_NONE);
}

int main(void)
{
	hg_context *ctx = NULL;
	struct mine m = {0};
	hg_optim *optim = NULL;
	hg_doctor *doctor = NULL;
	const hg_doctor_report *report = NULL;
	const hg_optim_config adam = HG_OPTIM_CONFIG_INIT;
	char text[512];
	int found = 0;
	int ok =
	    hg_context_create(NULL, &ctx) >= 0 && planted_make(ctx, &m.data) &&
	    hg_tensor_create(ctx, HG_I32, NODES, 1, &m.labels) >= 0 &&
	    hg_tensor_upload(m.labels, m.data.label, HG_I32) >= 0 &&
	    hg_params_create(ctx, NULL, &m.params) >= 0 &&
	    hg_params_add(m.params, "w", FEATURES, CLASSES, HG_INIT_GLOROT_UNIFORM, 0, NULL) >= 0 &&
	    hg_optim_create(m.params, &adam, &optim) >= 0 &&
	    hg_doctor_create(m.params, optim, record, &m, NULL, &doctor) >= 0 &&
	    hg_doctor_examine(doctor, 0, &report) >= 0; /* the next step; it changes nothing */
	for (int i = 0; ok && i < report->findings; i++) {
		const hg_finding *f = &report->finding[i];
		(void)hg_finding_sentence(f, NULL, NULL, text, sizeof text);
		printf("%s: %s\n", hg_cause_name(f->cause), text);
		for (int k = 0; k < f->remedies; k++)
			printf("  try: %s\n", f->remedy[k].call);
		found |= f->cause == HG_CAUSE_STORE;
	}
	if (!ok)
		fprintf(stderr, "%s\n", hg_context_error(ctx));
	hg_doctor_free(doctor), hg_optim_free(optim), hg_params_free(m.params),
	    hg_tensor_free(m.labels), planted_free(&m.data), hg_context_free(ctx);
	return !found;
}
