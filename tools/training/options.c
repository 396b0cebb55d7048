/* The options of a training run. One table serves parsing, checking and --help. */
#include <math.h>
#include <string.h>

#include "optimizer.h"
#include "schedule.h"
#include "task.h"
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
    {"--layers", "N", "number of layers (2; sgc 1)", AT(layers), TOOL_INTEGER(1, 1000)},
    {"--hidden", "N", "width of a hidden layer (64); gat, gatv2, gt: of one head (8)", AT(hidden),
     TOOL_INTEGER(1, 1 << 20)},
    {"--heads", "N", "attention heads of a hidden layer (8; gatv2, gt: at most 16)", AT(heads),
     TOOL_INTEGER(1, 4096), .only = "gat gatv2 gt"},
    {"--out-heads", "N", "heads of the last layer, averaged (1; gatv2: at most 16)", AT(out_heads),
     TOOL_INTEGER(1, 4096), .only = "gat gatv2"},
    {"--feature-norm", "NAME", "normalise batches (batch, default) or rows (layer)",
     AT(feature_norm), TOOL_WORD("batch|layer"), .only = "gt"},
    {"--task", "NAME",
     "what is learnt: classes (of labels), labels (several, of targets that are 0 or 1), "
     "regression "
     "(of real targets); default: what the dataset holds, classes first",
     AT(task), TOOL_WORD("classes|labels|regression")},
    {"--loss", "NAME",
     "cross-entropy (of classes), bce (of labels), mse or mae (regression; default mae)", AT(loss),
     TOOL_WORD("cross-entropy|bce|mse|mae")},
    {"--class-weights", "WHAT",
     "balanced (a class counts the more the rarer it is in the training set), or a file with the "
     "weight of every class; with --loss bce: of the ones of every column",
     AT(class_weights), TOOL_TEXT, .offer = "balanced|FILE"},
    {"--label-smoothing", "X", "share of the loss that all classes have alike (0)",
     AT(label_smoothing), TOOL_REAL(0, BELOW_1)},
    {"--raw-targets", NULL,
     "regression: learn targets as they are, not standardised by mean and deviation of the "
     "training "
     "set",
     AT(raw_targets), TOOL_FLAG},
    {"--fold", "F",
     "the split: fold F (from 0) of those that the dataset holds (h5convert --split folds:10) is "
     "held out, the others train",
     AT(fold), TOOL_INTEGER(0, INT32_MAX)},
    {"--validate", "WHO",
     "with folds: next (default: the next fold validates, the held-out one tests) or held-out (the "
     "held-out fold validates, and there is no test set, as in the paper on GIN)",
     AT(validate), TOOL_WORD("next|held-out")},
    {"--norm", "NAME",
     "divide by the in-degree (right), by the out-degree (left), by the root of both (both, "
     "default), by the root of the in-degrees of both ends (in, as PyTorch Geometric does; the "
     "same as both if the graph is symmetric), by sums of edge weights instead of numbers of edges "
     "(weighted: the root of those of both ends, as PyTorch Geometric does with edge weights; "
     "weighted-mean: that of the row), or not (none)",
     AT(norm), TOOL_WORD("none|left|right|both|in|weighted|weighted-mean"),
     .only = "gcn sgc appnp"},
    {"--aggregate", "NAME", "sum (default) or mean of the neighbours", AT(aggregate),
     TOOL_WORD("sum|mean"), .only = "gin gine"},
    {"--lambda", "X", "fixed factor on the neighbours' sum (1)", AT(lambda), TOOL_REAL(-1e30, 1e30),
     .only = "gin"},
    {"--hops", "N", "aggregations in a row (2; appnp 10)", AT(hops), TOOL_INTEGER(1, 1000),
     .only = "sgc appnp"},
    {"--teleport", "X", "share of the first scores in every aggregation's result (0.1)",
     AT(teleport), TOOL_REAL(0, 1), .only = "appnp"},
    {"--readout", "NAME",
     "datasets of many graphs: sum (default), mean or max over each graph's nodes", AT(readout),
     TOOL_WORD("sum|mean|max")},
    {"--readout-layers", "NAME",
     "datasets of many graphs: read out each layer (layers, default), the last one (last), or each "
     "one and the input (all)",
     AT(readout_layers), TOOL_WORD("layers|last|all")},
    {"--no-self-loops", NULL,
     "do not add a self loop to every node of a model that wants it: gcn, gat, gatv2, agnn, "
     "sgc, appnp",
     AT(no_self_loops), TOOL_FLAG},
    {"--sparse-features", "WHEN",
     "use features as a sparse matrix: auto (default: if few are non-zero), on, off",
     AT(sparse_features), TOOL_WORD("auto|on|off")},
    {"--row-normalize", "WHEN",
     "divide each node's features by their absolute sum: auto (default: for bags of words and "
     "counts; hg-train prints the reason), on, off",
     AT(row_normalize), TOOL_WORD("auto|on|off")},
    {"--dropout", "P", "before every layer (0.5; gat, gatv2 0.6; sgc 0)", AT(dropout),
     TOOL_REAL(0, BELOW_1)},
    {"--attention-dropout", "P", "on the attention weights (0.6; gt 0)", AT(attention_dropout),
     TOOL_REAL(0, BELOW_1), .only = "gat gatv2 gt"},
    {"--optimizer", "NAME",
     "adam (default), adamw (Adam with a decay of the weights themselves), sgd (by the gradient "
     "alone, or with --momentum)",
     AT(optimizer), TOOL_WORD("adam|adamw|sgd")},
    {"--momentum", "X", "--optimizer sgd: the share of its last update that is added (0)",
     AT(momentum), TOOL_REAL(0, BELOW_1)},
    {"--nesterov", NULL, "--optimizer sgd: Nesterov's form of --momentum", AT(nesterov), TOOL_FLAG},
    {"--beta1", "X", "adam, adamw: what remains of the mean gradient in a step (0.9)", AT(beta1),
     TOOL_REAL(0, BELOW_1)},
    {"--beta2", "X", "adam, adamw: what remains of the mean squared gradient in a step (0.999)",
     AT(beta2), TOOL_REAL(0, BELOW_1)},
    {"--eps", "X", "adam, adamw: added to the root that divides the update (1e-8)", AT(eps),
     TOOL_REAL(0, 1)},
    {"--lr", "X", "learning rate (0.01; sgc 0.2)", AT(lr), TOOL_REAL(0, 1e6)},
    {"--schedule", "NAME",
     "what the learning rate does: constant (default), step (drops every --lr-step epochs), cosine "
     "(down to the end of the run), one-cycle (up and down), plateau (drops when the validation "
     "metric no longer improves)",
     AT(schedule), TOOL_WORD("constant|step|cosine|one-cycle|plateau")},
    {"--warmup", "N", "epochs in which the rate first rises from 0.04 --lr (0)", AT(warmup),
     TOOL_INTEGER(0, 100000000)},
    {"--lr-step", "N", "--schedule step: epochs from one drop to the next (50)", AT(lr_step),
     TOOL_INTEGER(1, 100000000)},
    {"--lr-factor", "X", "--schedule step and plateau: the factor of a drop (0.5)", AT(lr_factor),
     TOOL_REAL(1e-30, 1)},
    {"--lr-patience", "N",
     "--schedule plateau: evaluations without improvement that are tolerated (10)", AT(lr_patience),
     TOOL_INTEGER(0, 100000000)},
    {"--lr-least", "X", "no schedule goes below X --lr (0)", AT(lr_least), TOOL_REAL(0, 1)},
    {"--weight-decay", "X",
     "L2 penalty, of adamw a decay of the weights themselves (5e-4; sgc 1e-5; appnp 5e-3); for gcn "
     "and appnp on the first layer only",
     AT(weight_decay), TOOL_REAL(0, 1e6)},
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
	t->fold = -1;
	t->layers = t->hidden = t->heads = t->out_heads = t->hops = -1;
	t->dropout = t->attention_dropout = t->lr = t->weight_decay = t->clip = t->lambda =
	    t->teleport = t->loss_scale = t->momentum = t->beta1 = t->beta2 = t->eps = t->lr_factor =
	        t->lr_least = t->label_smoothing = (double)NAN;
	t->warmup = t->lr_step = t->lr_patience = -1;
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
	if (t->validate && t->fold < 0)
		return tool_refuse(line, "--validate is for folds, and none was asked for");
	if (task_check(line, t) || optimizer_check(line, t) || schedule_check(line, t))
		return -1;
	const struct tool_option *misfit = tool_misfit(line, t->model);
	return misfit ? tool_refuse(line, "%s is an option of %s, but --model is %s", misfit->name,
	                            misfit->only, t->model)
	              : 0;
}

int training_held_out(const struct training *t)
{
	return t->validate && strcmp(t->validate, "held-out") == 0;
}
