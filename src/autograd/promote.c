#include <math.h>
#include <string.h>

#include "autograd/tape.h"
#include "core/context.h"

/* What happens to a node that overflowed behind its guard: it is stored x 2^-k on every tape
 * recorded later, if all nodes that read it can read that, or else it runs in f32. The parameters
 * keep the list of these nodes. A node is named by layer, op and its number among nodes of that
 * layer and op, so that tapes for training and for evaluation find it again. */

static hg_status list_promotion(hg_tape *tape, int64_t k, int shift, int *news)
{
	const struct hg__recording *recording = &tape->recording;
	hg_params *params = tape->params;
	struct hg__promotion name =
	    hg__promotion_name(recording, recording->entry[k].op, recording->entry[k].scope, k);
	struct hg__promotion *listed = hg__promotion_find(params, &name);
	name.shift = shift;
	*news |= !listed || listed->shift != shift;
	if (listed) {
		listed->shift = shift;
		return HG_OK;
	}
	void *memory = params->promotion;
	const hg_status grown =
	    hg__host_grow(tape->ctx, &memory, sizeof *params->promotion, params->promotions,
	                  &params->promotion_capacity, "the list of promotions");
	params->promotion = memory;
	HG__TRY(grown);
	params->promotion[params->promotions++] = name;
	return HG_OK;
}

/* ---- which power of two ---- */

/* The smallest k for which rule_bound x 2^-k fits into a half; -1: none. rule_bound includes all
 * roundings. */
static int shift_for(double rule_bound)
{
	for (int k = 1; k <= HG_SHIFT_MOST; k++)
		if (ldexp(rule_bound, -k) < hg_dtype_get(HG_F16)->max)
			return k;
	return -1;
}

/* Can all nodes that read this result read it rescaled? The output and kept values cannot be
 * rescaled: their caller reads the tensor itself. */
static int readers_agree(const hg_tape *tape, int32_t entry)
{
	const struct hg__recording *recording = &tape->recording;
	const int32_t value = recording->entry[entry].node.out;
	if (recording->value[value].keep || value == tape->plan.output)
		return 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		const struct hg__node *node = &recording->entry[k].node;
		for (int i = 0; i < node->n_in && hg__is_alive(&tape->plan, k); i++)
			if (node->in[i] == value && !(node->op->rescaled >> i & 1u))
				return 0;
	}
	return 1;
}

/* The k with which the result is stored from now on; 0: it runs in f32. An entry with several fused
 * ops takes the largest k that one of them needs. Where no k restores the proof, the largest k is
 * tried once, behind a guard: bounds are often a thousand times larger than the numbers, and a
 * result in f32 doubles the bytes that its readers gather. */
static int choose_shift(const hg_tape *tape, int32_t entry)
{
	const struct hg__recording *recording = &tape->recording;
	int shift = 0;
	if (recording->value[recording->entry[entry].node.out].dtype != HG_F16 ||
	    !readers_agree(tape, entry))
		return 0;
	for (int64_t k = 0; k < recording->entries; k++) {
		if (k != entry && recording->entry[k].fused_into != entry)
			continue;
		const struct hg__entry *part = &recording->entry[k];
		const int proved = shift_for(part->node.rule_bound[HG__ASSUMED]),
		          own = proved < 0 ? HG_SHIFT_MOST : proved;
		if (!hg__may_rescale(tape, &part->node) || !part->op->rescales)
			return 0;
		shift = own > shift ? own : shift;
	}
	return shift > recording->entry[entry].node.shift ? shift : 0;
}

/* Lists the node and those fused into it. For a cast the node that made its operand is listed. */
hg_status hg__tape_promote(hg_tape *tape, int32_t entry, int *shift, int *news)
{
	const struct hg__recording *recording = &tape->recording;
	while (recording->entry[entry].node.op->traits & HG__CASTS &&
	       recording->value[recording->entry[entry].node.in[0]].node >= 0)
		entry = recording->value[recording->entry[entry].node.in[0]].node;
	*shift = choose_shift(tape, entry);
	*news = 0;
	for (int64_t k = 0; k < recording->entries; k++)
		if (k == entry || recording->entry[k].fused_into == entry)
			HG__TRY(list_promotion(tape, k, *shift, news));
	return HG_OK;
}

