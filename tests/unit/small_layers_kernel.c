/* The kernels small_layers and small_layers_back against their contract (kernels/small_layers.h):
 * Y and every gradient, of batches with graphs of all sizes and layers of all kinds; dropout beside
 * the kernel of that name; overflow flags; and calls that the contract does not describe. */
#include <stddef.h>

#include "unit/small_layers_equations.h"
#include "unit/small_layers_shapes.h"

/* ---- runs beside each other ---- */

struct bits {
	float *x[RESULTS];
};

static struct bits keep_bits(struct run *r)
{
	struct operand *results[RESULTS];
	struct bits bits = {{NULL}};
	const int n = results_of(r, results);
	for (int i = 0; i < n; i++) {
		const size_t bytes = (size_t)(results[i]->rows * results[i]->cols) * sizeof(float);
		bits.x[i] = malloc(bytes + 1);
		CHECK(bits.x[i]);
		memcpy(bits.x[i], results[i]->x, bytes);
	}
	return bits;
}

/* The bits of results that may be absent. DW_SELF: those of all layers. */
enum { DX = 1, DW = 0x2AA, DB = 0x554, DW_SELF = 1 << 30 };

static int is_left_out(const struct run *r, int result, int left_out)
{
	const int first = 1 + 2 * r->shape->layers;
	int selves = 0;
	for (int l = 0; l < r->shape->layers; l++)
		selves += r->shape->layer[l].self;
	return result < first ? left_out >> result & 1
	                      : result < first + selves && (left_out & DW_SELF);
}

/* left_out: bit i stands for result i, which was absent. It must be as fill() left it. */
static void check_bits(struct run *r, const struct bits *bits, int left_out)
{
	struct operand *results[RESULTS];
	const int n = results_of(r, results);
	for (int i = 0; i < n; i++)
		for (int64_t k = 0; k < results[i]->rows * results[i]->cols; k++)
			CHECK_MSG(is_left_out(r, i, left_out)
			              ? isnan(results[i]->x[k])
			              : hg__float_bits(results[i]->x[k]) == hg__float_bits(bits->x[i][k]),
			          "%s: number %lld of result %d differs", r->shape->what, (long long)k, i);
}

/* Runs again without some of dx, dw and db. What a kernel is not asked for changes nothing else. */
static void run_without(struct run *r, const struct bits *bits, int left_out)
{
	const struct hg__small_layers_back_args whole = r->back;
	struct hg__small_layer layer[LAYERS];
	memcpy(layer, r->layer, sizeof layer);
	if (left_out & DX)
		r->back.dx = (struct hg__mat){0};
	for (int l = 0; l < r->shape->layers; l++) {
		if (left_out >> (1 + 2 * l) & 1)
			r->layer[l].dw = (struct hg__mat){0};
		if (left_out >> (2 + 2 * l) & 1)
			r->layer[l].db = (struct hg__mat){0};
		if (left_out & DW_SELF)
			r->layer[l].dw_self = (struct hg__mat){0};
	}
	run_both(r);
	check_bits(r, bits, left_out);
	r->back = whole;
	memcpy(r->layer, layer, sizeof layer);
}

static void check_shape(const void *item)
{
	static const int left_out[] = {
	    0, DX, DW, DB, DX | DW, DW_SELF, DX | DW | DB, DX | DW | DB | DW_SELF, 0xC};
	struct scene s;
	struct run r;
	test_reseed(3);
	scene_open(&s, item);
	run_open(&r, &s, item);
	run_both(&r);
	check_run(&r);
	struct bits bits = keep_bits(&r);
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		run_without(&r, &bits, left_out[i] & (DW_SELF | ((2 << 2 * r.shape->layers) - 1)));
	for (int i = 0; i < RESULTS; i++)
		free(bits.x[i]);
	run_close(&r);
	scene_close(&s);
}

/* ---- dropout ---- */

