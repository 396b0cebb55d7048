#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graphs.h"
#include "halfgraph/halfgraph.h"

static const char help[] = "hg-bench: how fast is HalfGraph here?\n"
                           "\n"
                           "  hg-bench spmm  [--graph NAME] [--features 32,64,128] [--precision P] [--weights]   one aggregation, Y = A X\n"
                           "  hg-bench epoch [--graph NAME] [--model gcn|gin|gat] [--hidden 64] [--precision P]   whole training epochs, 2 layers\n"
                           "\n"
                           "  --graph NAME       a synthetic graph (below; default tiny)      --features LIST    widths for spmm; for epoch the input width\n"
                           "  --precision P      fp16 (default), fp32, fp16-discretized, fp16-naive\n"
                           "  --device D         auto (default), cpu, cuda                    --threads N        CPU threads (default: all)\n"
                           "  --heads H          attention heads of gat (default 1)           --repeat N         timed runs (default 7); the median is quoted\n"
                           "  --json             one JSON object a line instead of the table  --seed S           of graph and features (default 1)\n"
                           "\n"
                           "Example: hg-bench spmm --graph reddit-like --features 64 --device cuda\n"
                           "\nGraphs:\n";

struct options {
	const char *what, *model;
	const struct named_graph *graph;
	hg_policy policy;
	hg_device device;
	int64_t features[8];
	int widths, hidden, heads, repeat, threads, json, weights;
	uint64_t seed;
};

static _Noreturn void usage(const char *format, ...) HG_PRINTF(1, 2);
static _Noreturn void usage(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("hg-bench: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\nTry hg-bench --help.\n", stderr);
	va_end(args);
	exit(2);
}

static void check(hg_context *ctx, hg_status status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "hg-bench: %s: %s\n", what, hg_context_error(ctx));
	exit(1);
}

static int64_t number(const char *option, const char *text, int64_t least, int64_t most)
{
	char *end;
	const long long value = strtoll(text, &end, 10);
	if (end == text || *end || value < least || value > most)
		usage("%s is \"%s\", expected a number from %" PRId64 " to %" PRId64, option, text, least, most);
	return value;
}

static void widths(struct options *o, const char *text)
{
	for (o->widths = 0; *text && o->widths < 8; o->widths++) {
		char part[24] = "";
		const size_t length = strcspn(text, ",");
		snprintf(part, sizeof part, "%.*s", (int)(length < 20 ? length : 20), text);
		o->features[o->widths] = number("--features", part, 1, 1 << 20);
		text += length + (text[length] == ',');
	}
}

static hg_device device_named(const char *name)
{
	static const char *const names[] = {"auto", "cpu", "cuda"};
	for (int i = 0; i < 3; i++)
		if (strcmp(names[i], name) == 0)
			return (hg_device)i;
	usage("--device is \"%s\", expected auto, cpu or cuda", name);
}

static void print_help(void)
{
	int count;
	const struct named_graph *graphs = graph_list(&count);
	fputs(help, stdout);
	for (int i = 0; i < count; i++)
		printf("  %-16s %s\n", graphs[i].name, graphs[i].help);
}

static struct options parse(int argc, char **argv)
{
	struct options o = {.model = "gcn", .graph = graph_named("tiny"), .policy = hg_policy_fp16(), .hidden = 64, .heads = 1, .repeat = 7, .seed = 1};
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(a, "--help") == 0) {
			print_help();
			exit(0);
		} else if (strcmp(a, "--json") == 0) {
			o.json = 1;
		} else if (strcmp(a, "--weights") == 0) {
			o.weights = 1;
		} else if (a[0] != '-' && !o.what) {
			o.what = a;
		} else if (!value) {
			usage("%s: unknown, or its value is missing", a);
		} else {
			i++;
			if (strcmp(a, "--graph") == 0 && !(o.graph = graph_named(value)))
				usage("there is no graph \"%s\"", value);
			else if (strcmp(a, "--precision") == 0 && hg_policy_parse(value, &o.policy) != HG_OK)
				usage("there is no precision \"%s\"", value);
			else if (strcmp(a, "--features") == 0)
				widths(&o, value);
			else if (strcmp(a, "--device") == 0)
				o.device = device_named(value);
			else if (strcmp(a, "--model") == 0)
				o.model = value;
			else if (strcmp(a, "--hidden") == 0)
				o.hidden = (int)number(a, value, 1, 65536);
			else if (strcmp(a, "--heads") == 0)
				o.heads = (int)number(a, value, 1, 64);
			else if (strcmp(a, "--repeat") == 0)
				o.repeat = (int)number(a, value, 1, 1000);
			else if (strcmp(a, "--threads") == 0)
				o.threads = (int)number(a, value, 1, 1024);
			else if (strcmp(a, "--seed") == 0)
				o.seed = (uint64_t)number(a, value, 0, INT64_MAX);
			else if (strcmp(a, "--graph") != 0 && strcmp(a, "--precision") != 0)
				usage("there is no option %s", a);
		}
	}
	if (!o.what)
		usage("say what to measure: spmm or epoch");
	return o;
}

