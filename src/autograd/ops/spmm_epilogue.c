/* An aggregation with an epilogue, in one pass. When the tape is compiled, this op replaces such
 * chains of ops if sums are f32 (spmm_epilogue_fuse.c).
 *
 *     Y = dropout(f(alpha r_i sum over e = (i, j) of w_e s_j X[j, c] + (1 + eps) Z + b))
 *
 * with r, s, w, alpha as in spmm.c; f: relu, leaky_relu, elu or none. Z may be X
 * itself (self: GIN). eps is 0 if it is absent. Each part but the sum may be absent.
 *
 * Shapes    G: A [rows, cols], m edges.  X: [cols, d].  w: [m, h] or absent.  Z: [rows, d] or
 *           absent.  eps: [1, 1] or absent.  b: [1, d] or absent.  Y: [rows, d], created.
 * Dtypes    X, w, Z, b, Y: state.  eps: f32.  All values between them are f32, and only Y is
 *           narrowed; a chain of k ops would narrow k times.
 * Range     the rules of the parts, one after the other. The values between the parts are f32,
 *           so they need no verdict.
 * Error     spmm's error before it narrows, then the parts' f32 errors, and Y is narrowed once.
 *           Where the operand of f is within its error of 0, or so small that Y is 0 in f16, f'
 *           may be that of the other side of 0. With f32 state the bits are those of the chain
 *           op by op, except for elu's gradient behind dropout, and for the order in which the
 *           gradients of a value with three or more uses are added.
 * Gradient  dS = f'(Y) dropout(dY), narrowed once, as in epilogue.c;  db = its column sums in
 *           f32;  then spmm's dX and dw from dS;  dZ = (1 + eps) dS,  deps = sum of dS Z.
 *           self: dX = alpha s_j sum of w r_i dS + (1 + eps) dS, which is one aggregation with
 *           an epilogue.
 * Cost      spmm's, n d elements of Z, d of b forward;  3 n d more backward where there is an f
 *           or dropout.
 * Errors    spmm's;  HG_ERR_SHAPE Z, b or eps, rows(X) != rows(A) with self;  HG_ERR_DTYPE;
 *           HG_ERR_ARG eps without Z, self with Z, a constant outside the range of its part.
 * Source    - */
#include "autograd/about.h"
#include "autograd/ops/epilogue.h"
#include "autograd/ops/spmm.h"

enum { X = SPMM_X, W = SPMM_W, Z, EPS, B };
/* DB f32 [1, d]: db before it is narrowed, if b is not a parameter. DS [rows, d]: dS, if it differs
 * from dY. */
enum { DB, DS };

static struct hg__spmm_epilogue_attr attr_of(const struct hg__node *node)
{
	struct hg__spmm_epilogue_attr attr;
	hg__attr_get(node, &attr, sizeof attr);
	return attr;
}

static hg_status infer_self(struct hg__infer *s, int self)
{
	HG__TRY(hg__want_attr(s, self == 0 || (self == 1 && !s->in[Z].present), "self", (double)self,
	                      "0, or 1 without Z"));
	if (self)
		HG__TRY(hg__want_equal(s, "X", "rows", s->in[X].rows, "Y", "rows", s->out.rows));
	if (s->in[Z].present) {
		HG__TRY(hg__want_state(s, Z, "Z"));
		HG__TRY(hg__want_shape(s, Z, "Z", s->out.rows, s->out.cols));
		s->grads |= 1u << Z;
	}
	if (!s->in[EPS].present)
		return HG_OK;
	if (!self)
		HG__TRY(hg__want_present(s, Z, "Z"));
	HG__TRY(hg__want_dtype(s, EPS, "eps", HG_F32));
	HG__TRY(hg__want_shape(s, EPS, "eps", 1, 1));
	s->grads |= 1u << EPS;
	s->saves |= HG__SAVE_IN(EPS) | HG__SAVE_IN(self ? X : Z);
	return HG_OK;
}

static hg_status infer(struct hg__infer *s)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(s->node);
	HG__TRY(hg__op_spmm.infer(s));
	HG__TRY(infer_self(s, attr.self));
	return hg__epilogue_infer_behind(s, &attr.act_drop, B, DB, DS);
}

static struct hg__fused_chain chain_of(const struct hg__range *r)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(r->node);
	const int z = attr.self ? X : Z;
	const int edges[] = {X, r->shape[W].present ? W : FUSED_NONE}, sum[] = {z, FUSED_BEFORE, EPS};
	struct hg__fused_chain chain = {
	    .shape = hg__shape_of(hg_graph_rows(r->node->graph), r->shape[X].cols, r->shape[X].dtype)};
	hg__fused_chain_add(&chain, &hg__op_spmm, r->node->graph, edges, 2, &attr.spmm,
	                    sizeof attr.spmm);
	if (r->shape[EPS].present)
		hg__fused_chain_add(&chain, &hg__op_combine, NULL, sum, 3, NULL, 0);
	else if (r->shape[z].present)
		hg__fused_chain_add(&chain, &hg__op_add, NULL, sum, 2, NULL, 0);
	hg__epilogue_end_chain(&chain, r, &attr.act_drop, B);
	return chain;
}