/* With W = 0 and b = 1 each layer's result is what the kernel `dropout` makes of ones. */
static void dropout_is_that_of_its_kernel(void)
{
	static const struct shape shape = {
	    .what = "ones",
	    .graphs = 30,
	    .alpha = 1.0f,
	    .features = 5,
	    .layers = 2,
	    .layer = {{.width = 9, .bias = 1, .relu = 1, .p = 0.5f},
	              {.width = 30, .aggregate_first = 1, .bias = 1, .relu = 1, .p = 0.1f}}};
	for (int k = 0; k < 4; k++) {
		const int layers = 1 + k % 2, more = k / 2 * 34;
		struct shape of = shape;
		struct scene s;
		struct run r;
		of.layers = layers;
		for (int l = 0; l < layers; l++)
			of.layer[l].width += more;
		test_reseed(4);
		scene_open(&s, &of);
		run_open(&r, &s, &of);
		for (int l = 0; l < layers; l++) {
			for (int64_t i = 0; i < r.w[l].rows * r.w[l].cols; i++)
				r.w[l].x[i] = 0.0f;
			for (int64_t i = 0; i < r.b[l].cols; i++)
				r.b[l].x[i] = 1.0f;
			send(&r.w[l]);
			send(&r.b[l]);
		}
		run_both(&r);
		int64_t kept = 0;
		const struct operand *mask = &r.mask[layers - 1];
		for (int64_t i = 0; i < mask->rows * mask->cols; i++) {
			CHECK(hg__float_bits(r.y[layers - 1].x[i]) == hg__float_bits(mask->x[i]));
			kept += mask->x[i] > 0.0f;
		}
		CHECK(kept > 0 && kept < mask->rows * mask->cols);
		run_close(&r);
		scene_close(&s);
	}
}

/* ---- overflow ---- */

/* Nodes with an edge from themselves and two from neighbours, in graphs of ten: the rows of A have
 * three ones. X is `x` at the node LOUD and `others` elsewhere. Layer 0 takes it to two equal
 * columns by w0 and b0, and the W of layer 1 has a row of w and one of v, of two columns or of 64.
 * Where others is 0, few elements of one bin overflow, or none. */
enum { RINGS = 21, RING = 10, LOUD = RINGS * RING - 3 };
enum { INNER_0 = 3, RESULT_0 = 5, INNER_1 = 8, RESULT_1 = 9, NOBODY = -1 };
struct loud {
	const char *what;
	int aggregate_first;
	float x, others, w0, b0, w, v;
	int unguarded; /* bit k: check k is not made */
	int node;
};
static const struct shape loud_shapes[] = {
    {.what = "loud",
     .graphs = RINGS,
     .alpha = 1.0f,
     .features = 1,
     .layers = 2,
     .layer = {{.width = 2, .bias = 1, .relu = 1}, {.width = 2, .relu = 1}}},
    {.what = "loud and wide",
     .graphs = RINGS,
     .alpha = 1.0f,
     .features = 1,
     .layers = 2,
     .layer = {{.width = 2, .bias = 1, .relu = 1}, {.width = 64, .relu = 1}}},
};

static void rings_open(struct scene *s)
{
	int64_t ptr[RINGS + 1];
	*s = (struct scene){.ctx = test_context(), .alpha = 1.0f, .rows = RINGS * RING};
	s->kernels = s->ctx->backend->kernels;
	struct coo list = coo_empty(s->rows, s->rows);
	for (int k = 0; k <= RINGS; k++)
		ptr[k] = k * RING;
	for (int64_t i = 0; i < s->rows; i++)
		for (int64_t step = RING - 1; step <= RING + 1; step++)
			coo_add(&list, i, i / RING * RING + (i + step) % RING);
	close_list(s, list);
	make_bins(s, RINGS, ptr);
	make_graphs(s, RINGS, ptr);
}

