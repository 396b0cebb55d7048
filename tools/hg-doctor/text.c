/* The diagnosis for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagnosis.h"
#include "tool.h"

static void print_head(FILE *out, const struct diagnosis *d)
{
	const hg_model_config *m = &d->config.model;
	char *name = tool_printable(d->dataset->name ? d->dataset->name : d->options->training.data);
	(void)fprintf(out, "%s, %d layers, hidden %d, %s, on %s\n", m->name, m->layers, m->hidden, d->config.policy.name, d->device_name);
	(void)fprintf(out, "%s: %lld nodes, %lld edges, %lld features (%s), %d classes\n\n", name ? name : "?", (long long)d->nodes, (long long)d->edges,
	              (long long)d->dataset->features, dataset_features_text(d->dataset, d->sparse), (int)d->dataset->classes);
	free(name);
}

static void print_course(FILE *out, const struct diagnosis *d)
{
	const struct course *c = &d->course;
	char first[NAME_SIZE], last[NAME_SIZE];
	if (c->count)
		(void)fprintf(out, "  loss          %s to %s in %lld steps, %lld skipped, loss scale %.8g\n", name_number(c->step[0].loss, first),
		              name_number(c->step[c->count - 1].loss, last), (long long)c->count, (long long)c->skipped, c->scale);
	if (d->headroom > 0)
		(void)fprintf(out, "  headroom      %.1f bits at the least: %s, step %lld\n", d->headroom, d->headroom_at, (long long)d->headroom_step);
	else if (!isnan(d->headroom))
		(void)fprintf(out, "  headroom      none: %s, step %lld\n", d->headroom_at, (long long)d->headroom_step);
	(void)fprintf(out, "  replayed      %lld of the steps, op by op\n", (long long)d->replayed);
}

void diagnosis_print(FILE *out, const struct diagnosis *d)
{
	char headline[NAME_SIZE], sentence[SENTENCE_SIZE];
	print_head(out, d);
	for (int i = 0; i < d->findings; i++) {
		finding_print(out, d->dataset, &d->finding[i]);
		(void)fputc('\n', out);
	}
	if (!d->findings) {
		diagnosis_sentence(d, sentence);
		(void)fprintf(out, "%s. %s\n\n", diagnosis_headline(d, headline), sentence);
	}
	if (d->bad && d->findings)
		(void)fprintf(out, "  the step      is bad: %s\n", d->bad);
	print_course(out, d);
}
