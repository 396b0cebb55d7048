/* Graph streams that scatter (HG_AGGREGATION_SCATTER): sums of the edges of a list in any order,
 * against sums in f64 and against streams that gather, with the bits of every other order; terms
 * that are not finite; the gradient of edge weights; what such a stream saves and refuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/csr.h"
#include "graphs.h"
#include "halfgraph/graph_stream.h"
#include "halfgraph/halfgraph.h"
#include "halfgraph/ops_attention.h"
#include "halfgraph/ops_graph.h"
#include "halfgraph/ops_norm.h"
#include "precision/bound.h"

/* ---- lists ---- */

/* Small graphs, and a hub that all edges lead to. Weights are whole numbers of eighths up to 4. */
static struct coo list_of(int k, int weighted)
{
	struct coo list = coo_empty(0, 0);
	switch (k) {
	case 0:
		list = coo_empty(12, 12);
		break;
	case 1:
		list = coo_path(9);
		break;
	case 2:
		list = coo_star(70);
		break;
	case 3:
		list = coo_hub(40, 150, 3, 5);
		break;
	case 4:
		list = coo_hubs(40, 200, 2, 4);
		break;
	case 5:
		list = coo_empty(1, 1);
		coo_add(&list, 0, 0);
		coo_add(&list, 0, 0);
		break;
	default:
		list = coo_communities(60, 160, 3);
	}
	if (weighted) {
		float *weight = coo_weights(&list);
		for (int64_t e = 0; e < list.m; e++)
			weight[e] = (float)(test_below(65) - 32) / 8.0f;
	}
	return list;
}
enum { LISTS = 7, NODES = 80, EDGES = 260, DEGREE = 160 };

static void shuffle(struct coo *list)
{
	for (int64_t e = list->m - 1; e > 0; e--) {
		const int64_t k = test_below(e + 1);
		const int32_t dst = list->dst[e], src = list->src[e];
		list->dst[e] = list->dst[k];
		list->src[e] = list->src[k];
		list->dst[k] = dst;
		list->src[k] = src;
		if (!list->weight)
			continue;
		const float weight = list->weight[e];
		list->weight[e] = list->weight[k];
		list->weight[k] = weight;
	}
}

/* ---- a tape with one sum ---- */

struct way {
	hg_aggregation aggregation;
	hg_norm norm;
	float alpha;
	const char *policy;
	int loops, weighted, heads; /* heads 0: no operand of weights */
	int64_t width;
	int ends; /* 1: a relu behind the sum, which becomes an epilogue */
};

struct rig {
	struct way way;
	hg_context *ctx;
	hg_graph_stream *stream;
	hg_graph *graph;
	hg_params *params;
	hg_tape *tape;
	hg_tensor *x, *w, *g;
	hg_var of_x, of_w, y;
	int64_t rows, edges;
};

static hg_graph_stream_config config_of(const struct way *way)
{
	hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
	c.nodes = NODES;
	c.edges = EDGES;
	c.max_degree = DEGREE;
	c.self_loops = way->loops;
	c.weighted = way->weighted;
	c.max_weight = 4.0f;
	c.aggregation = way->aggregation;
	return c;
}

/* y = spmm(x), and its gradient is g: the loss is the inner product of both. */
static void rig_open(struct rig *r, const struct way *way)
{
	const hg_graph_stream_config c = config_of(way);
	hg_policy policy;
	*r = (struct rig){.way = *way, .ctx = test_context()};
	CHECK_OK(hg_policy_parse(way->policy, &policy));
	policy.loss_scale.init_scale = 1.0f;
	CHECK_OK(hg_graph_stream_create(r->ctx, &c, &r->stream));
	CHECK(hg_graph_stream_aggregation(r->stream) == way->aggregation);
	r->graph = hg_graph_stream_graph(r->stream);
	r->rows = hg_graph_rows(r->graph);
	r->edges = hg_graph_edges(r->graph);
	CHECK_OK(hg_params_create(r->ctx, &policy, &r->params));
	CHECK_OK(hg_tape_create(r->params, HG_TRAIN, &r->tape));
	CHECK_OK(hg_tensor_create(r->ctx, policy.state, r->rows, way->width, &r->x));
	CHECK_OK(hg_tensor_create(r->ctx, policy.state, r->rows, way->width, &r->g));
	r->of_x = hg_tape_variable(r->tape, r->x, "x");
	r->of_w = HG_NONE;
	if (way->heads) {
		CHECK_OK(hg_tensor_create(r->ctx, policy.state, r->edges, way->heads, &r->w));
		r->of_w = hg_tape_variable(r->tape, r->w, "w");
	}
	r->y = hg_spmm(r->tape, r->graph, r->of_x, r->of_w, way->norm, way->alpha);
	if (way->ends)
		r->y = hg_relu(r->tape, r->y);
	hg_tape_keep(r->tape, r->y);
	const hg_var loss = hg_inner(r->tape, r->y, hg_tape_input(r->tape, r->g, "g", 8.0));
	CHECK_MSG(hg_tape_compile(r->tape, loss) == HG_OK, "%s", hg_context_error(r->ctx));
}

