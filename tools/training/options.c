/* The options of a training run. One table serves parsing, checking and --help. */
#include <math.h>

#include "training.h"

#define AT(field) offsetof(struct training, field)
#define PRECISIONS "fp16|fp32|fp16-discretized|fp16-naive"

/* The largest dropout, just under 1. */
#define BELOW_1 0.999999

/* Options of a single model have no default here: they stay NULL, negative or NaN, and the model's
 * own default holds. */
const struct tool_option training_options[] = {
    {"--data", "FILE.h5", "the dataset; h5convert makes one", AT(data), TOOL_TEXT},
    {"--model", "NAME", "the model", AT(model), TOOL_NAME(hg_model_names)},
    {"--precision", "NAME",
     "fp16 (default), fp32, fp16-discretized (f16 sums in scaled batches), fp16-naive (f16 sums, "
     "which overflow)",
     AT(precision), TOOL_WORD(PRECISIONS)},
    {"--unproved", "WHAT",
     "what to do with fp16 results that are not proved to fit: guard (default: a step that "
     "overflows is skipped), promote (to fp32), refuse",
     AT(unproved), TOOL_WORD("guard|promote|refuse")},
    {"--device", "NAME", "auto (default: a GPU if there is one), cpu, cuda", AT(device),
     TOOL_WORD("auto|cpu|cuda")},
    {"--layers", "N", "number of layers (2)", AT(layers), TOOL_INTEGER(1, 1000)},
    {"--hidden", "N", "width of a hidden layer (64); gat, gatv2, gt: of one head (8)", AT(hidden),
     TOOL_INTEGER(1, 1 << 20)},
    {"--heads", "N", "attention heads of a hidden layer (8)", AT(heads), TOOL_INTEGER(1, 4096),
     .only = "gat gatv2 gt"},
    {"--out-heads", "N", "heads of the last layer, averaged (1)", AT(out_heads),
     TOOL_INTEGER(1, 4096), .only = "gat gatv2"},
    {"--feature-norm", "NAME", "normalise batches (batch, default) or rows (layer)",
     AT(feature_norm), TOOL_WORD("batch|layer"), .only = "gt"},
    {"--norm", "NAME",
     "divide by the in-degree (right), by the out-degree (left), by the root of both (both, "
     "default), by the root of the in-degrees of both ends (in, as PyTorch Geometric does; the "
     "same as both if the graph is symmetric), or not (none)",
     AT(norm), TOOL_WORD("none|left|right|both|in"), .only = "gcn"},
    {"--aggregate", "NAME", "sum (default) or mean of the neighbours", AT(aggregate),
     TOOL_WORD("sum|mean"), .only = "gin"},
    {"--lambda", "X", "fixed factor on the neighbours' sum (1)", AT(lambda), TOOL_REAL(-1e30, 1e30),
     .only = "gin"},
    {"--readout", "NAME",
     "datasets of many graphs: sum (default), mean or max over each graph's nodes", AT(readout),
     TOOL_WORD("sum|mean|max")},
    {"--no-self-loops", NULL,
     "do not add a self loop to every node of a model that wants it: gcn, gat, gatv2, agnn",
     AT(no_self_loops), TOOL_FLAG},
    {"--sparse-features", "WHEN",
     "use features as a sparse matrix: auto (default: if few are non-zero), on, off",
     AT(sparse_features), TOOL_WORD("auto|on|off")},
    {"--row-normalize", "WHEN",
     "divide each node's features by their absolute sum: auto (default: for bags of words and "
     "counts; hg-train prints the reason), on, off",
     AT(row_normalize), TOOL_WORD("auto|on|off")},
    {"--dropout", "P", "before every layer (0.5; gat, gatv2 0.6)", AT(dropout),
     TOOL_REAL(0, BELOW_1)},
    {"--attention-dropout", "P", "on the attention weights (0.6; gt 0)", AT(attention_dropout),
     TOOL_REAL(0, BELOW_1), .only = "gat gatv2 gt"},
    {"--lr", "X", "learning rate of Adam (0.01)", AT(lr), TOOL_REAL(0, 1e6)},
    {"--weight-decay", "X", "L2 penalty (5e-4); for gcn on the first layer only", AT(weight_decay),
     TOOL_REAL(0, 1e6)},
    {"--clip", "X", "scale all gradients down together if their norm is larger than X (never)",
     AT(clip), TOOL_REAL(1e-30, 1e30)},
    {"--loss-scale", "X", "initial loss scale (65536); it adapts", AT(loss_scale),
     TOOL_REAL(1, 16777216)},
    {"--eager", NULL,
     "queue every kernel by itself; otherwise a GPU runs the kernels of an epoch as one CUDA graph",
     AT(eager), TOOL_FLAG},
    {"--epochs", "N", "train at most N epochs (200); an epoch is one step on all nodes", AT(epochs),
     TOOL_INTEGER(1, 100000000)},
    {"--steps", "N", "the same as --epochs", AT(epochs), TOOL_INTEGER(1, 100000000)},
    {"--seed", "S", "seed of the first run (0)", AT(seed), TOOL_INTEGER(0, TOOL_WHOLE)},
    {"--threads", "N", "CPU threads (as many as OpenMP provides)", AT(threads),
     TOOL_INTEGER(1, HG_THREADS_MAX)},
};
const size_t training_option_count = sizeof training_options / sizeof *training_options;

void training_defaults(struct training *t)
{
	*t = (struct training){
	    .precision = "fp16", .device = "auto", .sparse_features = "auto", .row_normalize = "auto"};
	t->epochs = 200;
	t->layers = t->hidden = t->heads = t->out_heads = -1;
	t->dropout = t->attention_dropout = t->lr = t->weight_decay = t->clip = t->lambda =
	    t->loss_scale = (double)NAN;
}

/* Options that the chosen model does not have are refused, because they would silently have no
 * effect. */
int training_check(struct tool_line *line, const struct training *t)
{
	if (!t->data || !t->model)
		return tool_refuse(line, "--%s is missing; --help shows an example",
		                   t->data ? "model" : "data");
	if (tool_given(line, "--epochs") && tool_given(line, "--steps"))
		return tool_refuse(line, "--steps and --epochs mean the same, expected one of them");
	const struct tool_option *misfit = tool_misfit(line, t->model);
	return misfit ? tool_refuse(line, "%s is an option of %s, but --model is %s", misfit->name,
	                            misfit->only, t->model)
	              : 0;
}