static void set_loud(struct run *r, const struct loud *of, uint64_t *word)
{
	const int nodes[] = {INNER_0, RESULT_0, INNER_1, RESULT_1};
	for (int64_t i = 0; i < r->x.rows; i++)
		r->x.x[i] = i == LOUD ? of->x : of->others;
	for (int c = 0; c < 2; c++) {
		r->w[0].x[c] = of->w0;
		r->b[0].x[c] = of->b0;
	}
	for (int64_t c = 0; c < r->w[1].cols; c++) {
		r->w[1].x[c] = of->w;
		r->w[1].x[r->w[1].cols + c] = of->v;
	}
	send(&r->x);
	send(&r->w[0]);
	send(&r->b[0]);
	send(&r->w[1]);
	for (int k = 0; k < 4; k++) {
		struct hg__small_layer *layer = &r->layer[k / 2];
		const struct hg__overflow_flag flag = {of->unguarded >> k & 1 ? NULL : word, nodes[k]};
		layer->aggregate_first = of->aggregate_first;
		*(k % 2 ? &layer->result : &layer->inner) = flag;
	}
}

static void check_loud_shape(const struct loud *of, const struct shape *shape)
{
	struct scene s;
	struct run r;
	struct hg__buffer flag;
	uint64_t word = 0;
	test_reseed(5);
	rings_open(&s);
	run_open(&r, &s, shape);
	CHECK_OK(hg__buffer_upload(s.ctx, 1, sizeof word, &word, "flag", &flag));
	set_loud(&r, of, flag.data);
	CHECK_OK(s.kernels->small_layers.run(s.ctx, &r.forward));
	CHECK_OK(s.ctx->backend->copy_out(s.ctx, &word, flag.data, sizeof word));
	CHECK_MSG(hg__overflow_node(word) == of->node, "%s: node %d, expected %d", of->what,
	          (int)hg__overflow_node(word), of->node);
	/* An infinite number that nothing checked may make its bin NaN before a check. */
	const float amax = hg__overflow_amax(word);
	CHECK(of->node == NOBODY || isinf(amax) || (of->unguarded && isnan(amax)));
	CHECK_OK(hg_tensor_download(r.y[1].tensor, r.y[1].x, HG_F32));
	for (int64_t i = 0; of->node == NOBODY && !of->unguarded && i < r.y[1].cols * s.rows; i++)
		CHECK(isfinite(r.y[1].x[i]));
	/* Nothing checks in backward. */
	word = 0;
	CHECK_OK(s.ctx->backend->copy_in(s.ctx, flag.data, &word, sizeof word));
	CHECK_OK(s.kernels->small_layers_back.run(s.ctx, &r.back));
	CHECK_OK(s.ctx->backend->copy_out(s.ctx, &word, flag.data, sizeof word));
	CHECK(word == 0);
	hg__buffer_free(s.ctx, &flag);
	run_close(&r);
	scene_close(&s);
}

static void check_loud(const void *item)
{
	for (size_t i = 0; i < sizeof loud_shapes / sizeof *loud_shapes; i++)
		check_loud_shape(item, &loud_shapes[i]);
}

