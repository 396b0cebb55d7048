/* Print the diagnosis for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnosis.h"
#include "task.h"
#include "tool.h"

static void print_run(FILE *out, const struct diagnosis *d)
{
	const hg_model_config *m = &d->config.model;
	char outputs[64];
	task_outputs(&d->config, outputs);
	char *name = tool_printable(d->dataset->name ? d->dataset->name : d->options->training.data);
	(void)fprintf(out, "  run           %s, %d layer%s, hidden %d, %s, on %s\n", m->name, m->layers,
	              m->layers == 1 ? "" : "s", m->hidden, d->config.policy.name, d->device_name);
	(void)fprintf(out, "  data          %s: %lld nodes, %lld edges, %lld features (%s), %s\n",
	              name ? name : "?", (long long)d->nodes, (long long)d->edges,
	              (long long)d->dataset->features, dataset_features_text(d->dataset, d->sparse),
	              outputs);
	(void)fprintf(out, "  rows          %s: %s\n", dataset_rows_note(&d->rows), d->rows.why);
	free(name);
}

static void print_history(FILE *out, const struct diagnosis *d)
{
	const struct history *c = &d->history;
	char first[NAME_SIZE], last[NAME_SIZE];
	if (c->count)
		(void)fprintf(
		    out, "  loss          %s to %s in %lld step%s, %lld skipped, loss scale %.8g\n",
		    name_rounded(c->step[0].loss, first), name_rounded(c->step[c->count - 1].loss, last),
		    (long long)c->count, c->count == 1 ? "" : "s", (long long)c->skipped, c->scale);
	if (d->control.tried)
		(void)fprintf(out, "  control       nothing changed, from the checkpoint: %s%s\n",
		              d->control.worked ? "it trains, too, so remedies that train prove nothing"
		                                : "it does not train: ",
		              d->control.worked ? "" : d->control.failure);
	if (d->headroom > 0)
		(void)fprintf(out, "  headroom      %.1f bits at least: %s, step %lld\n", d->headroom,
		              d->headroom_at, (long long)d->headroom_step);
	else if (!isnan(d->headroom))
		(void)fprintf(out, "  headroom      none: %s, step %lld\n", d->headroom_at,
		              (long long)d->headroom_step);
	(void)fprintf(out, "  replayed      %lld step%s, op by op\n", (long long)d->replayed,
	              d->replayed == 1 ? "" : "s");
}

void diagnosis_print(FILE *out, const struct diagnosis *d)
{
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	for (int i = 0; i < d->findings; i++) {
		finding_print(out, d->dataset, &d->finding[i], i ? &d->finding[i - 1] : NULL);
		(void)fputc('\n', out);
	}
	if (!d->findings) {
		diagnosis_sentence(d, sentence);
		(void)fprintf(out, "%s. %s\n\n", diagnosis_headline(d, headline), sentence);
	}
	if (d->bad && d->findings)
		(void)fprintf(out, "  the step      is bad: %s\n", d->bad);
	print_run(out, d);
	print_history(out, d);
}