hg_status hg_tape_replan(hg_tape *tape, int32_t node, int *shift)
{
	const struct hg__recording *recording = &tape->recording;
	int chosen, news;
	if (!tape)
		return HG_ERR_ARG;
	if (tape->stage == HG__RECORDING)
		return hg__fail(tape->ctx, HG_ERR_STATE, "hg_tape_replan: the tape is not compiled");
	if (node < 0 || node >= recording->entries || !tape->plan.entry[node].alive ||
	    recording->value[recording->entry[node].node.out].dtype != HG_F16)
		return hg__fail(tape->ctx, HG_ERR_ARG,
		                "hg_tape_replan: node is %d, expected one of this tape that runs and gives "
		                "f16 (hg_step_info.overflow_node)",
		                (int)node);
	HG__TRY(hg__tape_promote(tape, node, &chosen, &news));
	if (shift)
		*shift = chosen;
	return HG_OK;
}

/* ---- which node ---- */

struct search {
	hg_tensor *amax; /* [1, 2] */
	int32_t found;
	int ended; /* the search has ended: a node was found, or an input is not finite */
};

/* Whether a matrix has a number that is not finite, and the largest of the others. */
static hg_status look_at(const struct search *s, hg_context *ctx, const struct hg__mat *x, int *bad,
                         double *largest)
{
	float seen[2] = {0.0f, 0.0f};
	*bad = 0;
	*largest = 0.0;
	if (!x->data || !hg__is_float(x->dtype) || x->rows * x->cols == 0)
		return HG_OK;
	const struct hg__amax_args args = {.x = *x, .out = s->amax->mat};
	HG__TRY(ctx->backend->kernels->amax.run(ctx, &args));
	HG__TRY(hg_tensor_download(s->amax, seen, HG_F32));
	*bad = seen[1] > 0.0f;
	*largest = (double)seen[0];
	return HG_OK;
}

static hg_status count_bad(const struct search *s, hg_context *ctx, const struct hg__mat *x,
                           int *bad)
{
	double largest;
	return look_at(s, ctx, x, bad, &largest);
}

/* A batch norm whose result the node computes as it reads it (norms.c): are gamma or beta bad, and
 * if not, may its result have overflowed? In training it is at most sqrt(n) |gamma| + |beta|. */
static hg_status check_norm(const struct search *s, const struct hg__call *call, int *given,
                            int *overflows)
{
	const struct hg__mat *x = &call->in[0];
	struct hg__mat gamma = {(void *)(uintptr_t)call->normalise.gamma, 1, x->cols, x->cols, HG_F32},
	               beta = gamma;
	double scale, offset;
	int bad = 0;
	beta.data = (void *)(uintptr_t)call->normalise.beta;
	HG__TRY(look_at(s, call->ctx, &gamma, given, &scale));
	HG__TRY(look_at(s, call->ctx, &beta, &bad, &offset));
	*given |= bad;
	*overflows = !*given && x->dtype == HG_F16 &&
	             sqrt((double)x->rows) * scale + offset > hg_dtype_get(HG_F16)->max;
	return HG_OK;
}

/* All nodes before this one were good. So if an operand is bad, it is an input or a weight, and no
 * other type of the result would help. */
static hg_status check_node(void *user, const hg_tape *tape, int32_t entry, int backward,
                            const struct hg__call *call)
{
	struct search *s = user;
	int bad = 0, given = 0, overflows = 0;
	if (backward || s->ended)
		return HG_OK;
	HG__TRY(count_bad(s, tape->ctx, &call->out, &bad));
	const struct hg__region *region = hg__region_of(&tape->plan, entry);
	const int32_t norm = call->normalise.mean ? tape->recording.value[call->node->in[0]].node : -1;
	if (region && bad) { /* what its nodes read is not stored */
		const struct hg__mat x = hg__mat_of(tape, region->x);
		HG__TRY(count_bad(s, tape->ctx, &x, &given));
	}
	if (norm >= 0 && bad)
		HG__TRY(check_norm(s, call, &given, &overflows));
	for (int i = 0; i < call->node->n_in && bad && !given; i++)
		HG__TRY(count_bad(s, tape->ctx, &call->in[i], &given));
	s->ended = bad;
	if (bad && !given)
		s->found = overflows ? norm : entry;
	return HG_OK;
}

hg_status hg__tape_first_bad(hg_tape *tape, int32_t *entry)
{
	struct search s = {.found = -1};
	const struct hg__hook hook = {check_node, &s}, *outer = tape->program.hook;
	*entry = -1;
	HG__TRY(hg_tensor_create(tape->ctx, HG_F32, 1, 2, &s.amax));
	hg__tape_hook(tape, &hook);
	const hg_status status = hg_tape_forward(tape);
	hg__tape_hook(tape, outer);
	hg_tensor_free(s.amax);
	*entry = s.found;
	return status;
}
