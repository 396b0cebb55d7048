/* Write the diagnosis as JSON lines, for programs. */
#include <math.h>

#include "diagnosis.h"
#include "halfgraph/version.h"
#include "jsonl.h"

int diagnosis_json_step(FILE *out, const struct history *history)
{
	const struct history_step *s = &history->step[history->count - 1];
	if (!out)
		return 0;
	return jsonl_write(out, json_pack("{ss sI so so so sb ss}", "event", "step", "step",
	                                  (json_int_t)(history->first + history->count - 1), "loss",
	                                  jsonl_number(s->loss), "loss_scale", jsonl_number(s->scale),
	                                  "grad_norm", jsonl_number(s->grad_norm), "applied",
	                                  s->applied, "outcome", hg_step_reason_text(s->reason)));
}

static int write_summary(FILE *out, const struct diagnosis *d)
{
	const hg_model_config *m = &d->config.model;
	const struct history *c = &d->history;
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	diagnosis_sentence(d, sentence);
	return jsonl_write(
	    out, json_pack("{ss ss ss ss ss ss ss ss si si sI sI sI sI sI si so ss sI}", "event",
	                   "summary", "version", hg_version_string(), "verdict", diagnosis_verdict(d),
	                   "headline", diagnosis_headline(d, headline), "sentence", sentence, "model",
	                   m->name, "precision", d->config.policy.name, "device_name", d->device_name,
	                   "layers", m->layers, "hidden", m->hidden, "nodes", (json_int_t)d->nodes,
	                   "edges", (json_int_t)d->edges, "steps", (json_int_t)c->count, "skipped",
	                   (json_int_t)c->skipped, "replayed", (json_int_t)d->replayed, "findings",
	                   d->findings, "headroom", jsonl_number(d->headroom), "headroom_at",
	                   d->headroom_at, "headroom_step", (json_int_t)d->headroom_step));
}

int diagnosis_json(FILE *out, const struct diagnosis *d)
{
	int failed = 0;
	if (!out)
		return 0;
	for (int i = 0; d->report && i < d->report->tensors; i++)
		failed |= tensor_json(out, d->report->step, &d->report->tensor[i]);
	for (int i = 0; i < d->findings; i++)
		failed |= finding_json(out, d->dataset, &d->finding[i]);
	return failed | write_summary(out, d);
}
