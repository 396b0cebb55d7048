#include "options.h"

#include <stdio.h>
#include <string.h>

#include "about.h"
#include "commandline.h"
#include "graphs.h"
#include "halfgraph/group.h"
#include "halfgraph/model.h"
#include "tool.h"

/* The command line, from a table. */

/* Read up to MOST integers separated by commas. */
static int list_read(struct tool_line *line, const struct tool_option *o, const char *text)
{
	struct options *to = line->to;
	int64_t *values = (int64_t *)(void *)((char *)to + o->offset);
	int *count = (int *)(void *)((char *)to + o->count);
	const char *at = text;
	for (*count = 0; *count == 0 || *at == ','; ++*count) {
		if (*count == MOST)
			return tool_refuse(line, "%s has more than %d values", o->name, MOST);
		if (tool_whole(line, o, text, at + (*count > 0), ',', &values[*count], &at))
			return -1;
	}
	return 0;
}

static int policies_read(struct tool_line *line, const struct tool_option *o, const char *text)
{
	struct options *to = line->to;
	const char *at = text;
	for (to->policies = 0; to->policies == 0 || *at == ','; to->policies++) {
		char name[32];
		at += to->policies > 0;
		const size_t length = strcspn(at, ",");
		snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), at);
		if (to->policies == MOST)
			return tool_refuse(line, "%s has more than %d values", o->name, MOST);
		if (hg_policy_parse(name, &to->policy[to->policies]) < 0)
			return tool_refuse(line,
			                   "%s is \"%s\", expected some of fp16, fp32, fp16-discretized, "
			                   "fp16-naive, separated by commas",
			                   o->name, text);
		at += length;
	}
	return 0;
}

const char *const attention_scores[HG_SCORE_COUNT] = {
    [HG_SCORE_ADD] = "add",
    [HG_SCORE_DOT] = "dot",
    [HG_SCORE_COSINE] = "cosine",
    [HG_SCORE_ADD_V2] = "add-v2",
};
#define SCORES_ALL ((1u << HG_SCORE_COUNT) - 1)

/* The score with this name of `length` letters, as a bit; 0: there is none. */
static unsigned score_named(const char *name, size_t length)
{
	for (int k = 0; k < HG_SCORE_COUNT; k++)
		if (strlen(attention_scores[k]) == length &&
		    strncmp(name, attention_scores[k], length) == 0)
			return 1u << k;
	return length == 3 && strncmp(name, "all", 3) == 0 ? SCORES_ALL : 0;
}

static int scores_read(struct tool_line *line, const struct tool_option *o, const char *text)
{
	struct options *to = line->to;
	const char *at = text;
	for (to->scores = 0; to->scores == 0 || *at == ',';) {
		at += to->scores != 0;
		const size_t length = strcspn(at, ",");
		const unsigned score = score_named(at, length);
		if (!score)
			return tool_refuse(line,
			                   "%s is \"%s\", expected some of add, dot, cosine, add-v2, separated "
			                   "by commas, or all",
			                   o->name, text);
		to->scores |= score;
		at += length;
	}
	return 0;
}

const struct tool_row command_names[COMMANDS] = {
    {"spmm", "one aggregation, Y = A X, beside the gather ceiling of this device"},
    {"sddmm", "a number for each edge from the rows of its ends: dot product, and sum"},
    {"gemm", "the dense products of a layer: forward, dX, dW"},
    {"edge-softmax", "softmax over the edges of each row, forward and backward"},
    {"attention",
     "aggregation by a softmax of scores, forward and backward, beside as many gathers"},
    {"epoch", "whole training epochs: time, time of each pass and op, memory beside the plan"},
    {"step", "the same where a step is short: on cora-like, many steps a sample"},
    {"batches", "shuffled epochs of batches of graphs, beside the time of their steps alone"},
    {"group", "training steps of several models together, beside those of one alone"},
    {"convert", "a list of edges in any order becomes a graph, in device memory"},
    {"ops", "every op of the library on its first sample, forward and backward (its results are "
            "checked by the tests, not here)"},
};

