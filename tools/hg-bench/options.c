#include "options.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

/* The command line, from a table. */

enum kind { TEXT, CHOICE, NUMBER, REAL, LIST, POLICIES, FLAG };

struct option {
	const char *name, *argument, *help;
	enum kind kind;
	size_t place;
	const char *commands; /* that have it; NULL: all */
	double low, high;     /* NUMBER, REAL, each of a LIST */
	const char *choices;  /* CHOICE: "a|b|c", stored as its number */
	size_t count;         /* LIST: where its length goes */
};

#define AT(field) offsetof(struct options, field)
static const struct option table[] = {
    {"graph", "NAME|FILE.h5", "a synthetic graph (below) or a dataset's graph (tiny; step: cora-like)", TEXT, AT(graph), NULL, 0, 0, NULL, 0},
    {"features", "LIST", "widths; epoch, step and gemm: of the input (32,64,128, or the graph's own)", LIST, AT(features), "spmm sddmm gemm epoch step ops", 1,
     1 << 16, NULL, AT(widths)},
    {"heads", "LIST", "attention heads (1,4; epoch and step: 1); spmm: weights that are an operand, for each head", LIST, AT(heads),
     "spmm sddmm edge-softmax epoch step ops", 1, 64, NULL, AT(head_counts)},
    {"reorder", "METHOD", "nodes in another order: auto, community, leading, rcm, degree, or original, which only looks at the one at hand", TEXT, AT(reorder),
     "spmm sddmm epoch step", 0, 0, NULL, 0},
    {"precision", "LIST", "of fp16 (default), fp32, fp16-discretized, fp16-naive", POLICIES, AT(policy), NULL, 0, 0, NULL, AT(policies)},
    {"variant", "NAME|all", "how the kernel sums (--variant list shows them)", TEXT, AT(variant), "spmm", 0, 0, NULL, 0},
    {"algorithms", NULL, "each product also by every algorithm that the library proposes", FLAG, AT(algorithms), "gemm", 0, 0, NULL, 0},
    {"weights", NULL, "the graph has a weight, f32, on each edge", FLAG, AT(weights), "spmm", 0, 0, NULL, 0},
    {"norm", "NAME", "degree normalisation: right (default, the mean), none, left, both", CHOICE, AT(norm), "spmm", 0, 0, "none|left|right|both", 0},
    {"peer", "cusparse", "the same by cuSPARSE, in f32 and f16, every algorithm", TEXT, AT(peer), "spmm sddmm", 0, 0, NULL, 0},
    {"model", "NAME", "gcn (default), gin, gat, or all", TEXT, AT(model), "epoch step", 0, 0, NULL, 0},
    {"hidden", "N", "width of the hidden layer (64)", NUMBER, AT(hidden), "gemm epoch step", 1, 65536, NULL, 0},
    {"layers", "N", "depth of the model (2)", NUMBER, AT(layers), "epoch step", 1, 1000, NULL, 0},
    {"aggregate", "NAME", "gin: sum (default) or mean", CHOICE, AT(aggregate), "epoch step", 0, 0, "sum|mean", 0},
    {"lambda", "X", "gin: factor on the neighbours' sum (1)", REAL, AT(lambda), "epoch step", 1e-6, 1e6, NULL, 0},
    {"dense", NULL, "dense features, also where the graph's are sparse", FLAG, AT(dense), "epoch step", 0, 0, NULL, 0},
    {"repeat", "N", "samples after three runs to warm up (7)", NUMBER, AT(repeat), NULL, 1, 100000, NULL, 0},
    {"seed", "S", "of graph and numbers (1)", NUMBER, AT(seed), NULL, 0, 9007199254740992.0, NULL, 0},
    {"device", "NAME", "auto (default: a GPU if one answers), cpu, cuda", CHOICE, AT(device), NULL, 0, 0, "auto|cpu|cuda", 0},
    {"threads", "N", "CPU threads (all)", NUMBER, AT(threads), NULL, 1, HG_THREADS_MAX, NULL, 0},
    {"json", "FILE|-", "append one JSON object for each result to FILE, which is new or has such lines; -: to stdout, in place of the table", TEXT, AT(json),
     NULL, 0, 0, NULL, 0},
    {"spoil", NULL, "change one number of every result before it is checked: the run must then fail", FLAG, AT(spoil), "spmm sddmm gemm edge-softmax", 0, 0,
     NULL, 0},
    {"help", NULL, "this page", FLAG, AT(help), NULL, 0, 0, NULL, 0},
};
#define OPTIONS (sizeof table / sizeof table[0])

