/* The options are a table: parsing, checking and --help all read it. */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "halfgraph/context.h"
#include "halfgraph/step.h"

enum kind { TEXT, CHOICE, INTEGER, REAL, FLAG };

/* An option of one model alone is not given by default: NULL, below 0 or NaN, so that giving it to another model is noticed. */
struct option {
	const char *name, *argument, *help;
	enum kind kind;
	size_t place;        /* in struct options */
	double low, high;    /* INTEGER, REAL: both included */
	const char *choices; /* CHOICE: "a|b|c" */
	const char *model;   /* the only one that has it; NULL: all */
};

#define AT(field) offsetof(struct options, field)
#define MODELS "gcn|gin|gat"
#define PRECISIONS "fp16|fp32|fp16-discretized|fp16-naive"

/* Just under 1, the largest dropout a float can name. */
#define BELOW_1 0.999999

static const struct option table[] = {
    {"data", "FILE.h5", "the dataset; h5convert makes one", TEXT, AT(data), 0, 0, NULL, NULL},
    {"model", "NAME", "gcn, gin or gat", CHOICE, AT(model), 0, 0, MODELS, NULL},
    {"precision", "NAME", "fp16 (default), fp32, fp16-discretized (f16 sums in scaled batches), fp16-naive (what breaks)", CHOICE, AT(precision), 0, 0,
     PRECISIONS, NULL},
    {"device", "NAME", "auto (default: a GPU if one answers), cpu, cuda", CHOICE, AT(device), 0, 0, "auto|cpu|cuda", NULL},
    {"layers", "N", "depth (2)", INTEGER, AT(layers), 1, 1000, NULL, NULL},
    {"hidden", "N", "width of a hidden layer (64); gat: of one head (8)", INTEGER, AT(hidden), 1, 1 << 20, NULL, NULL},
    {"heads", "N", "attention heads of a hidden layer (8)", INTEGER, AT(heads), 1, 4096, NULL, "gat"},
    {"out-heads", "N", "heads of the last layer, averaged (1)", INTEGER, AT(out_heads), 1, 4096, NULL, "gat"},
    {"norm", "NAME", "divide by the in-degree (right), the out-degree (left), the root of both (both, default), or not (none)", CHOICE, AT(norm), 0, 0,
     "none|left|right|both", "gcn"},
    {"aggregate", "NAME", "sum (default) or mean of the neighbours", CHOICE, AT(aggregate), 0, 0, "sum|mean", "gin"},
    {"lambda", "X", "fixed factor on the neighbours' sum (1)", REAL, AT(lambda), -1e30, 1e30, NULL, "gin"},
    {"readout", "NAME", "datasets of many graphs: sum (default), mean or max over each graph's nodes", CHOICE, AT(readout), 0, 0, "sum|mean|max", NULL},
    {"no-self-loops", NULL, "leave the graph as it is; gcn and gat otherwise add a loop to every node", FLAG, AT(no_self_loops), 0, 0, NULL, NULL},
    {"sparse-features", "WHEN", "keep features sparse: auto (default: when few are stored), on, off", CHOICE, AT(sparse_features), 0, 0, "auto|on|off", NULL},
    {"row-normalize", "WHEN", "divide each node's features by their absolute sum: auto (default: when stored sparse, as bags of words are), on, off", CHOICE,
     AT(row_normalize), 0, 0, "auto|on|off", NULL},
    {"dropout", "P", "before every layer (0.5; gat 0.6)", REAL, AT(dropout), 0, BELOW_1, NULL, NULL},
    {"attention-dropout", "P", "on the attention weights (0.6)", REAL, AT(attention_dropout), 0, BELOW_1, NULL, "gat"},
    {"lr", "X", "learning rate of Adam (0.01)", REAL, AT(lr), 0, 1e6, NULL, NULL},
    {"weight-decay", "X", "L2 penalty (5e-4); gcn: on the first layer only", REAL, AT(weight_decay), 0, 1e6, NULL, NULL},
    {"loss-scale", "X", "initial loss scale (65536); it adapts", REAL, AT(loss_scale), 1, 16777216, NULL, NULL},
    {"epochs", "N", "at most so many (200)", INTEGER, AT(epochs), 1, 100000000, NULL, NULL},
    {"patience", "N", "stop after N epochs without a better validation accuracy or loss; 0 (default): never", INTEGER, AT(patience), 0, 100000000, NULL, NULL},
    {"eval-every", "N", "look at the validation and test sets every N epochs (1)", INTEGER, AT(eval_every), 1, 100000000, NULL, NULL},
    {"together", "N", "epochs in one launch, at most as many as --eval-every says (a GPU: about a millisecond's worth; else 1)", INTEGER, AT(together), 1,
     HG_STEP_REMEMBERED, NULL, NULL},
    {"eager", NULL, "queue every kernel by itself; a GPU otherwise gets an epoch's kernels as one CUDA graph", FLAG, AT(eager), 0, 0, NULL, NULL},
    {"seed", "S", "seed of the first run (0)", INTEGER, AT(seed), 0, 9007199254740992.0, NULL, NULL},
    {"seeds", "K", "train K times, with seeds S, S+1, ..., and report mean and deviation (1)", INTEGER, AT(seeds), 1, 100000, NULL, NULL},
    {"threads", "N", "CPU threads (as many as OpenMP gives)", INTEGER, AT(threads), 1, HG_THREADS_MAX, NULL, NULL},
    {"json", "FILE", "write one JSON object per epoch and a last one with \"event\":\"summary\"; - for standard output", TEXT, AT(json), 0, 0, NULL, NULL},
    {"print-plan", NULL, "show the tape first: nodes, types, verdicts, memory", FLAG, AT(print_plan), 0, 0, NULL, NULL},
    {"help", NULL, "this page", FLAG, AT(help), 0, 0, NULL, NULL},
    {"version", NULL, "the library's version", FLAG, AT(version), 0, 0, NULL, NULL},
};
#define OPTIONS (sizeof table / sizeof *table)

