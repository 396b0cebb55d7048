/* The results of a run as JSON lines, for programs. */
#include <math.h>

#include "halfgraph/version.h"
#include "jsonl.h"
#include "results.h"

int json_epoch(FILE *out, int64_t seed, const hg_train_event *e)
{
	if (!out)
		return 0;
	return jsonl_write(out, json_pack("{ss sI si sI so so so so so so so sb ss}", "event", "epoch",
	                                  "seed", (json_int_t)seed, "epoch", e->epoch, "step",
	                                  (json_int_t)e->step.steps - 1, "loss", jsonl_number(e->loss),
	                                  "train_accuracy", jsonl_number(e->train_accuracy),
	                                  "val_accuracy", jsonl_number(e->val_accuracy),
	                                  "test_accuracy", jsonl_number(e->test_accuracy), "epoch_ms",
	                                  jsonl_number(e->epoch_ms), "loss_scale",
	                                  jsonl_number((double)e->step.loss_scale), "grad_norm",
	                                  jsonl_number(e->step.grad_norm), "applied", e->step.applied,
	                                  "outcome", hg_step_reason_text(e->step.reason)));
}

/* Returns NULL if memory ran out; then the enclosing json_pack fails. */
static json_t *seeds(const struct results *r)
{
	json_t *list = json_array();
	int failed = 0;
	for (int i = 0; i < r->runs; i++) {
		const hg_train_report *p = &r->report[i];
		failed |= json_array_append_new(
		    list,
		    json_pack("{sI si si so so so sI}", "seed", (json_int_t)(r->options->training.seed + i),
		              "epochs", p->epochs_run, "best_epoch", p->best_epoch, "val_accuracy",
		              jsonl_number(p->best_val_accuracy), "test_accuracy",
		              jsonl_number(p->test_accuracy), "final_loss", jsonl_number(p->final_loss),
		              "skipped", (json_int_t)p->steps_skipped));
	}
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

/* The verdict in hg-doctor's terms; null without --doctor. */
static json_t *verdict(const struct results *r)
{
	return r->options->doctor ? json_string(r->bad.findings ? "findings"
	                                        : r->bad.runs   ? "unexplained"
	                                                        : "healthy")
	                          : json_null();
}

int json_summary(FILE *out, const struct results *r)
{
	if (!out)
		return 0;
	const struct statistics s = results_statistics(r);
	const hg_model_config *m = &r->config.model;
	json_t *o = json_pack("{ss ss ss ss ss ss si si sI sI so}", "event", "summary", "version",
	                      hg_version_string(), "model", m->name, "precision", r->config.policy.name,
	                      "device", r->device == HG_DEVICE_CUDA ? "cuda" : "cpu", "device_name",
	                      r->device_name, "layers", m->layers, "hidden", m->hidden, "nodes",
	                      (json_int_t)r->nodes, "edges", (json_int_t)r->edges, "seeds", seeds(r));
	json_t *totals = json_pack(
	    "{so so so sI sI sI sI sI so sb sb si si si si si so so so sb sb ss sb sb}",
	    "test_accuracy_mean", jsonl_number(s.accuracy_mean), "test_accuracy_std",
	    jsonl_number(s.accuracy_std), "epoch_ms_median", jsonl_number(s.epoch_ms), "peak_bytes",
	    (json_int_t)s.peak_bytes, "state_bytes", (json_int_t)s.state_bytes, "arena_bytes",
	    (json_int_t)s.arena_bytes, "steps_skipped", (json_int_t)s.skipped, "nonfinite_logits",
	    (json_int_t)s.nonfinite_logits, "loss_scale_final",
	    jsonl_number(r->runs ? (double)r->report[r->runs - 1].loss_scale_final : (double)NAN),
	    "loss_finite", s.finite, "captured", s.captured, "epochs_together", s.together, "casts",
	    s.casts, "replans", s.replans, "rescaled", s.rescaled, "promoted", s.promoted, "headroom",
	    *r->headroom_at ? jsonl_number(r->headroom) : json_null(), "headroom_at",
	    *r->headroom_at ? json_string(r->headroom_at) : json_null(), "verdict", verdict(r),
	    "learnt", !r->unlearnt, "row_normalize", r->rows.normalize, "row_normalize_why",
	    r->rows.why, "saved", r->saved != NULL, "interrupted", r->interrupted);
	const int failed = !o || !totals || json_object_update(o, totals);
	json_decref(totals);
	if (failed) {
		json_decref(o);
		return -1;
	}
	return jsonl_write(out, o);
}