static const struct loud louds[] = {
    {"all fits", 0, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 1.0f, 0, NOBODY},
    {"all fits, aggregating first", 1, 1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 1.0f, 0, NOBODY},
    {"the first product", 0, 300.0f, 0.0f, 300.0f, 0.0f, 1.0f, 1.0f, 0, INNER_0},
    {"the first result, by its bias", 0, 1.0f, 0.0f, 65504.0f, 16.0f, 0.0f, 0.0f, 0, RESULT_0},
    {"65519 is rounded to a half", 0, 1.0f, 0.0f, 65504.0f, 15.0f, 0.0f, 0.0f, 0, NOBODY},
    {"the first result, aggregating first", 1, 300.0f, 0.0f, 300.0f, 0.0f, 1.0f, 1.0f, 0, RESULT_0},
    {"relu stops what is negative", 0, 1.0f, 0.0f, -65504.0f, -60000.0f, 1.0f, 1.0f, 0, NOBODY},
    {"the second product", 0, 1.0f, 0.0f, 1.0f, 0.0f, 65504.0f, 16.0f, 0, INNER_1},
    {"the second product fits", 0, 1.0f, 0.0f, 1.0f, 0.0f, 65504.0f, -43000.0f, 0, RESULT_1},
    {"a sum of neighbours", 1, 1.0f, 0.0f, 30000.0f, 0.0f, 0.0f, 0.0f, 0, INNER_1},
    {"the second result", 1, 1.0f, 0.0f, 1.0f, 0.0f, 20000.0f, 3000.0f, 0, RESULT_1},
    {"a product that is not checked", 0, 300.0f, 0.0f, 300.0f, 0.0f, 1.0f, 1.0f, 1, RESULT_0},
    {"results alone are checked", 0, 1.0f, 0.0f, 1.0f, 0.0f, 65504.0f, 16.0f, 5, RESULT_1},
    /* H' of nodes is 1000, but relu(b) is 40000, and its product with W does not fit. */
    {"rows that are no nodes", 0, 1.0f, 1.0f, -13000.0f, 40000.0f, 1.0f, 1.0f, 0, NOBODY},
    {"nothing is checked", 0, 300.0f, 0.0f, 300.0f, 0.0f, 1.0f, 1.0f, 15, NOBODY},
};

/* A sum of ten nodes that are 3 x each does not fit a half, in one graph, and their mean does. */
static void overflow_of_what_is_read_out(void)
{
	static const struct shape shapes_of[] = {
	    {.what = "a sum", .readout = 1 + HG_REDUCE_SUM},
	    {.what = "a mean", .readout = 1 + HG_REDUCE_MEAN},
	};
	for (int k = 0; k < 4; k++) {
		const float x = k < 2 ? 2200.0f : 2180.0f; /* 66,000 or 65,400 together */
		struct shape shape = shapes_of[k % 2];
		struct scene s;
		struct run r;
		struct hg__buffer flag;
		uint64_t word = 0;
		shape.graphs = RINGS;
		shape.features = shape.layers = shape.layer[0].width = 1;
		rings_open(&s);
		run_open(&r, &s, &shape);
		for (int64_t i = 0; i < r.x.rows; i++)
			r.x.x[i] = i / RING == LOUD / RING ? x : 1.0f;
		r.w[0].x[0] = 1.0f;
		send(&r.x);
		send(&r.w[0]);
		CHECK_OK(hg__buffer_upload(s.ctx, 1, sizeof word, &word, "flag", &flag));
		r.forward.readout.result = (struct hg__overflow_flag){flag.data, RESULT_0};
		CHECK_OK(s.kernels->small_layers.run(s.ctx, &r.forward));
		CHECK_OK(s.ctx->backend->copy_out(s.ctx, &word, flag.data, sizeof word));
		CHECK_MSG(hg__overflow_node(word) == (k == 0 ? RESULT_0 : NOBODY), "%s of %g: node %d",
		          shape.what, x, (int)hg__overflow_node(word));
		CHECK_OK(hg_tensor_download(r.readout.tensor, r.readout.x, HG_F32));
		for (int g = 0; g < RINGS; g++)
			CHECK_WITHIN(r.readout.x[g],
			             (g == LOUD / RING ? (double)x : 1.0) * (k % 2 ? 3.0 : 30.0),
			             k == 0 && g == LOUD / RING ? INFINITY : 16.0);
		hg__buffer_free(s.ctx, &flag);
		run_close(&r);
		scene_close(&s);
	}
}

