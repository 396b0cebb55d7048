/* What came out, for programs: JSON lines. A number that is not finite becomes null, as JSON knows none. */
#include "results.h"

#include <jansson.h>
#include <math.h>

static json_t *number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

/* One object on one line. Takes the reference; NULL (out of memory) fails. */
static int line(FILE *out, json_t *object)
{
	const int failed = !object || json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(9)) || fputc('\n', out) == EOF || fflush(out);
	json_decref(object);
	return failed ? -1 : 0;
}

int json_epoch(FILE *out, int64_t seed, const hg_train_event *e)
{
	if (!out)
		return 0;
	return line(out, json_pack("{ss sI si so so so so so so so sb ss}", "event", "epoch", "seed", (json_int_t)seed, "epoch", e->epoch, "loss", number(e->loss),
	                           "train_accuracy", number(e->train_accuracy), "val_accuracy", number(e->val_accuracy), "test_accuracy", number(e->test_accuracy),
	                           "epoch_ms", number(e->epoch_ms), "loss_scale", number((double)e->step.loss_scale), "grad_norm", number(e->step.grad_norm),
	                           "applied", e->step.applied, "step", hg_step_reason_text(e->step.reason)));
}

/* NULL (out of memory) makes the object that it goes into fail. */
static json_t *seeds(const struct results *r)
{
	json_t *list = json_array();
	int failed = 0;
	for (int i = 0; i < r->runs; i++) {
		const hg_train_report *p = &r->report[i];
		failed |=
		    json_array_append_new(list, json_pack("{sI si si so so so sI}", "seed", (json_int_t)(r->options->training.seed + i), "epochs", p->epochs_run,
		                                          "best_epoch", p->best_epoch, "val_accuracy", number(p->best_val_accuracy), "test_accuracy",
		                                          number(p->test_accuracy), "final_loss", number(p->final_loss), "skipped", (json_int_t)p->steps_skipped));
	}
	if (!failed)
		return list;
	json_decref(list);
	return NULL;
}

int json_summary(FILE *out, const struct results *r)
{
	if (!out)
		return 0;
	const struct statistics s = results_statistics(r);
	const hg_model_config *m = &r->config.model;
	json_t *o = json_pack("{ss ss ss ss ss ss si si sI sI so}", "event", "summary", "version", hg_version_string(), "model", m->name, "precision",
	                      r->config.policy.name, "device", r->device == HG_DEVICE_CUDA ? "cuda" : "cpu", "device_name", r->device_name, "layers", m->layers,
	                      "hidden", m->hidden, "nodes", (json_int_t)r->nodes, "edges", (json_int_t)r->edges, "seeds", seeds(r));
	json_t *totals =
	    json_pack("{so so so sI sI sI sI sI so sb sb si sb}", "test_accuracy_mean", number(s.accuracy_mean), "test_accuracy_std", number(s.accuracy_std),
	              "epoch_ms_median", number(s.epoch_ms), "peak_bytes", (json_int_t)s.peak_bytes, "state_bytes", (json_int_t)s.state_bytes, "arena_bytes",
	              (json_int_t)s.arena_bytes, "steps_skipped", (json_int_t)s.skipped, "nonfinite_logits", (json_int_t)s.nonfinite_logits, "loss_scale_final",
	              number(r->runs ? (double)r->report[r->runs - 1].loss_scale_final : (double)NAN), "loss_finite", s.finite, "captured", s.captured,
	              "epochs_together", s.together, "interrupted", r->interrupted);
	const int failed = !o || !totals || json_object_update(o, totals);
	json_decref(totals);
	if (failed) {
		json_decref(o);
		return -1;
	}
	return line(out, o);
}
