/* Planted communities: a graph on which half precision visibly fails.
 *
 * Classes are equal in size. In a class, node k of a random order has an expected degree
 * proportional to w(k) = (k + 1)^(-2/3), so degrees follow a power law of exponent 1 + 3/2 = 2.5.
 * An edge joins two nodes drawn by w: the second comes from the class of the first with probability
 * INSIDE, else from any class. A hub is connected to every other node with probability hub_degree /
 * (n - 1), whatever its class.
 *
 *    X[i,j] = scale * (c(appearance(i), j) + NOISE * z(i,j)),   z about normal
 *
 * c is a bag of words: the first sixteenth of the features are stop words, 1 for every class; of
 * the rest, feature j is a topic word of class j mod classes, 2 there and 0 elsewhere.
 * appearance(i) is the class of i, except for a share MISLED of the nodes, which get a class drawn
 * at random. Only their neighbours reveal their class, so features alone do not solve the task, but
 * the graph does.
 *
 * Stop words make the SUM over a neighbourhood coherent: at a hub of degree D it is about D *
 * scale, beyond 65504 for D = 4000 and a scale above 16.4, while every value and every mean stays
 * within a few times `scale`. They are few, so that this common offset does not hide the
 * differences between classes: a GCN still learns at scale 32.
 *
 * The result is the same on every machine: it uses counter-based integers, and only + - * / sqrt on
 * doubles. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rng.h"
#include "graph/coo.h"

/* A GCN with 2 layers, hidden size 16 and Adam at 0.01 reaches 95 to 96 % after 100 epochs in f32
 * on the default configuration at scales 1, 16 and 32. Features alone could reach 1 - MISLED * (1 -
 * 1/classes) = 0.65. */
#define INSIDE 0.8
#define NOISE 0.4
#define MISLED 0.4

/* Streams of random numbers, one per purpose. */
enum stream {
	ORDER_STREAM,
	SPLIT_STREAM,
	EDGE_STREAM,
	HUB_STREAM,
	APPEARANCE_STREAM,
	NOISE_STREAM
};

struct planted {
	const hg_planted_config *config;
	int64_t n;
	/* [n] the node at position p; position p belongs to class p % classes and has rank p / classes
	 * in it */
	int64_t *order;
	double *cumulative; /* [ranks + 1] sums of w */
	int64_t ranks;      /* nodes of the largest class */
	char *message;
};

static uint64_t draw64(uint64_t key, int64_t index)
{
	const struct hg__rng4 r = hg__rng_quad(key, index, 0, 0);
	return (uint64_t)r.w[0] << 32 | r.w[1];
}