/* Graphs of which none has a node: there is no bin. */
static void graphs_without_nodes_are_read_out(void)
{
	static const struct shape shape = {
	    .what = "no node", .alpha = 1.0f, .features = 8, .layers = 1, .layer = {{.width = 5}}};
	const int64_t ptr[] = {0, 0, 0, 0};
	struct scene s;
	struct run r;
	struct hg__buffer begin;
	scene_open(&s, &shape);
	run_open(&r, &s, &shape);
	CHECK_OK(hg__buffer_upload(s.ctx, 4, sizeof *ptr, ptr, "ptr", &begin));
	r.readout = operand_new(&s, HG_F16, 3, 5);
	s.bins.bins = 0;
	r.forward.readout = (struct hg__small_readout){
	    .ptr = begin.data, .id = s.id.data, .y = r.readout.tensor->mat, .reduce = HG_REDUCE_MEAN};
	CHECK_OK(s.kernels->small_layers.run(s.ctx, &r.forward));
	CHECK_OK(hg_tensor_download(r.readout.tensor, r.readout.x, HG_F32));
	for (int i = 0; i < 15; i++)
		CHECK(hg__float_bits(r.readout.x[i]) == 0);
	hg__buffer_free(s.ctx, &begin);
	run_close(&r);
	scene_close(&s);
}

/* ---- calls that the contract does not describe ---- */

struct call {
	struct hg__small_layer layer[HG__SMALL_LAYERS + 1];
	struct hg__small_layers_back_args a;
};

/* What is wrong with one matrix of a call: it has this type (SAME: its own), and so many rows and
 * columns more. back: backward alone refuses it. */
static const struct refusal {
	size_t at;
	hg_dtype dtype;
	int rows, cols;
	hg_status status;
	int back;
} refusals[] = {
#define AT(member) offsetof(struct call, member)
#define SAME HG_DTYPE_COUNT
    {AT(a.of.x), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].y), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].w), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].w_self), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].dw_self), HG_F16, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[0].b), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].dw), HG_F16, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].db), HG_F16, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(layer[1].dy), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 0},
    {AT(a.dx), HG_F32, 0, 0, HG_ERR_UNSUPPORTED, 1},
    {AT(a.of.x), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(a.of.x), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].y), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[1].y), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(a.of.kept), HG_F32, 0, 0, HG_ERR_INTERNAL, 0},
    {AT(a.of.kept), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(a.of.kept), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    /* as for rows of 64 columns */
    {AT(a.of.kept), SAME, 0, HG__BIN_ROWS, HG_ERR_INTERNAL, 0},
    {AT(layer[1].w), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[0].w), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].w_self), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[1].w_self), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].dw_self), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[0].b), SAME, 1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[0].b), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].dw), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[1].dw), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].db), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(layer[1].dy), SAME, -1, 0, HG_ERR_INTERNAL, 0},
    {AT(layer[1].dy), SAME, 0, -1, HG_ERR_INTERNAL, 0},
    {AT(a.dx), SAME, -1, 0, HG_ERR_INTERNAL, 1},
    {AT(a.dx), SAME, 0, -1, HG_ERR_INTERNAL, 1},
#undef AT
#undef SAME
};

static struct call good_call(const struct run *r)
{
	struct call call = {.a = r->back};
	memcpy(call.layer, r->layer, 2 * sizeof *call.layer);
	return call;
}

static void check_refusal(const struct run *r, struct call *call, hg_status status, int back)
{
	const struct hg__kernels *k = r->s->kernels;
	call->a.of.layer = call->layer;
	CHECK_STATUS(k->small_layers.run(r->s->ctx, &call->a.of), back ? HG_OK : status);
	CHECK_STATUS(k->small_layers_back.run(r->s->ctx, &call->a), status);
}

static void wrong_matrices_are_refused(const struct run *r)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct refusal *of = &refusals[i];
		struct call call = good_call(r);
		struct hg__mat *m = (struct hg__mat *)(void *)((char *)&call + of->at);
		m->dtype = of->dtype == HG_DTYPE_COUNT ? m->dtype : of->dtype;
		m->rows += of->rows;
		m->cols += of->cols;
		test_note("refusal %zu", i);
		check_refusal(r, &call, of->status, of->back);
	}
}