static void rig_close(struct rig *r)
{
	hg_tape_free(r->tape);
	hg_params_free(r->params);
	hg_tensor_free(r->x);
	hg_tensor_free(r->w);
	hg_tensor_free(r->g);
	hg_graph_stream_free(r->stream);
	hg_context_free(r->ctx);
}

static float *download(const hg_tensor *t)
{
	float *host = calloc((size_t)(hg_tensor_rows(t) * hg_tensor_cols(t)) + 1, sizeof *host);
	CHECK(host);
	CHECK_OK(hg_tensor_download(t, host, HG_F32));
	return host;
}

static void upload_random(hg_tensor *t, uint64_t seed)
{
	const int64_t count = hg_tensor_rows(t) * hg_tensor_cols(t);
	float *host = malloc(((size_t)count + 1) * sizeof *host);
	CHECK(host);
	test_reseed(seed);
	for (int64_t i = 0; i < count; i++)
		host[i] = (float)fmax(-8.0, fmin(8.0, test_normal()));
	CHECK_OK(hg_tensor_upload(t, host, HG_F32));
	free(host);
}

static void refill(const struct rig *r, const struct coo *list)
{
	CHECK_OK(
	    hg_graph_stream_refill(r->stream, list->rows, list->m, list->dst, list->src, list->weight));
	CHECK_OK(hg_graph_stream_check(r->stream));
}

struct results {
	float *y, *dx, *dw;
};

static struct results run(const struct rig *r)
{
	CHECK_OK(hg_tape_forward(r->tape));
	CHECK_OK(hg_tape_backward(r->tape));
	return (struct results){download(hg_tape_value(r->tape, r->y)),
	                        download(hg_tape_grad(r->tape, r->of_x)),
	                        r->w ? download(hg_tape_grad(r->tape, r->of_w)) : NULL};
}

static void results_free(struct results *r)
{
	free(r->y);
	free(r->dx);
	free(r->dw);
}

/* ---- in f64 ---- */

/* The list with self loops and padding, in the order in which a stream that scatters numbers them,
 * and the degrees of its rows and columns. */
struct complete {
	struct coo list;
	int64_t *in, *out;
};

static struct complete complete_of(const struct rig *r, const struct coo *list)
{
	struct complete all = {.list = coo_empty(r->rows, r->rows)};
	int64_t padding = 0;
	all.in = calloc((size_t)r->rows, sizeof *all.in);
	all.out = calloc((size_t)r->rows, sizeof *all.out);
	CHECK(all.in && all.out);
	for (int64_t e = 0; e < r->edges; e++) {
		int64_t i = list->rows + padding / DEGREE, j = i;
		float weight = r->way.weighted ? 0.0f : 1.0f;
		if (e < list->m) {
			i = list->dst[e];
			j = list->src[e];
			weight = list->weight ? list->weight[e] : 1.0f;
		} else if (r->way.loops && e < list->m + list->rows) {
			i = j = e - list->m;
			weight = 1.0f;
		} else {
			padding++;
		}
		coo_add_weighted(&all.list, i, j, weight);
		all.in[i]++;
		all.out[j]++;
	}
	return all;
}

static void complete_free(struct complete *all)
{
	coo_free(&all->list);
	free(all->in);
	free(all->out);
}