static double unit(uint32_t high, uint32_t low)
{
	return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* Report progress in a loop over nodes, positions or edges. The callback is called once per
 * HG__SLAB steps, which take a hundredth of a second even where every step misses the caches. */
static hg_status report_progress(const struct planted *p, const char *what, int64_t done,
                                 int64_t total)
{
	return done % HG__SLAB ? HG_OK
	                       : hg__data_step(p->config->progress, what, done, total, p->message);
}

/* items := a random permutation of 0 .. n-1 (Fisher and Yates). */
static hg_status shuffle(const struct planted *p, const char *what, int64_t *items, uint64_t key)
{
	for (int64_t i = 0; i < p->n; i++) {
		HG__TRY(report_progress(p, what, i, 2 * p->n));
		items[i] = i;
	}
	for (int64_t i = p->n - 1; i > 0; i--) {
		const int64_t j = (int64_t)(draw64(key, i) % (uint64_t)(i + 1)), item = items[i];
		HG__TRY(report_progress(p, what, 2 * p->n - 1 - i, 2 * p->n));
		items[i] = items[j];
		items[j] = item;
	}
	return HG_OK;
}

/* x^(1/3) by Newton's iteration from above. It uses only operations that IEEE rounds exactly, so
 * all machines agree, which libm's pow does not guarantee. */
static double cube_root(double x)
{
	double y = x > 1 ? x : 1;
	for (int k = 0; k < 200; k++) {
		const double next = (2 * y + x / (y * y)) / 3;
		if (next >= y)
			break;
		y = next;
	}
	return y;
}

static hg_status prepare(struct planted *p)
{
	p->n = p->config->nodes;
	p->ranks = (p->n + p->config->classes - 1) / p->config->classes;
	HG__TRY(hg__data_alloc(p->n, sizeof *p->order, "the planted order", (void **)&p->order,
	                       p->message));
	HG__TRY(hg__data_alloc(p->ranks + 1, sizeof *p->cumulative, "the planted degrees",
	                       (void **)&p->cumulative, p->message));
	HG__TRY(shuffle(p, "planting nodes", p->order, hg__rng_key(p->config->seed, ORDER_STREAM)));
	p->cumulative[0] = 0;
	for (int64_t k = 0; k < p->ranks; k++) {
		HG__TRY(report_progress(p, "planting degrees", k, p->ranks));
		const double root = cube_root((double)(k + 1));
		p->cumulative[k + 1] = p->cumulative[k] + 1 / (root * root);
	}
	return HG_OK;
}

/* The position of a node of class c, drawn with probability proportional to w by bisection in the
 * cumulative sums. */
static int64_t draw_position(const struct planted *p, int64_t c, double u)
{
	const int64_t classes = p->config->classes, size = (p->n - c + classes - 1) / classes;
	const double target = u * p->cumulative[size];
	int64_t low = 0, high = size - 1;
	while (low < high) {
		const int64_t middle = (low + high) / 2;
		if (p->cumulative[middle + 1] > target)
			high = middle;
		else
			low = middle + 1;
	}
	return low * classes + c;
}

static hg_status add_pair(struct hg__coo *coo, int64_t a, int64_t b, char *message)
{
	HG__TRY(hg__coo_add(coo, (int32_t)a, (int32_t)b, 1, message));
	return hg__coo_add(coo, (int32_t)b, (int32_t)a, 1, message);
}

/* Draw n * degree / 2 pairs. The few repeated ones are merged later, and self loops are dropped. */
static hg_status plant_edges(const struct planted *p, struct hg__coo *coo)
{
	const int64_t pairs = (int64_t)((double)p->n * p->config->degree / 2);
	const uint64_t key = hg__rng_key(p->config->seed, EDGE_STREAM);
	const uint32_t classes = (uint32_t)p->config->classes;
	for (int64_t e = 0; e < pairs; e++) {
		HG__TRY(report_progress(p, "planting edges", e, pairs));
		const struct hg__rng4 r = hg__rng_quad(key, e, 0, 0), q = hg__rng_quad(key, e, 1, 0);
		const int64_t own = r.w[0] % classes,
		              other = hg__rng_uniform(q.w[0]) < (float)INSIDE ? own : q.w[1] % classes;
		const int64_t a = p->order[draw_position(p, own, unit(r.w[1], r.w[2]))],
		              b = p->order[draw_position(p, other, unit(q.w[2], q.w[3]))];
		if (a != b)
			HG__TRY(add_pair(coo, a, b, p->message));
	}
	return HG_OK;
}

/* Hub h is node h from the end of the order, which otherwise has a low degree. */
static hg_status plant_hubs(const struct planted *p, struct hg__coo *coo)
{
	const uint64_t key = hg__rng_key(p->config->seed, HUB_STREAM);
	const double chance = p->config->hub_degree / (double)(p->n - 1);
	for (int64_t h = 0; h < p->config->hubs; h++) {
		const int64_t hub = p->order[p->n - 1 - h];
		for (int64_t v = 0; v < p->n; v += 4) {
			if (v % HG__SLAB == 0)
				HG__TRY(hg__data_step(p->config->progress, "planting hubs", h * p->n + v,
				                      p->config->hubs * p->n, p->message));
			const struct hg__rng4 r = hg__rng_quad(key, v, (uint32_t)h, 0);
			for (int64_t k = 0; k < 4 && v + k < p->n; k++)
				if (v + k != hub && (double)r.w[k] * 0x1p-32 < chance)
					HG__TRY(add_pair(coo, hub, v + k, p->message));
		}
	}
	return HG_OK;
}

/* The number of directed edges before the few repeated ones are merged. */
static double expected_edges(const hg_planted_config *c)
{
	return (double)c->nodes * c->degree + 2 * (double)c->hubs * c->hub_degree;
}

static hg_status plant_graph(const struct planted *p, hg_dataset *d)
{
	struct hg__coo coo = {.rows = p->n, .cols = p->n};
	struct hg__sparse m = {0};
	hg_status status =
	    hg__coo_reserve(&coo, (int64_t)(expected_edges(p->config) * 1.05) + 1024, 0, p->message);
	if (status == HG_OK)
		status = plant_edges(p, &coo);
	if (status == HG_OK)
		status = plant_hubs(p, &coo);
	if (status == HG_OK)
		status = hg__coo_to_sparse(&coo, HG__MERGE_SUM, &m, p->message);
	hg__coo_free(&coo);
	HG__TRY(status);
	d->nodes = p->n;
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	return HG_OK;
}

/* Standard normal to one part in a thousand: Irwin and Hall's sum of 12 uniform numbers on [0, 1)
 * minus 6. Each 32-bit word holds two 16-bit uniform numbers, exact in double. */
static double normal(uint64_t key, int64_t row, uint32_t column)
{
	uint32_t sum = 0;
	for (uint32_t k = 0; k < 2; k++) {
		const struct hg__rng4 r = hg__rng_quad(key, row, column * 2 + k, 0);
		for (int w = 0; w < 3; w++)
			sum += (r.w[w] & 0xFFFF) + (r.w[w] >> 16);
	}
	return (double)sum / 65536 - 6 + 6.0 / 65536;
}

/* The class that the features of node i show. */
static int64_t appearance_of(const struct planted *p, const hg_dataset *d, int64_t i)
{
	const struct hg__rng4 r =
	    hg__rng_quad(hg__rng_key(p->config->seed, APPEARANCE_STREAM), i, 0, 0);
	return hg__rng_uniform(r.w[0]) < (float)MISLED
	           ? (int64_t)(r.w[1] % (uint32_t)p->config->classes)
	           : d->label[i];
}

static double centroid(const hg_planted_config *config, int64_t class, int64_t feature)
{
	const int64_t stop_words = (config->features + 15) / 16;
	if (feature < stop_words)
		return 1;
	return feature % config->classes == class ? 2 : 0;
}

static hg_status plant_features(const struct planted *p, hg_dataset *d)
{
	const uint64_t key = hg__rng_key(p->config->seed, NOISE_STREAM);
	if (p->config->features == 0)
		return HG_OK;
	HG__TRY(hg__data_alloc(p->n * p->config->features, sizeof(float), "features", &d->feat,
	                       p->message));
	d->features = p->config->features;
	d->feat_dtype = HG_F32;
	const int64_t rows = d->features < HG__SLAB ? HG__SLAB / d->features : 1; /* rows of a slab */
	for (int64_t i = 0; i < d->nodes; i++) {
		const int64_t appearance = appearance_of(p, d, i);
		float *x = (float *)d->feat + i * d->features;
		if (i % rows == 0)
			HG__TRY(
			    hg__data_step(p->config->progress, "planting features", i, d->nodes, p->message));
		for (int64_t j = 0; j < d->features; j++)
			x[j] = (float)(p->config->scale * (centroid(p->config, appearance, j) +
			                                   NOISE * normal(key, i, (uint32_t)j)));
	}
	d->feat_amax = hg__data_amax(d);
	return HG_OK;
}

static hg_status plant_labels(const struct planted *p, hg_dataset *d)
{
	d->classes = p->config->classes;
	HG__TRY(hg__data_alloc(p->n, sizeof *d->label, "labels", (void **)&d->label, p->message));
	for (int64_t position = 0; position < p->n; position++) {
		HG__TRY(report_progress(p, "planting labels", position, p->n));
		d->label[p->order[position]] = (int32_t)(position % p->config->classes);
	}
	return HG_OK;
}

/* A tenth of the nodes trains, a tenth validates, the rest tests. shuffled: room for [n]. */
static hg_status draw_splits(const struct planted *p, int64_t *shuffled, uint8_t *const mask[3])
{
	HG__TRY(shuffle(p, "planting splits", shuffled, hg__rng_key(p->config->seed, SPLIT_STREAM)));
	for (int64_t i = 0; i < p->n; i++) {
		HG__TRY(report_progress(p, "planting splits", i, p->n));
		mask[i < p->n / 10 ? 0 : i < p->n / 10 * 2 ? 1 : 2][shuffled[i]] = 1;
	}
	return HG_OK;
}

static hg_status plant_splits(const struct planted *p, hg_dataset *d)
{
	int64_t *shuffled = NULL;
	uint8_t **mask[3] = {&d->train_mask, &d->val_mask, &d->test_mask};
	for (int k = 0; k < 3; k++) {
		HG__TRY(hg__data_alloc(p->n, 1, "splits", (void **)mask[k], p->message));
		memset(*mask[k], 0, (size_t)p->n);
	}
	HG__TRY(hg__data_alloc(p->n, sizeof *shuffled, "splits", (void **)&shuffled, p->message));
	const hg_status status =
	    draw_splits(p, shuffled, (uint8_t *const[3]){d->train_mask, d->val_mask, d->test_mask});
	free(shuffled);
	return status;
}

static hg_status check_config(const hg_planted_config *c, char *message)
{
	if (c->size != sizeof *c)
		return hg__data_fail(
		    message, HG_ERR_ARG,
		    "planted: config.size is %zu, expected %zu: start from HG_PLANTED_CONFIG_INIT", c->size,
		    sizeof *c);
	if (c->classes < 2 || c->classes > 1000000)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: %" PRId32 " classes, expected 2 to 1000000", c->classes);
	if (c->nodes < 10 * (int64_t)c->classes || c->nodes > INT32_MAX)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: %" PRId64 " nodes, expected at least 10 per class (%" PRId32
		                     " classes) and at most 2147483647",
		                     c->nodes, c->classes);
	if (c->features < 0 || c->features > 1000000)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: %" PRId64 " features, expected 0 to 1000000", c->features);
	if (!(c->degree > 0 && c->degree < (double)c->nodes))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: degree %g, expected more than 0 and less than the %" PRId64
		                     " nodes",
		                     c->degree, c->nodes);
	if (c->hubs < 0 || c->hubs > c->nodes)
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: %" PRId64 " hubs, expected 0 to the %" PRId64 " nodes",
		                     c->hubs, c->nodes);
	if (!(c->hub_degree >= 0 && c->hub_degree < (double)c->nodes))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: hub degree %g, expected 0 or more and less than the %" PRId64
		                     " nodes",
		                     c->hub_degree, c->nodes);
	if (!(c->scale > 0 && c->scale <= 1e30))
		return hg__data_fail(message, HG_ERR_ARG,
		                     "planted: scale %g, expected more than 0 and at most 1e30", c->scale);
	return HG_OK;
}