static struct hg__known range(const struct hg__range *r, struct hg__derivation *how)
{
	const struct hg__fused_chain chain = chain_of(r);
	const struct hg__known out = hg__fused_chain_range(r, &chain, how);
	/* 1 + eps, the product and the sum with Z */
	how->rounding.depth += 3.0 + EPILOGUE_DEPTH;
	return out;
}

static void range_back(const struct hg__range *r, struct hg__gradients *grad)
{
	const struct hg__fused_chain chain = chain_of(r);
	hg__fused_chain_range_back(r, &chain, grad);
}

static hg_status forward(const struct hg__call *c)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(c->node);
	const struct hg__sum_epilogue epilogue = {.z = c->in[attr.self ? X : Z],
	                                          .b = c->in[B],
	                                          .beta = hg__rescaled(c, attr.self ? X : Z, 1.0f),
	                                          .beta_p = c->in[EPS].data,
	                                          .act_drop = hg__epilogue_of(c, &attr.act_drop)};
	return hg__spmm_forward(c, &epilogue);
}

static hg_status backward(const struct hg__call *c)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(c->node);
	const struct hg__act_drop act_drop = hg__epilogue_of(c, &attr.act_drop);
	struct hg__mat ds = c->aux[DS];
	HG__TRY(hg__epilogue_backward(c, &act_drop, B, DB, &ds));
	struct hg__sum_epilogue epilogue = {.beta = 1.0f, .beta_p = c->in[EPS].data};
	if (attr.self)
		epilogue.z = ds;
	HG__TRY(hg__spmm_backward(c, ds, &epilogue));
	if (c->din[Z].data) {
		const struct hg__axpby_args args = {
		    .x = ds, .y = c->din[Z], .alpha = 1.0f, .alpha_p = c->in[EPS].data};
		HG__TRY(HG__RUN(c, axpby, &args));
	}
	if (c->din[EPS].data) {
		const int z = attr.self ? X : Z;
		const struct hg__dot_all_args args = {.a = ds, .b = c->in[z], .y = c->din[EPS]};
		HG__TRY(HG__RUN(c, dot_all, &args));
		HG__TRY(hg__restore(c, z, c->din[EPS]));
	}
	return HG_OK;
}

/* X can be rescaled unless there is a b, which is added without a factor, or an elu, which does not
 * commute with a factor. */
static int rescales(const struct hg__node *node)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(node);
	return (node->n_in <= B || node->in[B] < 0) && attr.act_drop.act != 1 + HG__ACT_elu;
}

static void cost(const struct hg__call *c, struct hg__cost *cost)
{
	const int own = attr_of(c->node).self || c->node->in[Z] >= 0;
	hg__spmm_cost(c, cost);
	cost->bytes += (own ? hg__mat_bytes(&c->out) : 0.0) + hg__mat_bytes(&c->in[B]);
	/* two for Z, and one for each part */
	cost->flops += 5.0 * (double)c->out.rows * (double)c->out.cols;
}

/* The gradient behind the aggregation: dS if there is one, otherwise dY. */
static hg_status sum(const struct hg__call *c, const struct hg__element *e, struct hg__terms *t)
{
	const struct hg__spmm_epilogue_attr attr = attr_of(c->node);
	const struct hg__mat ds = c->aux[DS].data ? c->aux[DS] : c->dout;
	const int z = attr.self ? X : Z;
	if (e->operand <= W)
		HG__TRY(hg__spmm_sum(c, e, ds, t));
	if (e->operand < 0) {
		t->self = (struct hg__added){.x = c->in[z],
		                             .eps = c->in[EPS],
		                             .row = e->row,
		                             .col = e->col,
		                             .factor = ldexp(1.0, c->shift[z] - c->shift_out)};
		t->bias = (struct hg__added){
		    .x = c->in[B], .col = e->col, .factor = ldexp(1.0, c->shift[B] - c->shift_out)};
	} else if (e->operand == X && attr.self) {
		t->self = (struct hg__added){
		    .x = ds, .eps = c->in[EPS], .row = e->row, .col = e->col, .factor = 1.0};
	}
	return HG_OK;
}

static double kept(const struct hg__node *node)
{
	return 1.0 - (double)attr_of(node).act_drop.p;
}

static const struct hg__about about = {
    .rows = HG__ROWS_NODES,
    .addends = 1u << B,
    .operand_brings = {[Z] = HG__BRINGS_SELF, [EPS] = HG__BRINGS_SELF, [B] = HG__BRINGS_BIAS},
    .sum = sum,
    .kept = kept};

const struct hg__op hg__op_spmm_epilogue = {
    .name = "spmm_epilogue",
    .words = "sum over neighbours with what follows it",
    .traits = HG__GRAPH | HG__TRANSPOSE | HG__UNIT_EDGES | HG__TILES | HG__RANDOM |
              HG__GUARDS_STORE | HG__SCATTERS,
    .min_in = 1,
    .max_in = 5,
    .rescaled = 1u << X | 1u << Z,
    .rescales = rescales,
    .same = 1u << X | 1u << W | 1u << Z | 1u << B,
    .edges = 1u << W,
    .infer = infer,
    .range = range,
    .range_back = range_back,
    .forward = forward,
    .backward = backward,
    .prepare = hg__spmm_prepare,
    .sample = hg__spmm_epilogue_sample,
    .cost = cost,
    .about = &about,
};
