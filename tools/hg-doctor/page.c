/* The HTML page: the verdict, the findings, and the run that led to them. */
#include "page.h"
#include "halfgraph/version.h"

#include <math.h>
#include <string.h>

#include "task.h"

static void print_begin(FILE *out, const struct diagnosis *d)
{
	page_begin(out);
	(void)fprintf(out, "hg-doctor: %s, ", diagnosis_verdict(d));
	page_text(out, d->dataset->name ? d->dataset->name : d->options->training.data);
	(void)fprintf(out, ", %s", d->config.model.name);
	page_begin_body(out, NULL);
}

static void print_brand(FILE *out, const struct diagnosis *d)
{
	const int bad = d->findings || d->bad;
	page_brand(out, "hg-doctor", bad, bad ? "bad" : d->interrupted ? "warn" : "good");
	if (d->findings > 1)
		(void)fprintf(out, "%d findings", d->findings);
	else
		(void)fputs(d->findings ? "1 finding" : diagnosis_verdict(d), out);
	page_brand_end(out);
}

/* The remedy after the last full stop of the headline: "Fix: --precision fp16". */
static void print_fix(FILE *out, const char *fix)
{
	const char *colon = strchr(fix, ':');
	const int typed = colon && strncmp(colon, ": --", 4) == 0;
	(void)fputs("<p class=\"fix\">", out);
	if (typed) {
		(void)fprintf(out, "%.*s ", (int)(colon - fix) + 1, fix);
		(void)fputs("<code class=\"option\">", out);
		page_text(out, colon + 2);
		(void)fputs("</code>", out);
	} else
		page_text(out, fix);
	(void)fputs("</p>\n", out);
}

static void print_title(FILE *out, const struct diagnosis *d)
{
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	char *fix = NULL;
	(void)diagnosis_headline(d, headline);
	for (char *c = headline; d->findings && (c = strstr(c, ". ")) != NULL; c += 2)
		fix = c;
	if (fix)
		*fix = 0;
	(void)fputs("<h1>", out);
	page_text(out, headline);
	(void)fputs("</h1>\n", out);
	if (fix)
		print_fix(out, fix + 2);
	(void)fputs("<p class=\"lead\">", out);
	diagnosis_sentence(d, sentence);
	page_text(out, sentence);
	(void)fputs("</p>\n<p class=\"soft\">", out);
}

static void print_run(FILE *out, const struct diagnosis *d)
{
	const hg_model_config *m = &d->config.model;
	char outputs[64];
	page_text(out, m->name);
	(void)fprintf(out, ", %d layer%s, hidden %d, <b>%s</b>, on ", m->layers,
	              m->layers == 1 ? "" : "s", m->hidden, d->config.policy.name);
	page_text(out, d->device_name);
	(void)fputs(". ", out);
	page_text(out, d->dataset->name ? d->dataset->name : d->options->training.data);
	(void)fputs(": ", out);
	page_count(out, d->nodes);
	(void)fputs(" nodes, ", out);
	page_count(out, d->edges);
	(void)fputs(" edges, ", out);
	page_count(out, d->dataset->features);
	task_outputs(&d->config, outputs);
	(void)fprintf(out, " features (%s), %s.</p>\n", dataset_features_text(d->dataset, d->sparse),
	              outputs);
}

static void print_headroom(FILE *out, const struct diagnosis *d)
{
	if (isnan(d->headroom))
		return;
	(void)fputs("<div><b>", out);
	if (d->headroom > 0)
		(void)fprintf(out, "%.1f bits", d->headroom);
	else
		(void)fputs("none", out);
	(void)fputs("</b><span>smallest headroom, ", out);
	page_name(out, d->headroom_at);
	(void)fprintf(out, ", step %lld</span></div>", (long long)d->headroom_step);
}

static void print_strip(FILE *out, const struct diagnosis *d)
{
	const struct history *c = &d->history;
	(void)fputs("<div class=\"strip\"><div><b>", out);
	page_count(out, c->count);
	(void)fputs("</b><span>steps trained, ", out);
	page_count(out, c->skipped);
	(void)fputs(" skipped</span></div>", out);
	if (c->count) {
		(void)fputs("<div><b>", out);
		page_number(out, c->step[0].loss);
		(void)fputs(" &#8594; ", out);
		page_number(out, c->step[c->count - 1].loss);
		(void)fputs("</b><span>loss, first and last step</span></div>", out);
	}
	(void)fputs("<div><b>", out);
	page_number(out, c->scale);
	(void)fputs("</b><span>loss scale at the end</span></div>", out);
	print_headroom(out, d);
	(void)fputs("<div><b>", out);
	page_count(out, d->replayed);
	(void)fputs("</b><span>steps replayed, op by op</span></div></div>\n", out);
}

void diagnosis_html(FILE *out, const struct diagnosis *d)
{
	print_begin(out, d);
	(void)fputs("<header>\n", out);
	print_brand(out, d);
	print_title(out, d);
	print_run(out, d);
	print_strip(out, d);
	(void)fputs("</header>\n<main>\n", out);
	for (int i = 0; i < d->findings; i++)
		page_finding(out, d, &d->finding[i]);
	page_history(out, d);
	page_tape(out, d);
	page_tensors(out, d);
	(void)fprintf(out,
	              "</main>\n<footer>HalfGraph %s. Replaying steps does not change the run, not by "
	              "one bit.</footer>\n</body>\n</html>\n",
	              hg_version_string());
}