/* The synthetic graphs of --graph. */
static const char *const *graph_names(void)
{
	enum { GRAPHS = 32 };
	static const char *name[GRAPHS + 1]; /* the last one stays NULL */
	int count;
	const struct named_graph *graph = graph_list(&count);
	for (int k = 0; k < count && k < GRAPHS; k++)
		name[k] = graph[k].name;
	return name;
}

#define AT(field) offsetof(struct options, field)
static const struct tool_option table[] = {
    {"--graph", "NAME|FILE.h5",
     "a synthetic graph (below) or a dataset's graph (tiny; step, group: cora-like; batches: "
     "qm9-like)",
     AT(graph), TOOL_TEXT, .offer_names = graph_names},
    {"--features", "LIST",
     "widths over all heads (32,64,128; attention: 64,128), convert: of its sums; epoch, step, "
     "batches, convert and gemm: of the input (the graph's own)",
     AT(features), .read = list_read, .low = 1, .high = 1 << 16, .count = AT(widths),
     .only = "spmm sddmm gemm attention epoch step batches group convert ops"},
    {"--heads", "LIST",
     "attention heads (1,4; attention: 1,8; epoch, step and batches: 1); spmm: edge weights per "
     "head as an operand",
     AT(heads), .read = list_read, .low = 1, .high = 64, .count = AT(head_counts),
     .only = "spmm sddmm edge-softmax attention epoch step batches group ops"},
    {"--score", "LIST",
     "how attention scores an edge: some of add (GAT), dot (graph transformer), cosine (AGNN), "
     "add-v2 (GATv2), or all (default)",
     AT(scores), .read = scores_read, .offer = "add|dot|cosine|add-v2|all", .only = "attention"},
    {"--dropout", "P",
     "the probability that attention drops a weight, and epoch, step and batches also a feature "
     "(0)",
     AT(dropout), TOOL_REAL(0, 0.999), .only = "attention epoch step batches group"},
    {"--readout", "NAME",
     "classify graphs by the sum, mean or max over the nodes of the last layer, in place of nodes "
     "(none; batches: mean)",
     AT(readout), TOOL_CHOICE("none|sum|mean|max"), .only = "epoch step batches group"},
    {"--separate", NULL,
     "cosine and add-v2: Q, K and V are three matrices; otherwise they are one in cosine, and K is "
     "V in add-v2, as in the models",
     AT(separate), TOOL_FLAG, .only = "attention"},
    {"--features-on-host", NULL, "keep features in host memory, where a GPU reads those of a batch",
     AT(on_host), TOOL_FLAG, .only = "batches"},
    {"--reorder", "METHOD",
     "order of the nodes: auto, community, leading, rcm, degree, or original, which only measures "
     "the current one",
     AT(reorder), TOOL_ORDER, .only = "spmm sddmm attention epoch step group"},
    {"--precision", "LIST", "some of fp16 (default), fp32, fp16-discretized, fp16-naive",
     AT(policy), .read = policies_read, .offer = "fp16|fp32|fp16-discretized|fp16-naive"},
    {"--variant", "NAME|all",
     "variant of the kernel, of dot products for sddmm (--variant list prints them)", AT(variant),
     TOOL_TEXT, .offer = "all|list", .only = "spmm sddmm"},
    {"--algorithms", NULL,
     "measure each product also with every algorithm that the library proposes", AT(algorithms),
     TOOL_FLAG, .only = "gemm"},
    {"--weights", NULL, "give each edge of the graph an f32 weight", AT(weights), TOOL_FLAG,
     .only = "spmm attention"},
    {"--norm", "NAME", "degree normalisation: right (default, the mean), none, left, both, in",
     AT(norm), TOOL_CHOICE("none|left|right|both|in"), .only = "spmm"},
    {"--peer", "cusparse", "also measure cuSPARSE, in f32 and f16, with every algorithm", AT(peer),
     TOOL_TEXT, .offer = "cusparse", .only = "spmm sddmm"},
    {"--model", "NAME", "the model (gcn), or all of them", AT(model), TOOL_TEXT,
     .names = hg_model_names, .offer = "all", .only = "epoch step batches group"},
    {"--models", "LIST", "how many models train together (1,2,4,8,16,32)", AT(models),
     .read = list_read, .low = 1, .high = HG_GROUP_MOST, .count = AT(model_counts),
     .only = "group"},
    {"--branches", "N", "how many of them run beside one another (0: as many as is usual)",
     AT(branches), TOOL_INTEGER(0, HG_GROUP_MOST), .only = "group"},
    {"--batch-size", "N", "graphs of a batch (4096)", AT(batch), TOOL_INTEGER(1, 1 << 30),
     .only = "batches"},
    {"--hidden", "N", "width of the hidden layer (64)", AT(hidden), TOOL_INTEGER(1, 65536),
     .only = "gemm epoch step batches group convert"},
    {"--layers", "N", "depth of the model (2)", AT(layers), TOOL_INTEGER(1, 1000),
     .only = "epoch step batches group convert"},
    {"--aggregate", "NAME", "gin: sum (default) or mean", AT(aggregate), TOOL_CHOICE("sum|mean"),
     .only = "epoch step batches group"},
    {"--lambda", "X", "gin: factor on the neighbours' sum (1)", AT(lambda), TOOL_REAL(1e-6, 1e6),
     .only = "epoch step batches group"},
    {"--observe", "WHEN", "observe one step in 16 (on, default), each step, or none (off)",
     AT(observe), TOOL_CHOICE("on|off|each"), .only = "epoch step batches group"},
    {"--dense", NULL, "use dense features even if those of the graph are sparse", AT(dense),
     TOOL_FLAG, .only = "epoch step batches group"},
    {"--repeat", "N", "samples after three warm-up runs (7)", AT(repeat), TOOL_INTEGER(1, 100000)},
    {"--seed", "S", "seed of graph and numbers (1)", AT(seed), TOOL_INTEGER(0, TOOL_WHOLE)},
    {"--device", "NAME", "auto (default: a GPU if there is one), cpu, cuda", AT(device),
     TOOL_CHOICE("auto|cpu|cuda")},
    {"--threads", "N", "CPU threads (all)", AT(threads), TOOL_INTEGER(1, HG_THREADS_MAX)},
    {"--json", "FILE|-",
     "append one JSON object per result to FILE, which must be new or hold such lines; -: print "
     "them instead of the table",
     AT(json), TOOL_TEXT},
    {"--spoil", NULL,
     "change one number of every result before it is checked: the run must then fail", AT(spoil),
     TOOL_FLAG, .only = "spmm sddmm gemm edge-softmax attention"},
    {"--help", NULL, "print this text", AT(help), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof table[0])

static int model_exists(const char *wanted)
{
	for (const char *const *name = hg_model_names(); *name; name++)
		if (strcmp(wanted, *name) == 0)
			return 1;
	return strcmp(wanted, "all") == 0;
}

int options_have_model(const struct options *options, const char *model)
{
	return strcmp(options->model, "all") == 0 || strcmp(options->model, model) == 0;
}

/* The first operand is the command; there is no other. */
static int command_read(struct tool_line *line, const char *word)
{
	struct options *to = line->to;
	if (to->command >= 0)
		return tool_refuse(line, "unexpected argument \"%s\" after %s", word,
		                   command_names[to->command].name);
	for (int c = 0; c < COMMANDS; c++)
		if (strcmp(word, command_names[c].name) == 0)
			to->command = c;
	return to->command >= 0 ? 0 : tool_refuse(line, "cannot measure \"%s\"", word);
}

/* Check the combination of options. An option that the command does not have is refused, because it
 * would silently have no effect. */
static int check_options(struct tool_line *line, const struct options *o)
{
	char models[256];
	if (o->command < 0)
		return tool_refuse(line, "the command is missing, for example spmm");
	const char *command = command_names[o->command].name;
	const struct tool_option *misfit = tool_misfit(line, command);
	if (misfit)
		return tool_refuse(line, "%s is for %s, not for %s", misfit->name, misfit->only, command);
	if (o->peer && strcmp(o->peer, "cusparse") != 0)
		return tool_refuse(
		    line,
		    "--peer is \"%s\", expected cusparse (PyTorch Geometric: tools/peers/pyg_epoch.py, "
		    "attention.py)",
		    o->peer);
	if (o->graph && !graph_is_file(o->graph) && !graph_named(o->graph))
		return tool_refuse(
		    line, "--graph is \"%s\": no graph has that name, and a dataset's file ends in .h5",
		    o->graph);
	if (!model_exists(o->model))
		return tool_refuse(line, "--model is \"%s\", expected %s or all", o->model,
		                   tool_join(hg_model_names(), ", ", models, sizeof models));
	return 0;
}

int options_parse(int argc, char **argv, struct options *to)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = to, .operand = command_read};
	*to = (struct options){.command = -1,
	                       .variant = "auto",
	                       .model = "gcn",
	                       .hidden = 64,
	                       .layers = 2,
	                       .batch = 4096,
	                       .readout = READOUT_UNSET,
	                       .seed = 1,
	                       .norm = HG_NORM_RIGHT,
	                       .lambda = 1.0,
	                       .scores = SCORES_ALL};
	to->policy[0] = hg_policy_fp16();
	to->policies = 1;
	for (to->model_counts = 0; to->model_counts < 6; to->model_counts++)
		to->models[to->model_counts] = (int64_t)1 << to->model_counts;
	if (tool_line_read(&line, argc, argv) == 0 && (to->help || check_options(&line, to) == 0))
		return 0;
	tool_say("hg-bench", "%s", line.message);
	(void)fputs("Try hg-bench --help.\n", stderr);
	return TOOL_BAD_INPUT;
}