static int refuse(const char *format, ...) HG_PRINTF(1, 2);
static int refuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("hg-bench: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\nTry hg-bench --help.\n", stderr);
	va_end(args);
	return 2;
}

/* Is `word` one of those in `list`, which `separator` parts? Its number, or -1. */
static int word_in(const char *list, const char *word, size_t length, char separator)
{
	for (int i = 0; *list; i++) {
		const char *end = strchr(list, separator);
		const size_t size = end ? (size_t)(end - list) : strlen(list);
		if (size == length && strncmp(list, word, length) == 0)
			return i;
		list += size + (end != NULL);
	}
	return -1;
}

/* The text up to `stop` must be a number in range; `value` is the option's whole text. */
static int number_read(const struct option *o, const char *whole, const char *text, char stop, double *value, const char **rest)
{
	char *end;
	*value = strtod(text, &end);
	const int fits = o->kind == REAL || *value == floor(*value);
	if (end == text || (*end && *end != stop) || isspace((unsigned char)*text) || !fits || !(*value >= o->low && *value <= o->high))
		return refuse("--%s is \"%s\", expected %s from %.15g to %.15g", o->name, whole, o->kind == REAL ? "a number" : "whole numbers", o->low, o->high);
	*rest = end;
	return 0;
}

static int list_read(const struct option *o, const char *text, struct options *to)
{
	int64_t *values = (int64_t *)(void *)((char *)to + o->place);
	int *count = (int *)(void *)((char *)to + o->count);
	const char *at = text;
	for (*count = 0; *count == 0 || *at == ','; ++*count) {
		double value;
		if (*count == MOST)
			return refuse("--%s has more than %d values", o->name, MOST);
		if (number_read(o, text, at + (*count > 0), ',', &value, &at))
			return 2;
		values[*count] = (int64_t)value;
	}
	return 0;
}

static int policies_read(const struct option *o, const char *text, struct options *to)
{
	const char *at = text;
	for (to->policies = 0; to->policies == 0 || *at == ','; to->policies++) {
		char name[32];
		at += to->policies > 0;
		const size_t length = strcspn(at, ",");
		snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
		if (to->policies == MOST)
			return refuse("--%s has more than %d values", o->name, MOST);
		if (hg_policy_parse(name, &to->policy[to->policies]) < 0)
			return refuse("--%s is \"%s\", expected some of fp16, fp32, fp16-discretized, fp16-naive, parted by commas", o->name, text);
		at += length;
	}
	return 0;
}

static int value_read(const struct option *o, const char *text, struct options *to)
{
	char *place = (char *)to + o->place;
	double value;
	const char *rest;
	switch (o->kind) {
	case TEXT:
		memcpy(place, &text, sizeof text);
		return 0;
	case CHOICE: {
		const int choice = word_in(o->choices, text, strlen(text), '|');
		memcpy(place, &choice, sizeof choice);
		return choice >= 0 ? 0 : refuse("--%s is \"%s\", expected one of %s", o->name, text, o->choices);
	}
	case NUMBER: {
		const int bad = number_read(o, text, text, '\0', &value, &rest);
		const int64_t whole = bad ? 0 : (int64_t)value;
		memcpy(place, &whole, sizeof whole);
		return bad;
	}
	case REAL: {
		const int bad = number_read(o, text, text, '\0', &value, &rest);
		memcpy(place, &value, sizeof value);
		return bad;
	}
	case LIST:
		return list_read(o, text, to);
	case POLICIES:
		return policies_read(o, text, to);
	case FLAG:
		break;
	}
	return 0;
}

static const struct option *option_named(const char *name)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

