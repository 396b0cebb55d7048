/* Write a finding as JSON, for programs. */
#include <math.h>

#include "findings.h"
#include "jsonl.h"
#include "names.h"

/* JSON has no infinity and no NaN, but here the difference matters, so "inf", "-inf" and "nan" are
 * strings. */
static json_t *any_number(double x)
{
	char text[NAME_SIZE];
	return isfinite(x) ? json_real(x) : json_string(name_number(x, text));
}

/* Takes over the reference to `item`. If memory runs out, *list becomes NULL, and the enclosing
 * json_pack fails. */
static void append(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}

/* The number of a node in the file's source; null where the row is not a node. */
static json_t *node_id(const hg_dataset *d, hg_row_kind kind, int64_t row)
{
	return kind == HG_ROW_NODE && row >= 0 && row < d->nodes
	           ? json_integer((json_int_t)hg_dataset_node(d, row))
	           : json_null();
}

static json_t *edge_json(const hg_attended_edge *edge)
{
	return json_pack("{sI sI si so so}", "row", (json_int_t)edge->row, "col", (json_int_t)edge->col,
	                 "head", (int)edge->head, "score", any_number(edge->score), "weight",
	                 any_number(edge->weight));
}

/* The edge of term i, and what attention makes of it; null where there is none. */
static json_t *term_edge(const hg_finding *f, int i)
{
	const hg_attended_edge *edge = &f->edge[i];
	return f->attended && edge->row >= 0 ? edge_json(edge) : json_null();
}

static json_t *top_list(const hg_dataset *d, const hg_finding *f)
{
	static const char *const is[] = {[HG_TERM_ADDEND] = "term",
	                                 [HG_TERM_OWN] = "own",
	                                 [HG_TERM_BIAS] = "bias",
	                                 [HG_TERM_BEFORE] = "before"};
	json_t *list = json_array();
	char name[NAME_SIZE];
	for (int i = 0; i < f->tops; i++) {
		const hg_term *t = &f->top[i];
		append(&list, json_pack("{ss ss sI sI so so so so}", "name", name_term(d, f, t, name), "is",
		                        is[t->is], "row", (json_int_t)t->row, "col", (json_int_t)t->col,
		                        "factor", any_number(t->factor), "operand", any_number(t->operand),
		                        "value", any_number(t->value), "edge", term_edge(f, i)));
	}
	return list;
}

static json_t *running_list(const hg_finding *f)
{
	json_t *list = json_array();
	for (int i = 0; i < f->runnings; i++) {
		const hg_running *r = &f->running[i];
		append(&list, json_pack("{sI so so}", "taken", (json_int_t)r->taken, "half",
		                        isnan(r->half) ? json_null() : any_number(r->half), "wide",
		                        any_number(r->wide)));
	}
	return list;
}

static json_t *operand_list(const hg_finding *f)
{
	json_t *list = json_array();
	for (int i = 0; i < f->operands; i++) {
		const hg_operand *o = &f->operand[i];
		append(&list, json_pack("{ss ss sI sI so}", "role", o->role, "tensor", o->tensor, "row",
		                        (json_int_t)o->row, "col", (json_int_t)o->col, "value",
		                        any_number(o->value)));
	}
	return list;
}

static json_t *chain_list(const hg_finding *f)
{
	json_t *list = json_array();
	for (int i = 0; i < f->links; i++) {
		const hg_chain_link *l = &f->chain[i];
		append(&list, json_pack("{ss si sb ss ss sI sI}", "name", l->name, "node", (int)l->node,
		                        "backward", l->backward, "op", l->op, "layer", l->layer, "bad",
		                        (json_int_t)l->bad, "count", (json_int_t)l->count));
	}
	return list;
}

static json_t *remedy_list(const hg_finding *f)
{
	json_t *list = json_array();
	for (int i = 0; i < f->remedies; i++) {
		const hg_remedy *r = &f->remedy[i];
		append(&list,
		       json_pack("{ss ss ss sb sb ss so so}", "option", r->option, "call", r->call, "why",
		                 r->why, "tried", r->tried, "worked", r->worked, "failure", r->failure,
		                 "loss_first", r->tried ? jsonl_number(r->loss_first) : json_null(),
		                 "loss_last", r->tried ? jsonl_number(r->loss_last) : json_null()));
	}
	return list;
}

