/* What is known of a run before its first step. */
#include "explain.h"

#include <string.h>

static void print_line(void *user, const char *text)
{
	const size_t length = strlen(text);
	fprintf(user, "%s%s", text, length && text[length - 1] == '\n' ? "" : "\n");
}

static hg_status explain(const struct options *o, const hg_train *train, FILE *out)
{
	if (o->resume)
		fprintf(out, "resumed from %s: weights are bounded by four times what that run last measured, and so are they here\n", o->resume);
	return hg_tape_explain(hg_train_tape(train), print_line, out);
}

hg_status explain_run(const struct options *o, const hg_train *train, FILE *out)
{
	hg_status status = o->print_plan ? hg_tape_print(hg_train_tape(train), print_line, out) : HG_OK;
	if (status >= 0 && o->explain)
		status = explain(o, train, out);
	return status;
}

void explain_refused(const struct options *o, hg_context *ctx, const hg_train_config *refused, const hg_train_data *data, FILE *out)
{
	hg_train_config config = *refused;
	hg_train *train = NULL;
	char message[HG_DATA_MESSAGE];
	if (!o->explain)
		return;
	config.policy.unproved = HG_UNPROVED_GUARD;
	hg_status status = hg_train_create(ctx, &config, data, &train);
	if (status >= 0 && o->resume)
		status = hg_checkpoint_load(o->resume, train, message);
	if (status >= 0) {
		fputs("with --unproved guard; refused is what is guarded, but not by the weights:\n", out);
		status = explain(o, train, out);
	}
	hg_train_free(train);
	(void)status; /* the sentence follows in any case */
}