static int option_read(int argc, char **argv, int *i, struct options *to, unsigned *given)
{
	const struct option *o = strncmp(argv[*i], "--", 2) == 0 ? option_named(argv[*i] + 2) : NULL;
	if (!o)
		return refuse("there is no option \"%s\"", argv[*i]);
	*given |= 1u << (o - table);
	if (o->kind == FLAG) {
		const int yes = 1;
		memcpy((char *)to + o->place, &yes, sizeof yes);
		return 0;
	}
	if (*i + 1 >= argc)
		return refuse("--%s wants a value: %s", o->name, o->argument);
	++*i;
	return value_read(o, argv[*i], to);
}

/* An option that the command has no use for would change nothing in silence. */
static int options_fit(const struct command_name *command, unsigned given)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (given & 1u << i && table[i].commands && word_in(table[i].commands, command->name, strlen(command->name), ' ') < 0)
			return refuse("--%s is for %s; %s has no use for it", table[i].name, table[i].commands, command->name);
	return 0;
}

static int model_exists(const char *wanted)
{
	for (const char *const *name = hg_model_names(); *name; name++)
		if (strcmp(wanted, *name) == 0)
			return 1;
	return strcmp(wanted, "all") == 0;
}

int options_parse(int argc, char **argv, const struct command_name *commands, int count, struct options *to)
{
	unsigned given = 0;
	*to = (struct options){.command = -1, .variant = "auto", .model = "gcn", .hidden = 64, .layers = 2, .seed = 1, .norm = HG_NORM_RIGHT, .lambda = 1.0};
	to->policy[0] = hg_policy_fp16();
	to->policies = 1;
	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-' || to->command >= 0) {
			if (option_read(argc, argv, &i, to, &given))
				return 2;
			continue;
		}
		for (int c = 0; c < count; c++)
			if (strcmp(argv[i], commands[c].name) == 0)
				to->command = c;
		if (to->command < 0)
			return refuse("cannot measure \"%s\"", argv[i]);
	}
	if (to->help)
		return 0;
	if (to->command < 0)
		return refuse("say what to measure, such as spmm");
	if (to->peer && strcmp(to->peer, "cusparse") != 0)
		return refuse("--peer is \"%s\", expected cusparse (PyTorch Geometric: tools/peers/pyg_epoch.py)", to->peer);
	if (to->graph && !graph_is_file(to->graph) && !graph_named(to->graph))
		return refuse("--graph is \"%s\": no graph has that name, and a dataset's file ends in .h5", to->graph);
	if (to->reorder && !reorder_known(to->reorder))
		return refuse("--reorder is \"%s\", expected auto, community, leading, rcm, degree or original", to->reorder);
	if (!model_exists(to->model))
		return refuse("--model is \"%s\", expected gcn, gin, gat or all", to->model);
	return options_fit(&commands[to->command], given);
}

void options_help(const struct command_name *commands, int count)
{
	int graphs;
	const struct named_graph *graph = graph_list(&graphs);
	fputs("hg-bench: how fast is HalfGraph here? Kernels are checked against f64 in the same run.\n\nUsage: hg-bench WHAT [options]\n\n", stdout);
	for (int i = 0; i < count; i++)
		printf("  %-14s %s\n", commands[i].name, commands[i].help);
	fputs("\nOptions:\n", stdout);
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[40];
		snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-22s %s\n", left, table[i].help);
	}
	fputs("\nGraphs:\n", stdout);
	for (int i = 0; i < graphs; i++)
		printf("  %-16s %s\n", graph[i].name, graph[i].help);
	fputs("\nColumns: median (least .. most) of the samples; TB/s of all bytes the op asks for, rows that a cache serves included; roof = TB/s over the copy "
	      "rate\n"
	      "of this device, measured in the same run; gather = time over that of a kernel that only reads ids and gathers rows; unordered = the same\n"
	      "of the graph as it came, where --reorder moved its nodes; peer = time of the fastest peer "
	      "over\n"
	      "this one's; err/bound = largest error over its bound, about 2,000 rows in f64, the longest row among them.\n"
	      "\nExit codes: 0 done, 1 a wrong result, or the library or the machine failed, 2 bad usage or bad input.\n"
	      "\nExamples:\n"
	      "  hg-bench spmm --graph reddit-like --features 64 --peer cusparse --json results.json\n"
	      "  hg-bench spmm --graph kron-21 --variant all\n"
	      "  hg-bench epoch --graph products-like --model all --precision fp16,fp32\n"
	      "  hg-bench step --graph cora-like --model all\n",
	      stdout);
}