static json_t *location_json(const hg_dataset *d, const hg_finding *f)
{
	static const char *const kind[] = {[HG_ROW_NODE] = "node",
	                                   [HG_ROW_EDGE] = "edge",
	                                   [HG_ROW_GRAPH] = "graph",
	                                   [HG_ROW_WEIGHT] = "weight",
	                                   [HG_ROW_SCALAR] = "scalar"};
	char element[NAME_SIZE];
	return json_pack("{ss ss sI sI so sI sI si ss sb}", "element", name_element(d, f, element),
	                 "row_is", kind[f->row_is], "row", (json_int_t)f->row, "col",
	                 (json_int_t)f->col, "node_id", node_id(d, f->row_is, f->row), "edge_row",
	                 (json_int_t)f->edge_row, "edge_col", (json_int_t)f->edge_col, "head",
	                 (int)f->head, "head_of", f->head_of, "evaluation", f->evaluation);
}

static json_t *sum_json(const hg_finding *f)
{
	return json_pack("{sI sI so so sI so}", "terms", (json_int_t)f->terms, "partial_at",
	                 (json_int_t)f->partial_at, "partial", any_number(f->partial), "partial_factor",
	                 any_number(f->partial_factor), "ignored", (json_int_t)f->ignored,
	                 "ignored_share", any_number(f->ignored_share));
}

/* Move the fields of `from` to `to`. Returns 0 or -1. */
static int move_fields(json_t *to, json_t *from)
{
	const int failed = !to || !from || json_object_update(to, from);
	json_decref(from);
	return failed ? -1 : 0;
}

int finding_json(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	if (!out)
		return 0;
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	json_t *o = json_pack("{ss ss ss ss sI sb si ss ss ss ss}", "event", "finding", "cause",
	                      hg_cause_name(f->cause), "headline", name_headline(d, f, headline),
	                      "sentence", name_sentence(d, f, sentence), "step", (json_int_t)f->step,
	                      "backward", f->backward, "node", (int)f->node, "op", f->op, "op_words",
	                      f->op_words, "layer", f->layer, "tensor", f->tensor);
	int failed = move_fields(o, location_json(d, f));
	failed |= move_fields(o, json_pack("{so so so sI sI so si}", "got", any_number(f->got), "wide",
	                                   any_number(f->wide), "limit", any_number(f->limit), "bad",
	                                   (json_int_t)f->bad, "count", (json_int_t)f->count,
	                                   "loss_scale", any_number(f->scale), "shift", (int)f->shift));
	failed |= move_fields(o, sum_json(f));
	failed |= move_fields(o, json_pack("{so}", "bad_score",
	                                   f->has_bad_score ? edge_json(&f->bad_score) : json_null()));
	failed |= move_fields(o, json_pack("{sI ss so so so}", "columns", (json_int_t)f->columns,
	                                   "grown", f->grown, "grown_by",
	                                   jsonl_number(*f->grown ? f->grown_by : (double)NAN),
	                                   "operands", operand_list(f), "running", running_list(f)));
	failed |= move_fields(o, json_pack("{so so so}", "top", top_list(d, f), "chain", chain_list(f),
	                                   "remedies", remedy_list(f)));
	if (!failed)
		return jsonl_write(out, o);
	json_decref(o);
	return -1;
}

int tensor_json(FILE *out, int64_t step, const hg_doctor_tensor *t)
{
	if (!out)
		return 0;
	json_t *bins = json_array();
	for (int k = 0; k < 32; k++)
		append(&bins, json_integer((json_int_t)t->bin[k]));
	return jsonl_write(
	    out,
	    json_pack("{ss sI ss ss ss si sb ss sI sI sI sI sI so so so ss si so}", "event", "tensor",
	              "step", (json_int_t)step, "name", t->name, "op", t->op, "layer", t->layer, "node",
	              (int)t->node, "backward", t->backward, "dtype", hg_dtype_name(t->dtype), "rows",
	              (json_int_t)t->rows, "cols", (json_int_t)t->cols, "zeros", (json_int_t)t->zeros,
	              "subnormals", (json_int_t)t->subnormals, "nonfinite", (json_int_t)t->nonfinite,
	              "amax", any_number(t->amax), "bound", any_number(t->bound), "headroom",
	              any_number(t->headroom), "verdict", hg_verdict_name(t->verdict), "shift",
	              (int)t->shift, "bins", bins));
}