static const struct option *option_find(const char *name, size_t length)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
			return &table[i];
	return NULL;
}

static int is_choice(const char *choices, const char *text)
{
	const size_t length = strlen(text);
	for (const char *at = choices; at; at = strchr(at, '|')) {
		at += *at == '|';
		if (length && strncmp(at, text, length) == 0 && (at[length] == '|' || !at[length]))
			return 1;
	}
	return 0;
}

static int number_parse(const struct option *option, const char *text, void *place, char *message, size_t size)
{
	char *end;
	errno = 0;
	const double real = option->kind == REAL ? strtod(text, &end) : (double)strtoll(text, &end, 10);
	if (end == text || *end || errno || !(real >= option->low && real <= option->high)) {
		char range[64];
		if (option->kind == REAL)
			(void)snprintf(range, sizeof range, "a number from %.8g to %.8g", option->low, option->high);
		else
			(void)snprintf(range, sizeof range, "a whole number from %lld to %lld", (long long)option->low, (long long)option->high);
		(void)snprintf(message, size, "--%s is '%s', expected %s", option->name, text, range);
		return -1;
	}
	if (option->kind == REAL)
		*(double *)place = real;
	else
		*(int64_t *)place = (int64_t)real;
	return 0;
}

static int value_parse(const struct option *option, const char *text, struct options *o, char *message, size_t size)
{
	void *place = (char *)o + option->place;
	if (option->kind == INTEGER || option->kind == REAL)
		return number_parse(option, text, place, message, size);
	if (option->kind == CHOICE && !is_choice(option->choices, text)) {
		(void)snprintf(message, size, "--%s is '%s', expected one of %s", option->name, text, option->choices);
		return -1;
	}
	if (option->kind == TEXT && !*text) {
		(void)snprintf(message, size, "--%s is empty, expected %s", option->name, option->argument);
		return -1;
	}
	*(const char **)place = text;
	return 0;
}