/* One column more than a kernel has room for, of X and of Y, in shapes that fit together. */
static void wide_matrices_are_refused(const struct run *r)
{
	struct call x = good_call(r), y = good_call(r);
	x.a.of.kept.cols = y.a.of.kept.cols = hg__small_kept(HG__SMALL_WIDTH);
	x.a.of.x.cols = x.a.dx.cols = x.layer[0].w.rows = x.layer[0].dw.rows = HG__SMALL_WIDTH + 1;
	y.layer[1].y.cols = y.layer[1].dy.cols = HG__SMALL_WIDTH + 1;
	y.layer[1].w.cols = y.layer[1].b.cols = HG__SMALL_WIDTH + 1;
	y.layer[1].dw.cols = y.layer[1].db.cols = HG__SMALL_WIDTH + 1;
	check_refusal(r, &x, HG_ERR_INTERNAL, 0);
	check_refusal(r, &y, HG_ERR_INTERNAL, 0);
}

static void wrong_layers_are_refused(const struct run *r)
{
	struct call many = good_call(r), none = good_call(r), function = good_call(r),
	            dropout = good_call(r), no_w = good_call(r), no_w_self = good_call(r),
	            matrices = good_call(r);
	for (int l = 2; l <= HG__SMALL_LAYERS; l++)
		many.layer[l] = many.layer[1];
	many.a.of.layers = HG__SMALL_LAYERS + 1;
	many.a.of.kept.rows = r->s->bins.bins * many.a.of.layers;
	none.a.of.layers = 0;
	function.layer[0].act_drop.act = 1 + HG__ACT_tanh;
	dropout.layer[0].act_drop.act = 0;
	no_w.layer[1].w.data = NULL;
	no_w_self.layer[1].w_self.data = NULL;
	for (int l = 2; l <= HG__SMALL_MATRICES / 2; l++)
		matrices.layer[l] = matrices.layer[1];
	matrices.a.of.layers = HG__SMALL_MATRICES / 2 + 1;
	matrices.a.of.kept.rows = r->s->bins.bins * matrices.a.of.layers;
	struct call *const calls[] = {&many, &none, &function, &dropout, &no_w, &no_w_self, &matrices};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		check_refusal(r, calls[i], HG_ERR_INTERNAL, 0);
}

static void wrong_calls_are_refused(void)
{
	static const struct shape shape = {
	    .what = "refused",
	    .graphs = 5,
	    .alpha = 1.0f,
	    .features = 8,
	    .layers = 2,
	    .layer = {{.width = 8, .bias = 1, .relu = 1, .p = 0.5f},
	              {.width = 8, .aggregate_first = 1, .bias = 1, .relu = 1, .self = 1}}};
	struct scene s;
	struct run r;
	test_reseed(6);
	scene_open(&s, &shape);
	run_open(&r, &s, &shape);
	wrong_matrices_are_refused(&r);
	wide_matrices_are_refused(&r);
	wrong_layers_are_refused(&r);
	struct call transpose = good_call(&r);
	transpose.a.csr_t.rows--;
	check_refusal(&r, &transpose, HG_ERR_INTERNAL, 1);
	run_both(&r);
	check_run(&r);
	run_close(&r);
	scene_close(&s);
}

int main(int argc, char **argv)
{
	enum {
		SHAPES = sizeof shapes / sizeof *shapes,
		LOUDS = sizeof louds / sizeof *louds,
		OTHERS = 4
	};
	struct test_case cases[OTHERS + SHAPES + LOUDS] = {
	    TEST(dropout_is_that_of_its_kernel), TEST(overflow_of_what_is_read_out),
	    TEST(graphs_without_nodes_are_read_out), TEST(wrong_calls_are_refused)};
	for (int i = 0; i < SHAPES; i++)
		cases[OTHERS + i] = (struct test_case){shapes[i].what, NULL, check_shape, &shapes[i]};
	for (int i = 0; i < LOUDS; i++)
		cases[OTHERS + SHAPES + i] = (struct test_case){louds[i].what, NULL, check_loud, &louds[i]};
	return RUN_TESTS(argc, argv, cases);
}