static double factor(hg_norm norm, const struct complete *all, int64_t node, int of_column)
{
	const double in = (double)(all->in[node] ? all->in[node] : 1),
	             out = (double)(all->out[node] ? all->out[node] : 1);
	const double row[HG_NORMS] = {1.0, 1.0, 1.0 / in, 1.0 / sqrt(in), 1.0 / sqrt(in)},
	             col[HG_NORMS] = {1.0, 1.0 / out, 1.0, 1.0 / sqrt(out), 1.0 / sqrt(in)};
	return of_column ? col[norm] : row[norm];
}

/* A sum with its bounds: that of scattering, whatever the order, and that of gathering. With terms
 * rounded to whole multiples of 2^-s, each is off by at most half of that, and 2^-s is at most
 * 2^-60 times the bound on a sum of D terms (precision/integer_sum.h). Seven roundings: of r, s,
 * w s, alpha r, its product with the sum, the sum, and one to spare. */
struct expected {
	double y, scatter, gather;
};

static struct expected expect(const struct rig *r, const struct complete *all, const float *x,
                              const float *w, hg_dtype to, int64_t row, int64_t c, int back)
{
	const struct way *way = &r->way;
	const int is_half = hg_tensor_dtype(r->x) == HG_F16;
	double sum = 0.0, size = 0.0, terms = 0.0, most = 0.0, heaviest = w ? 0.0 : 4.0;
	for (int64_t e = 0; e < all->list.m; e++) {
		const int64_t i = back ? all->list.src[e] : all->list.dst[e],
		              j = back ? all->list.dst[e] : all->list.src[e];
		const double v = w ? (double)w[e * way->heads + c / (way->width / way->heads)]
		                   : (double)all->list.weight[e];
		heaviest = w ? fmax(heaviest, fabs(v)) : heaviest;
		if (i != row)
			continue;
		const double term = v * factor(way->norm, all, j, !back) * (double)x[j * way->width + c];
		sum += term;
		size += fabs(term);
		terms += 1.0;
	}
	for (int64_t k = 0; k < r->rows * way->width; k++)
		most = fmax(most, fabs((double)x[k]));
	for (int64_t k = 0; w && k < r->edges * way->heads; k++)
		heaviest = fmax(heaviest, fabs((double)w[k]));
	const double scale = (double)way->alpha * factor(way->norm, all, row, back), y = scale * sum,
	             integers =
	                 fabs(scale) * terms * 0x1p-61 * DEGREE * heaviest * (is_half ? 65504.0 : most);
	struct expected e = {.y = y};
	e.scatter = hg__bound_sum(to, 7.0, fabs(scale) * size, y) + integers * (1.0 + 0x1p-10);
	e.gather = hg__bound_sum(to, hg__depth_tiles(terms) + 8.0,
	                         fabs(scale) * size * (is_half ? 1.0 + 0x1p-11 : 1.0), y) +
	           (is_half ? fabs(scale) * (0x1p-11 * size + 0x1p-25 * terms * heaviest) : 0.0);
	return e;
}

/* One side of a rig: the result from x, or the gradient of x from g. other: what a stream that
 * gathers has found; NULL: nothing. */
static void check_sums(const struct rig *r, const struct complete *all, const float *x,
                       const float *w, const float *found, const float *other, hg_dtype to,
                       int back)
{
	for (int64_t i = 0; i < r->rows; i++)
		for (int64_t c = 0; c < r->way.width; c++) {
			const struct expected e = expect(r, all, x, w, to, i, c, back);
			const int64_t at = i * r->way.width + c;
			CHECK_WITHIN((double)found[at], e.y, e.scatter);
			if (other)
				CHECK_WITHIN((double)found[at], (double)other[at], e.scatter + e.gather);
		}
}