/* argv[*i] and, where the option takes a value that is not glued to it with '=', argv[*i + 1]. */
static int argument_parse(struct options *o, int argc, char **argv, int *i, char *message, size_t size)
{
	const char *word = argv[*i], *glued = strchr(word, '=');
	const struct option *option = NULL;
	if (strcmp(word, "-h") == 0)
		option = option_find("help", 4);
	else if (strncmp(word, "--", 2) == 0)
		option = option_find(word + 2, glued ? (size_t)(glued - word) - 2 : strlen(word) - 2);
	if (!option || (option->kind == FLAG && glued)) {
		(void)snprintf(message, size, "%s '%s'; --help lists the options", option ? "no value is taken by" : "there is no option", word);
		return -1;
	}
	if (option->kind == FLAG) {
		*(int *)(void *)((char *)o + option->place) = 1;
		return 0;
	}
	if (!glued && *i + 1 >= argc) {
		(void)snprintf(message, size, "--%s needs a value: %s", option->name, option->argument);
		return -1;
	}
	return value_parse(option, glued ? glued + 1 : argv[++*i], o, message, size);
}

static int is_given(const struct option *option, const struct options *o)
{
	const void *place = (const char *)o + option->place;
	if (option->kind == INTEGER)
		return *(const int64_t *)place >= 0;
	if (option->kind == REAL)
		return !isnan(*(const double *)place);
	return *(const char *const *)place != NULL;
}

/* What the chosen model has no use for is refused: it would change nothing in silence. */
static int models_check(const struct options *o, char *message, size_t size)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		if (!table[i].model || strcmp(table[i].model, o->model) == 0 || !is_given(&table[i], o))
			continue;
		(void)snprintf(message, size, "--%s is an option of %s, and --model is %s", table[i].name, table[i].model, o->model);
		return -1;
	}
	return 0;
}

int options_parse(struct options *o, int argc, char **argv, char *message, size_t size)
{
	*o = (struct options){.precision = "fp16", .device = "auto", .sparse_features = "auto", .row_normalize = "auto", .seeds = 1, .eval_every = 1};
	o->layers = o->hidden = o->heads = o->out_heads = o->epochs = o->patience = o->together = -1;
	o->dropout = o->attention_dropout = o->lr = o->weight_decay = o->lambda = o->loss_scale = (double)NAN;
	for (int i = 1; i < argc; i++)
		if (argument_parse(o, argc, argv, &i, message, size))
			return -1;
	if (o->help || o->version)
		return 0;
	if (o->data && o->model)
		return models_check(o, message, size);
	(void)snprintf(message, size, "--%s is missing; --help shows an example", o->data ? "model" : "data");
	return -1;
}

void options_help(FILE *out)
{
	fputs("usage: hg-train --data FILE.h5 --model gcn|gin|gat [options]\n"
	      "\n"
	      "Trains a graph neural network on all nodes at once and reports the test accuracy at the epoch with the best\n"
	      "validation accuracy. State tensors live in the chosen precision; the master weights are always fp32.\n"
	      "\n"
	      "  h5convert --from npz cora.npz -o cora.h5\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10 --precision fp32    the same, to compare\n"
	      "  hg-train --data cora.h5 --model gat --json - | jq .loss\n"
	      "\n"
	      "options:\n",
	      out);
	for (size_t i = 0; i < OPTIONS; i++) {
		char left[40];
		(void)snprintf(left, sizeof left, "--%s %s", table[i].name, table[i].argument ? table[i].argument : "");
		fprintf(out, "  %-24s %s%s%s\n", left, table[i].model ? table[i].model : "", table[i].model ? ": " : "", table[i].help);
	}
	fputs("\n"
	      "A step whose gradients overflow is skipped and the loss scale lowered: that is normal for the first few steps.\n"
	      "Ctrl-C ends the training and still prints the summary.\n"
	      "\n"
	      "exit code: 0 done, 1 the library or the machine failed, 2 bad usage or bad input, 130 interrupted\n",
	      out);
}