/* The bytes held at the two peaks, for n nodes, m edges and k classes. While edges become rows: the
 * order 8 n and the sums 8 n / k, the edge list 8 m, and of the two sorted copies two row pointers
 * 16 n and three index arrays 12 m. At the end: the order and the sums, row pointers 8 n, columns 4
 * m, labels 4 n, splits 3 n, and the features. */
static double bytes_needed(const hg_planted_config *c)
{
	const double n = (double)c->nodes, m = expected_edges(c), kept = 8 * n + 8 * n / c->classes;
	return fmax(kept + 16 * n + 20 * m, kept + 15 * n + 4 * m + 4 * n * (double)c->features);
}

/* Linux grants memory that it does not have and kills the program minutes later, when the memory is
 * used. So a configuration that cannot fit is refused at the start. */
static hg_status check_memory(const hg_planted_config *c, char *message)
{
	const long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
	const double need = bytes_needed(c), have = (double)page * (double)pages;
	if (page <= 0 || pages <= 0 || need <= have)
		return HG_OK;
	return hg__data_fail(message, HG_ERR_NOMEM,
	                     "planted: %" PRId64 " nodes, %.0f edges and %" PRId64
	                     " features need %.1f GiB of memory, this machine has %.1f GiB",
	                     c->nodes, expected_edges(c), c->features, need * 0x1p-30, have * 0x1p-30);
}

static hg_status plant(struct planted *p, hg_dataset *d)
{
	HG__TRY(prepare(p));
	HG__TRY(hg__data_copy_text("planted", &d->name, p->message));
	HG__TRY(plant_graph(p, d));
	HG__TRY(plant_labels(p, d));
	HG__TRY(plant_splits(p, d));
	HG__TRY(plant_features(p, d));
	return hg_dataset_check(d, "planted", p->message);
}

hg_status hg_dataset_planted(const hg_planted_config *config, hg_dataset **dataset, char *message)
{
	if (!config || !dataset)
		return hg__data_fail(message, HG_ERR_ARG, "planted: %s is NULL",
		                     config ? "dataset" : "config");
	*dataset = NULL;
	HG__TRY(check_config(config, message));
	HG__TRY(check_memory(config, message));
	HG__TRY(hg_dataset_new(dataset, message));
	struct planted p = {.config = config, .message = message};
	const hg_status status = plant(&p, *dataset);
	free(p.order);
	free(p.cumulative);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}
