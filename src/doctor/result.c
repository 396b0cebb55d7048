#include "doctor/result.h"

struct hg__mat hg__value_mat(const hg_tape *tape, int32_t value)
{
	const struct hg__value *v = &tape->recording.value[value];
	return v->node < 0 ? v->tensor->mat : tape->program.view[value].value.mat;
}

/* A backward pass reads only the matrices that its call has. */
int hg__operands_finite(const struct hg__replay *replay, const struct hg__task *task, int backward)
{
	const struct hg__node *node = task->call.node;
	if (node->graph && node->graph == replay->bad_graph)
		return 0;
	for (int i = 0; i < node->n_in; i++)
		if (node->in[i] >= 0 && task->call.in[i].data && replay->value[node->in[i]].bad)
			return 0;
	for (int i = 0; i < node->n_in && backward; i++) /* gradients that the op adds to */
		if (task->call.adds >> i & 1u &&
		    replay->grad[replay->tape->recording.value[node->in[i]].root].bad)
			return 0;
	return !backward ||
	       !(replay->grad[node->out].bad || (task->call.out.data && replay->value[node->out].bad));
}

hg_status hg__result_name(struct hg__replay *replay, const struct hg__result *r, const char **name)
{
	char text[160];
	const struct hg__value *value = &replay->tape->recording.value[r->value];
	const char *prefix = r->operand == HG__OUTPUT         ? ""
	                     : r->operand == HG__INTERMEDIATE ? "gradient inside "
	                                                      : "gradient of ";
	const char *own = value->kind == HG__PARAM
	                      ? value->param->name
	                      : hg__value_name(replay->tape, value, text, sizeof text);
	return hg__report_text(replay->ctx, replay->memory, name, "%s%s", prefix, own);
}

/* Where the op adds to a gradient, the gradient so far is one more addend. */
static hg_status append_gradient_before(const struct hg__replay *replay, const struct hg__result *r,
                                        int64_t row, int64_t col, struct hg__sum *sum)
{
	const struct hg__mat *before =
	    r->operand >= 0 && r->backward ? &replay->before[r->operand] : NULL;
	struct hg__addend a = {.row = row, .col = col, .factor = 1.0, .f = 1.0f, .is = HG_TERM_BEFORE};
	if (!before || !before->data || !sum->enumerated || sum->accumulate != HG_ACC_F32)
		return HG_OK;
	HG__TRY(hg__fetch_element(replay->ctx, before, row, col, &a.operand));
	return a.operand != 0.0 ? hg__sum_append(sum, &a) : HG_OK;
}

hg_status hg__sum_of_result(const struct hg__replay *replay, const struct hg__result *r,
                            int64_t row, int64_t col, struct hg__sum *sum)
{
	*sum = (struct hg__sum){.accumulate = HG_ACC_F32};
	if (r->operand == HG__INTERMEDIATE)
		return HG_OK;
	HG__TRY(hg__sum_open(&r->task->call, r->operand, row, col, sum));
	const hg_status status = append_gradient_before(replay, r, row, col, sum);
	if (status < 0)
		hg__sum_close(sum);
	return status;
}
