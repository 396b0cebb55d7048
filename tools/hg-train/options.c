/* The options are a table: parsing, checking and --help all read it. */
#include "options.h"

#include <math.h>

#include "commandline.h"
#include "halfgraph/context.h"
#include "halfgraph/step.h"

#define AT(field) offsetof(struct options, field)
#define MODELS "gcn|gin|gat"
#define PRECISIONS "fp16|fp32|fp16-discretized|fp16-naive"

/* Just under 1, the largest dropout a float can name. */
#define BELOW_1 0.999999

/* An option of one model alone is not given by default: NULL, below 0 or NaN, and the model's own default holds. */
static const struct tool_option table[] = {
    {"--data", "FILE.h5", "the dataset; h5convert makes one", AT(data), TOOL_TEXT},
    {"--model", "NAME", "gcn, gin or gat", AT(model), TOOL_WORD(MODELS)},
    {"--precision", "NAME", "fp16 (default), fp32, fp16-discretized (f16 sums in scaled batches), fp16-naive (what breaks)", AT(precision),
     TOOL_WORD(PRECISIONS)},
    {"--device", "NAME", "auto (default: a GPU if one answers), cpu, cuda", AT(device), TOOL_WORD("auto|cpu|cuda")},
    {"--layers", "N", "depth (2)", AT(layers), TOOL_INTEGER(1, 1000)},
    {"--hidden", "N", "width of a hidden layer (64); gat: of one head (8)", AT(hidden), TOOL_INTEGER(1, 1 << 20)},
    {"--heads", "N", "attention heads of a hidden layer (8)", AT(heads), TOOL_INTEGER(1, 4096), .only = "gat"},
    {"--out-heads", "N", "heads of the last layer, averaged (1)", AT(out_heads), TOOL_INTEGER(1, 4096), .only = "gat"},
    {"--norm", "NAME", "divide by the in-degree (right), the out-degree (left), the root of both (both, default), or not (none)", AT(norm),
     TOOL_WORD("none|left|right|both"), .only = "gcn"},
    {"--aggregate", "NAME", "sum (default) or mean of the neighbours", AT(aggregate), TOOL_WORD("sum|mean"), .only = "gin"},
    {"--lambda", "X", "fixed factor on the neighbours' sum (1)", AT(lambda), TOOL_REAL(-1e30, 1e30), .only = "gin"},
    {"--readout", "NAME", "datasets of many graphs: sum (default), mean or max over each graph's nodes", AT(readout), TOOL_WORD("sum|mean|max")},
    {"--no-self-loops", NULL, "leave the graph as it is; gcn and gat otherwise add a loop to every node", AT(no_self_loops), TOOL_FLAG},
    {"--sparse-features", "WHEN", "keep features sparse: auto (default: when few are stored), on, off", AT(sparse_features), TOOL_WORD("auto|on|off")},
    {"--row-normalize", "WHEN", "divide each node's features by their absolute sum: auto (default: when stored sparse, as bags of words are), on, off",
     AT(row_normalize), TOOL_WORD("auto|on|off")},
    {"--dropout", "P", "before every layer (0.5; gat 0.6)", AT(dropout), TOOL_REAL(0, BELOW_1)},
    {"--attention-dropout", "P", "on the attention weights (0.6)", AT(attention_dropout), TOOL_REAL(0, BELOW_1), .only = "gat"},
    {"--lr", "X", "learning rate of Adam (0.01)", AT(lr), TOOL_REAL(0, 1e6)},
    {"--weight-decay", "X", "L2 penalty (5e-4); gcn: on the first layer only", AT(weight_decay), TOOL_REAL(0, 1e6)},
    {"--loss-scale", "X", "initial loss scale (65536); it adapts", AT(loss_scale), TOOL_REAL(1, 16777216)},
    {"--epochs", "N", "at most so many (200)", AT(epochs), TOOL_INTEGER(1, 100000000)},
    {"--patience", "N", "stop after N epochs without a better validation accuracy or loss; 0 (default): never", AT(patience), TOOL_INTEGER(0, 100000000)},
    {"--eval-every", "N", "look at the validation and test sets every N epochs (1)", AT(eval_every), TOOL_INTEGER(1, 100000000)},
    {"--together", "N", "epochs in one launch, at most as many as --eval-every says (a GPU: about a millisecond's worth; else 1)", AT(together),
     TOOL_INTEGER(1, HG_STEP_REMEMBERED)},
    {"--eager", NULL, "queue every kernel by itself; a GPU otherwise gets an epoch's kernels as one CUDA graph", AT(eager), TOOL_FLAG},
    {"--seed", "S", "seed of the first run (0)", AT(seed), TOOL_INTEGER(0, TOOL_WHOLE)},
    {"--seeds", "K", "train K times, with seeds S, S+1, ..., and report mean and deviation (1)", AT(seeds), TOOL_INTEGER(1, 100000)},
    {"--threads", "N", "CPU threads (as many as OpenMP gives)", AT(threads), TOOL_INTEGER(1, HG_THREADS_MAX)},
    {"--json", "FILE", "write one JSON object per epoch and a last one with \"event\":\"summary\"; - for standard output", AT(json), TOOL_TEXT},
    {"--print-plan", NULL, "show the tape first: nodes, types, verdicts, memory", AT(print_plan), TOOL_FLAG},
    {"--help", NULL, "this page", AT(help), TOOL_FLAG},
    {"--version", NULL, "the library's version", AT(version), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof *table)

/* What the chosen model has no use for is refused: it would change nothing in silence. */
static int check(struct tool_line *line, const struct options *o)
{
	if (!o->data || !o->model)
		return tool_refuse(line, "--%s is missing; --help shows an example", o->data ? "model" : "data");
	const struct tool_option *misfit = tool_misfit(line, o->model);
	return misfit ? tool_refuse(line, "%s is an option of %s, and --model is %s", misfit->name, misfit->only, o->model) : 0;
}

int options_parse(struct options *o, int argc, char **argv, char *message, size_t size)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = o};
	*o = (struct options){.precision = "fp16", .device = "auto", .sparse_features = "auto", .row_normalize = "auto", .seeds = 1, .eval_every = 1};
	o->layers = o->hidden = o->heads = o->out_heads = o->epochs = o->patience = o->together = -1;
	o->dropout = o->attention_dropout = o->lr = o->weight_decay = o->lambda = o->loss_scale = (double)NAN;
	int bad = tool_line_read(&line, argc, argv);
	if (!bad && !o->help && !o->version)
		bad = check(&line, o);
	(void)snprintf(message, size, "%s", line.message);
	return bad;
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
	tool_options_print(out, table, OPTIONS, 1);
	fputs("\n"
	      "A step whose gradients overflow is skipped and the loss scale lowered: that is normal for the first few steps.\n"
	      "Ctrl-C ends the training and still prints the summary.\n"
	      "\n"
	      "exit code: 0 done, 1 the library or the machine failed, 2 bad usage or bad input, 130 interrupted\n",
	      out);
}