static hg_graph *make_graph(hg_context *ctx, const struct options *o)
{
	const struct named_graph *g = o->graph;
	int32_t *dst = malloc((size_t)g->edges * sizeof *dst), *src = malloc((size_t)g->edges * sizeof *src);
	float *weight = o->weights ? malloc((size_t)g->edges * sizeof *weight) : NULL;
	hg_graph *graph = NULL;
	if (!dst || !src || (o->weights && !weight)) {
		fprintf(stderr, "hg-bench: no memory for %" PRId64 " edges\n", g->edges);
		exit(1);
	}
	graph_edges(g, o->seed, dst, src);
	for (int64_t e = 0; weight && e < g->edges; e++)
		weight[e] = (float)graph_uniform(o->seed + 1, (uint64_t)e);
	check(ctx, hg_graph_from_coo(ctx, g->nodes, g->nodes, g->edges, dst, src, weight, NULL, &graph), "making the graph");
	free(dst);
	free(src);
	free(weight);
	return graph;
}

static hg_tensor *make_features(hg_context *ctx, const struct options *o, int64_t cols)
{
	const int64_t rows = o->graph->nodes;
	float *host = malloc((size_t)(rows * cols) * sizeof *host);
	hg_tensor *x = NULL;
	if (!host) {
		fprintf(stderr, "hg-bench: no memory for [%" PRId64 ", %" PRId64 "] features\n", rows, cols);
		exit(1);
	}
	for (int64_t i = 0; i < rows * cols; i++)
		host[i] = (float)(2 * graph_uniform(o->seed + 2, (uint64_t)i) - 1);
	check(ctx, hg_tensor_create(ctx, o->policy.state, rows, cols, &x), "features");
	check(ctx, hg_tensor_upload(x, host, HG_F32), "features");
	free(host);
	return x;
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct timing {
	double median, least, most;
};

/* Each sample is a batch of runs long enough (about 20 ms) that the clock and the launch do not count. */
static struct timing measure(hg_context *ctx, hg_tape *tape, int repeat)
{
	double *ms = calloc((size_t)repeat, sizeof *ms);
	int runs = 1;
	for (int warm = 0; warm < 3; warm++) {
		const double begin = now_ms();
		check(ctx, hg_tape_forward(tape), "running");
		check(ctx, hg_context_synchronize(ctx), "running");
		const double one = now_ms() - begin;
		runs = one < 20 ? (int)(20 / (one > 0.02 ? one : 0.02)) : 1;
	}
	for (int i = 0; ms && i < repeat; i++) {
		const double begin = now_ms();
		for (int r = 0; r < runs; r++)
			check(ctx, hg_tape_forward(tape), "running");
		check(ctx, hg_context_synchronize(ctx), "running");
		ms[i] = (now_ms() - begin) / runs;
	}
	struct timing t = {0, 0, 0};
	if (ms) {
		qsort(ms, (size_t)repeat, sizeof *ms, ascending);
		t = (struct timing){ms[repeat / 2], ms[0], ms[repeat - 1]};
	}
	free(ms);
	return t;
}

static void bench_spmm(hg_context *ctx, const struct options *o, hg_graph *graph, int64_t cols)
{
	hg_tensor *x = make_features(ctx, o, cols);
	hg_params *params = NULL;
	hg_tape *tape = NULL;
	check(ctx, hg_params_create(ctx, &o->policy, &params), "policy");
	check(ctx, hg_tape_create(params, HG_EVAL, &tape), "tape");
	const hg_var y = hg_spmm(tape, graph, hg_tape_input(tape, x, "x", 1.0), HG_NONE, HG_NORM_RIGHT, 1.0f);
	check(ctx, hg_tape_compile(tape, y), "compiling");
	const struct timing t = measure(ctx, tape, o->repeat);
	const double m = (double)hg_graph_edges(graph), n = (double)hg_graph_rows(graph), size = (double)hg_dtype_size(o->policy.state);
	/* gathered rows, column ids, row pointers, output */
	const double bytes = m * ((double)cols * size + 4 + (o->weights ? size : 0)) + n * ((double)cols * size + 8);
	printf(o->json ? "{\"bench\":\"spmm\",\"graph\":\"%s\",\"precision\":\"%s\",\"features\":%" PRId64
	                 ",\"ms\":%.4f,\"ms_min\":%.4f,\"ms_max\":%.4f,\"gathered_tb_s\":%.3f}\n"
	               : "spmm %-15s %-16s F %-4" PRId64 " %9.4f ms  (%.4f .. %.4f)  %.3f TB/s gathered\n",
	       o->graph->name, o->policy.name, cols, t.median, t.least, t.most, bytes / t.median * 1e-9);
	hg_tape_free(tape);
	hg_params_free(params);
	hg_tensor_free(x);
}

static void bench_epoch(hg_context *ctx, const struct options *o, hg_graph *graph)
{
	const struct named_graph *g = o->graph;
	hg_train_config config = hg_train_config_default(o->model);
	config.model.in_features = o->widths ? o->features[0] : g->features;
	config.model.out_features = g->classes;
	config.model.layers = 2;
	config.model.heads = o->heads;
	config.model.hidden = o->hidden / (strcmp(o->model, "gat") == 0 ? o->heads : 1);
	config.model.dropout = config.model.attention_dropout = 0.0f;
	config.policy = o->policy;
	config.epochs = o->repeat + 3;
	config.patience = 0;
	config.eval_every = config.epochs;
	int32_t *label = malloc((size_t)g->nodes * sizeof *label);
	uint8_t *mask = malloc((size_t)g->nodes);
	for (int64_t i = 0; label && mask && i < g->nodes; i++) {
		label[i] = (int32_t)(graph_uniform(o->seed + 3, (uint64_t)i) * g->classes);
		mask[i] = 1;
	}
	hg_tensor *x = make_features(ctx, o, config.model.in_features);
	hg_train_data data = HG_TRAIN_DATA_INIT;
	data.input.graph = graph;
	data.input.x = x;
	data.input.x_amax = 1.0;
	data.labels = label;
	data.train_mask = mask;
	hg_train *train = NULL;
	hg_train_report report = HG_TRAIN_REPORT_INIT;
	check(ctx, hg_train_create(ctx, &config, &data, &train), "training");
	check(ctx, hg_train_run(train, &report), "training");
	printf(o->json ? "{\"bench\":\"epoch\",\"model\":\"%s\",\"graph\":\"%s\",\"precision\":\"%s\",\"hidden\":%d,\"ms\":%.4f,\"peak_mib\":%.1f,\"loss\":%.4f}\n"
	               : "epoch %-4s %-15s %-16s hidden %-4d %9.4f ms  peak %.1f MiB  loss %.4f\n",
	       o->model, g->name, o->policy.name, o->hidden, report.epoch_ms_median, (double)report.peak_bytes / 1048576, report.final_loss);
	hg_train_free(train);
	hg_tensor_free(x);
	free(label);
	free(mask);
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	const int spmm = strcmp(o.what, "spmm") == 0;
	if (!spmm && strcmp(o.what, "epoch") != 0)
		usage("cannot measure \"%s\": spmm or epoch", o.what);
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = o.device;
	config.threads = o.threads;
	config.seed = o.seed;
	hg_context *ctx = NULL;
	check(NULL, hg_context_create(&config, &ctx), "device");
	if (!o.json)
		printf("# HalfGraph %s on %s\n", hg_version_string(), hg_context_device_name(ctx));
	hg_graph *graph = make_graph(ctx, &o);
	if (spmm) {
		if (!o.widths)
			widths(&o, "32,64,128");
		for (int i = 0; i < o.widths; i++)
			bench_spmm(ctx, &o, graph, o.features[i]);
	} else {
		bench_epoch(ctx, &o, graph);
	}
	hg_graph_free(graph);
	hg_context_free(ctx);
	return 0;
}
