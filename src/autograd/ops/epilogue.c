/* Bias, activation and dropout in one pass. When the tape is compiled, this op replaces such chains
 * of ops behind a product or an aggregation (epilogue_fuse.c).
 *
 *     Y = dropout(f(X + b))        f: none, or a function whose gradient follows from Y alone
 *                                  (kernels/functions.def). Each part may be absent.
 *
 * Shapes    X, Y: [n, d].  b: [1, d] or absent.
 * Dtypes    X, b, Y: state.  All values between them are f32, and only Y is narrowed; a chain of
 *           k ops would narrow k times.
 * Range     the rules of the parts, one after the other. The values between the parts are f32,
 *           so they need no verdict.
 * Error     |Y - exact| <= the parts' f32 errors (one sum, f's gamma_4 alpha, gamma_2 of 1/(1 -
 *           p)), narrowed once. The difference from the same chain op by op is at most the
 *           roundings of that chain, u16 |.| for each value between its ops. With f32 state the
 *           bits are the same, except for elu's gradient behind dropout.
 * Gradient  dX = f'(X + b) dropout(dY),  db = sum over rows of dX, added in f32 before dX is
 *           narrowed.
 *           f' is computed from Y alone. Y > 0 exactly where X + b > 0 was kept, because a
 *           positive sum of two f16 numbers is at least 2^-24 and 1/(1 - p) >= 1. For elu,
 *           sigmoid and tanh, f = Y (1 - p) gives f' (Y + alpha for elu), with the rounding of
 *           Y, u16 |Y|, as without dropout.
 * Cost      2 n d + d elements forward, 3 n d backward;  the flops of the parts.
 * Errors    HG_ERR_SHAPE b not [1, d];  HG_ERR_DTYPE;  HG_ERR_ARG X is missing, a constant is
 *           outside the range of its part.
 * Source    - */
#include "autograd/ops/epilogue.h"
#include "autograd/about.h"

enum { X, B };
/* f32 [1, d], written in the backward pass: db before it is narrowed, if b is not a parameter */
enum { DB };