static int command_row(int k, struct tool_row *row)
{
	if (k >= COMMANDS)
		return 0;
	*row = command_names[k];
	return 1;
}

static int graph_row(int k, struct tool_row *row)
{
	int count;
	const struct named_graph *graph = graph_list(&count);
	if (k >= count)
		return 0;
	*row = (struct tool_row){graph[k].name, graph[k].help};
	return 1;
}

static int column_row(int k, struct tool_row *row)
{
	static const struct tool_row columns[] = {
	    {"ms", "median (least .. most) of the samples"},
	    {"TB/s", "all bytes that the op requests, those served by a cache included"},
	    {"roof", "TB/s divided by the copy rate of this device, measured in the same run"},
	    {"gather", "time divided by that of a kernel that only reads ids and gathers rows; "
	               "attention: by that of as many unweighted aggregations as the pass gathers "
	               "matrices"},
	    {"unordered", "the same for the graph in its original order, if --reorder moved its nodes"},
	    {"peer", "time of the fastest peer divided by this time"},
	    {"err/bound", "largest error divided by its bound, over about 2,000 rows in f64, the "
	                  "longest row among them"}};
	if (k >= (int)(sizeof columns / sizeof *columns))
		return 0;
	*row = columns[k];
	return 1;
}

static const struct tool_part parts[] = {
    {.title = "what", .rows = command_row, .width = 14, .before_list = 1},
    {.title = "graphs", .rows = graph_row, .width = 16},
    {.title = "columns", .rows = column_row, .width = 10}};

const struct tool_about options_about = {
    .tool = "hg-bench",
    .summary = "measure the speed of HalfGraph on this machine",
    .usage = "WHAT [options]\n",
    .text = "Measures the speed of HalfGraph on this machine. Results of kernels are checked "
            "against f64 in\n"
            "the same run.\n",
    .examples =
        "  hg-bench spmm --graph reddit-like --features 64 --peer cusparse --json results.json\n"
        "  hg-bench spmm --graph kron-21 --variant all\n"
        "  hg-bench sddmm --graph kron-21 --features 64 --heads 1 --variant all\n"
        "  hg-bench attention --graph ppa-like --score dot --features 128 --heads 1,8\n"
        "  hg-bench epoch --graph products-like --model all --precision fp16,fp32\n"
        "  hg-bench step --graph cora-like --model all\n"
        "  hg-bench batches --graph qm9-like --layers 12 --hidden 32\n",
    .part = parts,
    .parts = 3,
    .options = table,
    .count = OPTIONS,
    .codes = {.done = "done", .failed = "a result is wrong, ", .interrupted = "interrupted"},
    .words = command_row,
};