static const struct way ways[] = {
    {HG_AGGREGATION_SCATTER, HG_NORM_NONE, 1.0f, "fp16", 0, 0, 0, 8, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_BOTH, 1.0f, "fp16", 1, 0, 0, 20, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_RIGHT, -0.5f, "fp16", 0, 1, 0, 3, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_LEFT, 2.0f, "fp32", 1, 1, 0, 64, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_IN, 1.0f, "fp32", 0, 0, 0, 1, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_IN, 1.0f, "fp16-discretized", 1, 1, 0, 72, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_NONE, 1.0f, "fp16", 1, 0, 1, 16, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_BOTH, 0.5f, "fp32", 0, 1, 4, 12, 0},
    {HG_AGGREGATION_SCATTER, HG_NORM_RIGHT, 1.0f, "fp16", 0, 0, 2, 80, 0},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void sums_are_within_their_bounds(void)
{
	for (int k = 0; k < WAYS; k++) {
		struct way gathers = ways[k];
		struct rig r, other;
		gathers.aggregation = HG_AGGREGATION_GATHER;
		rig_open(&r, &ways[k]);
		rig_open(&other, &gathers);
		for (int l = 0; l < LISTS; l++) {
			test_reseed((uint64_t)(LISTS * k + l));
			struct coo list = list_of(l, ways[k].weighted);
			upload_random(r.x, 1);
			upload_random(r.g, 2);
			upload_random(other.x, 1);
			upload_random(other.g, 2);
			if (r.w)
				upload_random(r.w, 3);
			refill(&r, &list);
			refill(&other, &list);
			struct complete all = complete_of(&r, &list);
			struct results found = run(&r), gathered = run(&other);
			float *x = download(r.x), *g = download(r.g), *w = r.w ? download(r.w) : NULL;
			const int alike = !r.w && strcmp(ways[k].policy, "fp16-discretized") != 0;
			check_sums(&r, &all, x, w, found.y, alike ? gathered.y : NULL,
			           hg_tensor_dtype(hg_tape_value(r.tape, r.y)), 0);
			check_sums(&r, &all, g, w, found.dx, alike ? gathered.dx : NULL, hg_tensor_dtype(r.x),
			           1);
			results_free(&found);
			results_free(&gathered);
			free(x);
			free(g);
			free(w);
			complete_free(&all);
			coo_free(&list);
		}
		rig_close(&r);
		rig_close(&other);
	}
}

/* ---- the gradient of edge weights ---- */

static void weights_have_gradients_in_the_order_of_the_list(void)
{
	for (int k = 0; k < WAYS; k++) {
		struct rig r;
		if (!ways[k].heads)
			continue;
		rig_open(&r, &ways[k]);
		test_reseed((uint64_t)k);
		struct coo list = list_of(4, ways[k].weighted);
		upload_random(r.x, 1);
		upload_random(r.g, 2);
		upload_random(r.w, 3);
		refill(&r, &list);
		struct complete all = complete_of(&r, &list);
		struct results found = run(&r);
		float *x = download(r.x), *g = download(r.g);
		const int64_t d = ways[k].width / ways[k].heads;
		for (int64_t e = 0; e < r.edges; e++)
			for (int64_t h = 0; h < ways[k].heads; h++) {
				const int64_t i = all.list.dst[e], j = all.list.src[e];
				const double scale = (double)ways[k].alpha * factor(ways[k].norm, &all, i, 0) *
				                     factor(ways[k].norm, &all, j, 1);
				double sum = 0.0, size = 0.0;
				for (int64_t c = h * d; c < (h + 1) * d; c++) {
					const double term =
					    (double)g[i * ways[k].width + c] * (double)x[j * ways[k].width + c];
					sum += term;
					size += fabs(term);
				}
				CHECK_WITHIN((double)found.dw[e * ways[k].heads + h], scale * sum,
				             hg__bound_sum(hg_tensor_dtype(r.w), (double)d + 8.0,
				                           fabs(scale) * size, scale * sum));
			}
		free(x);
		free(g);
		results_free(&found);
		complete_free(&all);
		coo_free(&list);
		rig_close(&r);
	}
}

/* ---- bits ---- */

static void bits_do_not_depend_on_the_order(void)
{
	for (int k = 0; k < WAYS; k++) {
		struct way way = ways[k];
		struct rig r;
		way.heads = 0; /* their order is that of the list */
		way.ends = k % 2;
		rig_open(&r, &way);
		const size_t bytes = (size_t)(r.rows * way.width) * sizeof(float);
		upload_random(r.x, 1);
		upload_random(r.g, 2);
		for (int l = 0; l < LISTS; l++) {
			test_reseed((uint64_t)l);
			struct coo list = list_of(l, way.weighted);
			struct results first = {NULL, NULL, NULL};
			for (int times = 0; times < 3; times++) {
				refill(&r, &list);
				struct results next = run(&r);
				CHECK(!first.y || (memcmp(first.y, next.y, bytes) == 0 &&
				                   memcmp(first.dx, next.dx, bytes) == 0));
				results_free(&first);
				first = next;
				if (times)
					shuffle(&list);
			}
			results_free(&first);
			coo_free(&list);
		}
		rig_close(&r);
	}
}

/* Features of tiny and of huge numbers: the scale of f32 follows what is there. */
static void f32_of_any_size_is_summed(void)
{
	static const double sizes[] = {1e-40, 1e-20, 1e20, 1e35};
	const struct way way = {HG_AGGREGATION_SCATTER, HG_NORM_NONE, 1.0f, "fp32", 0, 0, 0, 4, 0};
	struct rig r;
	rig_open(&r, &way);
	struct coo list = coo_star(70);
	refill(&r, &list);
	struct complete all = complete_of(&r, &list);
	float *x = malloc((size_t)(r.rows * way.width) * sizeof *x);
	CHECK(x);
	upload_random(r.g, 2);
	for (int k = 0; k < 4; k++) {
		test_reseed((uint64_t)k);
		for (int64_t i = 0; i < r.rows * way.width; i++)
			x[i] = (float)(sizes[k] * (test_uniform() - 0.5));
		CHECK_OK(hg_tensor_upload(r.x, x, HG_F32));
		struct results found = run(&r);
		check_sums(&r, &all, x, NULL, found.y, NULL, HG_F32, 0);
		results_free(&found);
	}
	free(x);
	complete_free(&all);
	coo_free(&list);
	rig_close(&r);
}

/* ---- terms that are not finite ---- */

static int class_of(float x)
{
	return isnan(x) ? 3 : x == INFINITY ? 1 : x == -INFINITY ? 2 : 0;
}

/* Infinities and NaN reach the results that they reach in sums of floats, and no others. */
static void infinities_and_nan_arrive(void)
{
	for (int k = 0; k < 6; k++) {
		struct way scatters = ways[k], gathers;
		struct rig r[2];
		float *y[2];
		test_reseed((uint64_t)k);
		struct coo list = list_of(3, scatters.weighted);
		gathers = scatters;
		gathers.aggregation = HG_AGGREGATION_GATHER;
		for (int side = 0; side < 2; side++) {
			rig_open(&r[side], side ? &gathers : &scatters);
			upload_random(r[side].x, 1);
			upload_random(r[side].g, 2);
			float *x = download(r[side].x);
			for (int64_t c = 0; c < scatters.width; c++) {
				x[3 * scatters.width + c] = INFINITY;
				x[7 * scatters.width + c] = c % 2 ? -INFINITY : INFINITY;
				x[11 * scatters.width + c] = c % 3 ? 1.0f : NAN;
			}
			CHECK_OK(hg_tensor_upload(r[side].x, x, HG_F32));
			free(x);
			refill(&r[side], &list);
			CHECK_OK(hg_tape_forward(r[side].tape));
			y[side] = download(hg_tape_value(r[side].tape, r[side].y));
		}
		int64_t odd = 0;
		for (int64_t i = 0; i < r[0].rows * scatters.width; i++) {
			CHECK_EQ_I(class_of(y[0][i]), class_of(y[1][i]));
			odd += class_of(y[0][i]) != 0;
		}
		CHECK(odd > 0 && odd < r[0].rows * scatters.width);
		for (int side = 0; side < 2; side++) {
			free(y[side]);
			rig_close(&r[side]);
		}
		coo_free(&list);
	}
}

/* ---- what it saves, and what it refuses ---- */

static void it_takes_less_memory(void)
{
	for (int weighted = 0; weighted < 2; weighted++) {
		size_t bytes[2];
		for (int side = 0; side < 2; side++) {
			hg_context *ctx = test_context();
			hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
			hg_graph_stream *stream = NULL;
			c.nodes = 2000;
			c.edges = 50000;
			c.weighted = weighted;
			c.aggregation = side ? HG_AGGREGATION_GATHER : HG_AGGREGATION_SCATTER;
			const size_t before = ctx->current_bytes;
			CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
			bytes[side] = ctx->current_bytes - before;
			hg_graph_stream_free(stream);
			hg_context_free(ctx);
		}
		test_note("%zu bytes, and %zu of a stream that gathers", bytes[0], bytes[1]);
		CHECK(bytes[0] < 7 * bytes[1] / 10);
	}
}

/* Ops that need rows fail when they are recorded, and say what to choose. */
static void ops_on_rows_are_refused(void)
{
	enum { MAX, DOT, SOFTMAX, GATHER, SCATTER, ATTENTION, OPS };
	const struct way way = {HG_AGGREGATION_SCATTER, HG_NORM_NONE, 1.0f, "fp16", 0, 0, 1, 8, 0};
	struct rig r;
	rig_open(&r, &way);
	for (int op = 0; op < OPS; op++) {
		hg_tape *tape = NULL;
		CHECK_OK(hg_tape_create(r.params, HG_TRAIN, &tape));
		const hg_var x = hg_tape_variable(tape, r.x, "x"), w = hg_tape_variable(tape, r.w, "w");
		const hg_attention_operands operands = {x, x, x, hg_none(), hg_none()};
		if (op == MAX)
			(void)hg_spmm_max(tape, r.graph, x);
		else if (op == DOT)
			(void)hg_sddmm_dot(tape, r.graph, x, x, 1, 1.0f);
		else if (op == SOFTMAX)
			(void)hg_edge_softmax(tape, r.graph, w);
		else if (op == GATHER)
			(void)hg_gather(tape, r.graph, x, HG_END_SOURCE);
		else if (op == SCATTER)
			(void)hg_scatter(tape, r.graph, w, HG_END_SOURCE, HG_REDUCE_SUM);
		else
			(void)hg_attention(tape, r.graph, &operands, NULL);
		CHECK_STATUS(hg_tape_status(tape), HG_ERR_UNSUPPORTED);
		CHECK_CONTAINS(hg_context_error(r.ctx), "choose HG_AGGREGATION_GATHER");
		hg_tape_free(tape);
	}
	CHECK_STATUS(hg_graph_download(r.graph, NULL, NULL, NULL), HG_ERR_UNSUPPORTED);
	hg_graph *made = NULL;
	CHECK_STATUS(hg_graph_add_self_loops(r.graph, &made), HG_ERR_UNSUPPORTED);
	rig_close(&r);
}

/* AUTO chooses by the work on a list: for one narrow sum it scatters, and more sums and more
 * columns speak for rows. */
static void auto_chooses(void)
{
	hg_context *ctx = test_context();
	int scatters_before = 1;
	for (int64_t uses = 1; uses < 1 << 20; uses *= 16) {
		hg_graph_stream_config c = HG_GRAPH_STREAM_CONFIG_INIT;
		hg_graph_stream *stream = NULL;
		c.nodes = 100;
		c.edges = 1000;
		c.aggregation = HG_AGGREGATION_AUTO;
		c.uses = uses;
		c.width = 1 + uses / 16;
		CHECK_OK(hg_graph_stream_create(ctx, &c, &stream));
		const hg_aggregation chosen = hg_graph_stream_aggregation(stream);
		CHECK(chosen == HG_AGGREGATION_GATHER || chosen == HG_AGGREGATION_SCATTER);
		CHECK(scatters_before || chosen == HG_AGGREGATION_GATHER);
		CHECK(uses > 1 || chosen == HG_AGGREGATION_SCATTER);
		scatters_before = chosen == HG_AGGREGATION_SCATTER;
		hg_graph_stream_free(stream);
	}
	CHECK(!scatters_before);
	CHECK(hg_graph_stream_aggregation(NULL) == HG_AGGREGATION_GATHER);
	hg_context_free(ctx);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(sums_are_within_their_bounds),
	    TEST(weights_have_gradients_in_the_order_of_the_list),
	    TEST(bits_do_not_depend_on_the_order),
	    TEST(f32_of_any_size_is_summed),
	    TEST(infinities_and_nan_arrive),
	    TEST(it_takes_less_memory),
	    TEST(ops_on_rows_are_refused),
	    TEST(auto_chooses),
	};
	return RUN_TESTS(argc, argv, cases);
}