static struct hg__epilogue_attr attr_of(const struct hg__node *node)
{
	struct hg__epilogue_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

/* The op of each activation. */
static const struct hg__op *const act_ops[1 + HG__ACT_EPILOGUES] = {
    NULL,
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(name, ...) &hg__op_##name,
#include "kernels/functions.def"
};

hg_status hg__epilogue_infer(const struct hg__infer *s, const struct hg__epilogue_attr *attr,
                             int acts)
{
	static const struct hg__constant none = {"act_p", "act_p = 0", 0.0f, 0.0f};
	HG__TRY(hg__want_attr(s, attr->act >= 0 && attr->act <= acts, "act", (double)attr->act,
	                      "none or an activation"));
	const struct hg__constant *p =
	    attr->act && act_ops[attr->act]->constant.name ? &act_ops[attr->act]->constant : &none;
	HG__TRY(hg__want_attr(s, attr->act_p >= p->low && attr->act_p <= p->high, "act_p",
	                      (double)attr->act_p, p->expected));
	return hg__want_attr(s, attr->p >= 0.0f && attr->p < 1.0f, "p", (double)attr->p, "0 <= p < 1");
}

hg_status hg__epilogue_infer_b(struct hg__infer *s, int b, int db)
{
	if (!s->in[b].present)
		return HG_OK;
	HG__TRY(hg__want_state(s, b, "b"));
	HG__TRY(hg__want_shape(s, b, "b", 1, s->out.cols));
	s->aux[db] = hg__shape_of(1, s->out.cols, HG_F32);
	s->grads |= 1u << b;
	s->saves |= HG__BACK_AUX(db);
	return HG_OK;
}

hg_status hg__epilogue_infer_behind(struct hg__infer *s, const struct hg__epilogue_attr *attr,
                                    int b, int db, int ds)
{
	HG__TRY(hg__epilogue_infer(s, attr, HG__ACT_SUM_EPILOGUES));
	s->saves |= attr->act ? HG__SAVE_OUT : 0u;
	if (hg__epilogue_alters(attr)) {
		s->aux[ds] = s->out;
		s->saves |= HG__BACK_AUX(ds);
	}
	return hg__epilogue_infer_b(s, b, db);
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__epilogue_attr attr = attr_of(s->node);
	HG__TRY(hg__epilogue_infer(s, &attr, HG__ACT_EPILOGUES));
	HG__TRY(hg__want_state(s, X, "X"));
	s->out = hg__shape_of(s->in[X].rows, s->in[X].cols, s->state);
	s->grads = 1u << X;
	s->saves = attr.act ? HG__SAVE_OUT : 0u;
	return hg__epilogue_infer_b(s, B, DB);
}

void hg__epilogue_add_to_chain(struct hg__fused_chain *chain, const struct hg__epilogue_attr *attr,
                               int x, int b)
{
	const struct {
		const struct hg__op *op;
		int present, operands;
		const float *constant;
	} parts[EPILOGUE_STAGES] = {
	    [EPILOGUE_BIAS] = {&hg__op_bias_add, b != FUSED_NONE, 2, NULL},
	    [EPILOGUE_ACT] = {act_ops[attr->act], attr->act != 0, 1, &attr->act_p},
	    [EPILOGUE_DROPOUT] = {&hg__op_dropout, attr->p > 0.0f, 1, &attr->p},
	};
	for (int k = 0; k < EPILOGUE_STAGES; k++) {
		const int operand[2] = {chain->count ? FUSED_BEFORE : x, b};
		if (parts[k].present)
			hg__fused_chain_add(chain, parts[k].op, NULL, operand, parts[k].operands,
			                    parts[k].constant, parts[k].constant ? sizeof(float) : 0);
	}
}

void hg__epilogue_end_chain(struct hg__fused_chain *chain, const struct hg__range *r,
                            const struct hg__epilogue_attr *attr, int b)
{
	chain->stored = hg__epilogue_alters(attr) ? chain->count : 0;
	hg__epilogue_add_to_chain(chain, attr, FUSED_BEFORE, r->shape[b].present ? b : FUSED_NONE);
}

static struct hg__fused_chain chain_of(const struct hg__range *r)
{
	const struct hg__epilogue_attr attr = attr_of(r->node);
	struct hg__fused_chain chain = {.shape = r->shape[X]};
	hg__epilogue_add_to_chain(&chain, &attr, X, r->shape[B].present ? B : FUSED_NONE);
	return chain;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__fused_chain chain = chain_of(r);
	const struct hg__known out = hg__fused_chain_range(r, &chain, how);
	how->rounding.depth = EPILOGUE_DEPTH;
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const struct hg__fused_chain chain = chain_of(r);
	hg__fused_chain_range_back(r, &chain, grad);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__epilogue_attr attr = attr_of(c->node);
	const struct hg__epilogue_args args = {
	    .x = c->in[X], .b = c->in[B], .y = c->out, .act_drop = hg__epilogue_of(c, &attr)};
	return HG__RUN(c, epilogue, &args);
}

/* Whether the gradient of operand b is not f32, as its sum is. */
static int narrows(const struct hg__mat *gradient)
{
	return gradient->data && gradient->dtype != HG_F32;
}

struct hg__epilogue_back_args hg__epilogue_back_of(const struct hg__call *c,
                                                   const struct hg__act_drop *act_drop, int b,
                                                   int db, struct hg__mat dx)
{
	const struct hg__epilogue_back_args args = {.y = c->out,
	                                            .dy = c->dout,
	                                            .dx = dx,
	                                            .db = narrows(&c->din[b]) ? c->aux[db] : c->din[b],
	                                            .act_drop = *act_drop};
	return args;
}

hg_status hg__epilogue_narrow(const struct hg__call *c, const struct hg__epilogue_back_args *args,
                              int b)
{
	return narrows(&c->din[b]) ? hg__copy_scaled(c, args->db, 1.0f, c->din[b]) : HG_OK;
}

hg_status hg__epilogue_backward(const struct hg__call *c, const struct hg__act_drop *act_drop,
                                int b, int db, struct hg__mat *dx)
{
	const struct hg__epilogue_back_args args = hg__epilogue_back_of(c, act_drop, b, db, *dx);
	if (!dx->data && !act_drop->act && !(act_drop->p > 0.0f))
		*dx = c->dout;
	if (args.dx.data || args.db.data)
		HG__TRY(HG__RUN(c, epilogue_back, &args));
	return hg__epilogue_narrow(c, &args, b);
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__epilogue_attr attr = attr_of(c->node);
	const struct hg__act_drop act_drop = hg__epilogue_of(c, &attr);
	struct hg__mat dx = c->din[X];
	return hg__epilogue_backward(c, &act_drop, B, DB, &dx);
}

static int sample(int i, const struct hg__extent *x, struct hg__sample *s)
{
	enum {
		NONE = 0,
		RELU = 1 + HG__ACT_relu,
		LEAKY = 1 + HG__ACT_leaky_relu,
		ELU = 1 + HG__ACT_elu,
		SIGMOID = 1 + HG__ACT_sigmoid,
		TANH = 1 + HG__ACT_tanh
	};
	static const struct {
		const char *what;
		hg_status expect;
		struct hg__epilogue_attr attr;
		int64_t wider, b_rows; /* b_rows 0: there is no b */
		double sigma;
		int integer;
	} rows[] = {
	    {"b, relu", HG_OK, {RELU, 0.0f, 0.0f}, 0, 1, 1.0, 0},
	    {"b, relu, dropout", HG_OK, {RELU, 0.0f, 0.5f}, 1, 1, 1.0, 0},
	    {"relu, dropout", HG_OK, {RELU, 0.0f, 0.6f}, 3, 0, 1.0, 0},
	    {"b, dropout", HG_OK, {NONE, 0.0f, 0.3f}, 8, 1, 1.0, 0},
	    {"b, leaky relu", HG_OK, {LEAKY, 0.2f, 0.0f}, 1, 1, 1.0, 0},
	    {"b, leaky relu, dropout", HG_OK, {LEAKY, 0.2f, 0.1f}, 0, 1, 1.0, 0},
	    {"leaky relu, dropout", HG_OK, {LEAKY, 0.0f, 0.5f}, 3, 0, 1.0, 0},
	    {"b, elu", HG_OK, {ELU, 1.0f, 0.0f}, 0, 1, 1.0, 0},
	    {"b, elu, dropout", HG_OK, {ELU, 1.0f, 0.6f}, 1, 1, 1.0, 0},
	    {"elu, dropout", HG_OK, {ELU, 3.0f, 0.25f}, 8, 0, 1.0, 0},
	    {"b, relu, dropout, large values", HG_OK, {RELU, 0.0f, 0.5f}, 0, 1, 4000.0, 0},
	    {"b, elu, dropout, 300 columns more", HG_OK, {ELU, 0.5f, 0.4f}, 300, 1, 1.0, 0},
	    {"b, sigmoid", HG_OK, {SIGMOID, 0.0f, 0.0f}, 1, 1, 1.0, 0},
	    {"b, sigmoid, dropout", HG_OK, {SIGMOID, 0.0f, 0.5f}, 3, 1, 3.0, 0},
	    {"b, tanh, dropout", HG_OK, {TANH, 0.0f, 0.3f}, 0, 1, 1.0, 0},
	    {"tanh, dropout", HG_OK, {TANH, 0.0f, 0.6f}, 8, 0, 3.0, 0},
	    {"sigmoid with a constant", HG_ERR_ARG, {SIGMOID, 1.0f, 0.0f}, 0, 1, 1.0, 0},
	    {"b has two rows", HG_ERR_SHAPE, {RELU, 0.0f, 0.0f}, 0, 2, 1.0, 0},
	    {"p 1", HG_ERR_ARG, {RELU, 0.0f, 1.0f}, 0, 1, 1.0, 0},
	    {"p not a number", HG_ERR_ARG, {RELU, 0.0f, NAN}, 0, 1, 1.0, 0},
	    {"slope 2", HG_ERR_ARG, {LEAKY, 2.0f, 0.5f}, 0, 1, 1.0, 0},
	    {"alpha 0", HG_ERR_ARG, {ELU, 0.0f, 0.5f}, 0, 1, 1.0, 0},
	    {"no such activation", HG_ERR_ARG, {1 + HG__ACT_EPILOGUES, 0.0f, 0.5f}, 0, 1, 1.0, 0},
	    {"X of integers", HG_ERR_DTYPE, {RELU, 0.0f, 0.0f}, 0, 1, 1.0, 1},
	};
	if (i >= (int)(sizeof rows / sizeof rows[0]))
		return 0;
	const int64_t d = x->d + rows[i].wider;
	hg__sample_begin(s, rows[i].what, rows[i].expect, 0);
	hg__sample_attr(s, &rows[i].attr, sizeof rows[i].attr);
	if (rows[i].integer)
		hg__sample_integer(s, x->n, d);
	else
		hg__sample_add(s, x->n, d, x->state, HG__FILL_NORMAL, rows[i].sigma, 1);
	if (rows[i].b_rows)
		hg__sample_normal(s, rows[i].b_rows, d, x->state);
	return 1;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	hg__cost_stream(c, 3.0, cost); /* one for each part */
}

static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	t->bias = (struct hg__added){.x = c->in[B], .col = e->col, .factor = 1.0};
	return HG_OK;
}

static double kept(const struct hg__node *node)
{
	return 1.0 - (double)attr_of(node).p;
}

static const struct hg__about about = {.operand = {"x", "bias"},
                                       .addends = 1u << B,
                                       .operand_brings = {[B] = HG__BRINGS_BIAS},
                                       .sum = sum,
                                       .kept = kept};

const struct hg__op hg__op_epilogue = {
    .name = "epilogue",
    .words = "bias, activation and dropout in one pass",
    .traits = HG__RANDOM,
    .min_in = 1,
    .max_in = 2,
    .same = 1u << X | 1u << B,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .sample = sample,
    .cost = cost,
    .about = &about,
};
