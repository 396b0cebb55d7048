/* The options of hg-train alone; options of every training run are in tools/training. */
#include "options.h"

#include <string.h>

#include "config.h"
#include "halfgraph/predictor.h"
#include "tool.h"

static int read_embed(struct tool_line *line, const struct tool_option *option, const char *text);

#define AT(field) offsetof(struct options, field)

static const struct tool_option table[] = {
    {"--metric", "NAME",
     "what decides the best epoch and is reported: accuracy (default for classes), micro-f1, "
     "macro-f1, roc-auc (default for labels), average-precision, mae (default for --loss mae), "
     "rmse "
     "(default for --loss mse)",
     AT(metric), TOOL_WORD("accuracy|micro-f1|macro-f1|roc-auc|average-precision|mae|rmse")},
    {"--patience", "N",
     "stop after N epochs without a better validation metric or loss; 0 (default): never",
     AT(patience), TOOL_INTEGER(0, 100000000)},
    {"--eval-every", "N", "evaluate the validation and test sets every N epochs (1)",
     AT(eval_every), TOOL_INTEGER(1, 100000000)},
    {"--batch-size", "N",
     "datasets of many graphs: take a step on every batch of N graphs of the training set, "
     "shuffled in every epoch (all graphs in one step)",
     AT(batch_size), TOOL_INTEGER(1, INT32_MAX)},
    {"--features-on-host", NULL,
     "--batch-size: dense features and attributes of edges stay in host memory, where a GPU reads "
     "those of each batch; for datasets that device memory does not hold",
     AT(features_on_host), TOOL_FLAG},
    {"--together", "N",
     "run N epochs, with their evaluations, without waiting for the device; every N gives the same "
     "results (GPU: as many as take about a millisecond; CPU: 1)",
     AT(together), TOOL_INTEGER(1, HG_STEP_REMEMBERED)},
    {"--save", "FILE",
     "write the state after the last epoch to a checkpoint, also when interrupted; whether the "
     "file "
     "can be written is tested first",
     AT(save), TOOL_TEXT},
    {"--save-every", "N",
     "write the checkpoint of --save or --continue also during the training, N epochs after the "
     "last time (--save: never; --continue: once a minute)",
     AT(save_every), TOOL_INTEGER(1, 100000000)},
    {"--continue", "FILE",
     "resume from this checkpoint if it exists, and save it; --epochs counts the epochs of all "
     "runs. The same command, given again whenever it was killed, ends with the same bits as one "
     "run",
     AT(go_on), TOOL_TEXT},
    {"--save-best", "FILE",
     "write the model of the best epoch, to predict with, without what a run needs to go on; of "
     "several runs that of the one with the best validation metric",
     AT(save_best), TOOL_TEXT},
    {"--resume", "FILE",
     "continue from a checkpoint; epochs are counted from 1 again. With the same options the run "
     "continues bit for bit",
     AT(resume), TOOL_TEXT},
    {"--import-weights", "FILE",
     "begin with the weights of a safetensors file, such as a state dict of PyTorch Geometric "
     "(halfgraph/weights.h lists the names)",
     AT(import), TOOL_TEXT},
    {"--export-weights", "FILE",
     "write the weights of the best epoch as a safetensors file with PyTorch Geometric's names; "
     "with --checkpoint alone, those of the checkpoint",
     AT(export), TOOL_TEXT},
    {"--evaluate", "FILE.h5",
     "train nothing: print the accuracies of --checkpoint on this dataset. On the one it was "
     "trained on they are what the training reported",
     AT(evaluate), TOOL_TEXT},
    {"--predict", "FILE.h5",
     "train nothing: write what --checkpoint predicts for this dataset, which needs no labels, to "
     "-o",
     AT(predict), TOOL_TEXT},
    {"--checkpoint", "FILE", "the model of --evaluate and --predict, from --save or --save-best",
     AT(checkpoint), TOOL_TEXT},
    {"-o", "FILE",
     "the file of --predict: the id, the class and the probabilities of every node or graph; its "
     "ending is the format: .csv, .npz or .h5",
     AT(output), TOOL_TEXT},
    {"--embed", "LAYER|last",
     "with --predict: also what a layer computed, as columns e0, e1, ...: 1 is the first layer, 0 "
     "what is before it (agnn, gine, gt), last what the last linear layer reads. For graphs it is "
     "the readout of the layer; LAYER:nodes gives its nodes, to .npz or .h5",
     AT(embed), .read = read_embed, .low = 0, .high = 1000},
    {"--seeds", "K", "train K times, with seeds S, S+1, ..., and report mean and deviation (1)",
     AT(seeds), TOOL_INTEGER(1, 100000)},
    {"--folds", NULL,
     "train every fold that the dataset holds, with --seeds for every seed, and report mean and "
     "deviation over the folds: each at its own best epoch, and all at the one with the best mean "
     "validation value",
     AT(folds), TOOL_FLAG},
    {"--json", "FILE",
     "write one JSON object per epoch, then one with \"event\":\"summary\"; - for standard output",
     AT(json), TOOL_TEXT},
    {"--html", "FILE",
     "write a page about the run: settings, outcome, curves, errors by class, time by op. It needs "
     "no "
     "other file; also when interrupted",
     AT(html), TOOL_TEXT},
    {"--compare", NULL,
     "train nothing: write the page of --html about 2 to 8 runs, whose JSON lines (--json) are in "
     "the "
     "files that follow: what differs in their settings, curves over each other, outcomes",
     AT(compare), TOOL_FLAG},
    {"--trace", "FILE.json",
     "at the end time every op of a training step, and write the times as a trace for Perfetto or "
     "chrome://tracing",
     AT(trace), TOOL_TEXT},
    {"--observe", "N",
     "measure every N epochs how close every tensor comes to the limits of fp16 (16; with --doctor "
     "1); 0: never",
     AT(observe), TOOL_INTEGER(0, 100000000)},
    {"--print-plan", NULL, "print the plan first: ops, types, verdicts, memory", AT(print_plan),
     TOOL_FLAG},
    {"--explain", NULL,
     "print first which tensors can overflow fp16, the closest first, and what guards them; full: "
     "the rule of each bound",
     AT(explain), TOOL_LEVEL("full")},
    {"--doctor", NULL,
     "check every step and explain the first that goes bad; to find silent faults, also replay the "
     "steps 0, 1, 2, 4, 8, ..., the last one, and the final evaluation (hg-doctor also tries "
     "remedies)",
     AT(doctor), TOOL_FLAG},
    {"--config", "FILE",
     "take the options from a file: one JSON object with their names, without dashes, or the lines "
     "of --json, of which the last has them; those on the command line win, --flag=off for a flag",
     AT(config), TOOL_TEXT, .line_only = 1},
    {"--save-config", "FILE", "write the options of this run as such a file", AT(save_config),
     TOOL_TEXT, .line_only = 1},
    {"--help", NULL, "print this text", AT(help), TOOL_FLAG, .line_only = 1},
    {"--version", NULL, "print the version", AT(version), TOOL_FLAG, .line_only = 1},
};
#define OPTIONS (sizeof table / sizeof *table)

/* "2", "last", "last:nodes" */
static int read_embed(struct tool_line *line, const struct tool_option *option, const char *text)
{
	struct options *o = line->target;
	const char *nodes = strchr(text, ':');
	const size_t length = nodes ? (size_t)(nodes - text) : strlen(text);
	int64_t layer = HG_EMBED_LAST;
	const char *rest;
	const int last = length == 4 && strncmp(text, "last", length) == 0;
	if ((nodes && strcmp(nodes, ":nodes") != 0) ||
	    (!last && tool_whole(line, option, text, text, ':', &layer, &rest)))
		return tool_refuse(line,
		                   "--embed is \"%s\", expected a layer from 0 to 1000 or last, for nodes "
		                   "of graphs with :nodes behind it",
		                   text);
	o->embed.wanted = 1;
	o->embed.layer = (int)layer;
	o->embed.of_nodes = nodes != NULL;
	return 0;
}

/* An option of the training is refused, because it would silently have no effect: model, precision
 * and preparation of the data are those of the checkpoint. NULL: there is none. */
static const char *training_only(const struct tool_line *line)
{
	static const char *const others[] = {
	    "--evaluate", "--predict",        "--checkpoint", "-o",       "--json", "--device",
	    "--threads",  "--export-weights", "--metric",     "--config", "--embed"};
	for (size_t k = 0; k < line->count + line->shared_count; k++) {
		const char *name =
		    k < line->count ? line->options[k].name : line->shared[k - line->count].name;
		size_t i = 0;
		while (i < sizeof others / sizeof *others && strcmp(others[i], name) != 0)
			i++;
		if (i == sizeof others / sizeof *others && tool_given(line, name))
			return name;
	}
	return NULL;
}

static int check_prediction(struct tool_line *line, const struct options *o)
{
	const char *mode = o->predict    ? "--predict"
	                   : o->evaluate ? "--evaluate"
	                                 : "--checkpoint with --export-weights";
	const char *other = training_only(line);
	if (o->predict && o->evaluate)
		return tool_refuse(line, "--evaluate and --predict: expected one of them");
	if (!o->checkpoint)
		return tool_refuse(line, "%s needs --checkpoint, the model", mode);
	if (o->predict && !o->output)
		return tool_refuse(line, "--predict needs -o, the file to write");
	if (other)
		return tool_refuse(line, "%s is an option of the training, but %s trains nothing", other,
		                   mode);
	if (o->embed.wanted && !o->predict)
		return tool_refuse(line, "--embed needs --predict");
	return o->output && !o->predict ? tool_refuse(line, "-o is the file of --predict") : 0;
}

int options_train(const struct options *o)
{
	return !o->evaluate && !o->predict && !(o->checkpoint && o->export);
}

/* An option that is for one run. NULL: none was given. */
static const char *one_run_only(const struct options *o)
{
	return o->save     ? "--save"
	       : o->go_on  ? "--continue"
	       : o->resume ? "--resume"
	       : o->import ? "--import-weights"
	       : o->export ? "--export-weights"
	                   : NULL;
}

/* A file of --compare, which may stand before or after it. */
static int read_operand(struct tool_line *line, const char *word)
{
	struct options *o = line->to;
	if (o->compared == COMPARED_MOST)
		return tool_refuse(line, "--compare takes 2 to %d files, found more", COMPARED_MOST);
	o->run[o->compared++] = word;
	return 0;
}

static int check_comparison(struct tool_line *line, const struct options *o)
{
	for (size_t k = 0; k < line->count + line->shared_count; k++) {
		const char *name =
		    k < line->count ? line->options[k].name : line->shared[k - line->count].name;
		if (strcmp(name, "--compare") != 0 && strcmp(name, "--html") != 0 && tool_given(line, name))
			return tool_refuse(line, "%s is of no use to --compare, which reads runs that are over",
			                   name);
	}
	if (!o->html)
		return tool_refuse(line, "--compare needs --html, the page to write");
	return o->compared < 2 ? tool_refuse(line, "--compare takes 2 to %d files, found %d",
	                                     COMPARED_MOST, o->compared)
	                       : 0;
}

static int check_options(struct tool_line *line, const struct options *o)
{
	if (o->compare)
		return check_comparison(line, o);
	if (o->compared)
		return tool_refuse(line, "unexpected argument \"%s\"", o->run[0]);
	if (!options_train(o))
		return check_prediction(line, o);
	if (o->checkpoint || o->output)
		return tool_refuse(line, "%s needs --evaluate or --predict",
		                   o->checkpoint ? "--checkpoint" : "-o");
	if (o->embed.wanted)
		return tool_refuse(line, "--embed needs --predict");
	if (o->go_on && (o->save || o->resume || o->import))
		return tool_refuse(line, "--continue and %s: expected one of them",
		                   o->save     ? "--save"
		                   : o->resume ? "--resume"
		                               : "--import-weights");
	if (o->go_on && o->patience > 0)
		return tool_refuse(line, "--patience counts from where a run began, so that one with "
		                         "--continue would end elsewhere");
	if (o->save_every && !o->save && !o->go_on)
		return tool_refuse(line, "--save-every needs --save or --continue");
	if (o->resume && o->import)
		return tool_refuse(line, "--resume and --import-weights: expected one of them");
	if (o->folds && tool_given(line, "--fold"))
		return tool_refuse(line, "--folds and --fold: expected one of them");
	if (training_check(line, &o->training))
		return -1;
	if (o->seeds > 1 && one_run_only(o))
		return tool_refuse(line, "%s is for one run, but --seeds is %lld", one_run_only(o),
		                   (long long)o->seeds);
	if (o->batch_size > 0 && (o->doctor || o->together > 1))
		return tool_refuse(line,
		                   "%s needs steps that are the same in every epoch, and --batch-size "
		                   "makes others of them",
		                   o->doctor ? "--doctor" : "--together");
	if (o->features_on_host && o->batch_size < 1)
		return tool_refuse(line, "--features-on-host needs --batch-size");
	if (o->features_on_host && strcmp(o->training.sparse_features, "on") == 0)
		return tool_refuse(line, "--features-on-host and --sparse-features on: expected one of "
		                         "them");
	if (o->folds && one_run_only(o))
		return tool_refuse(line,
		                   "%s is for one run, but --folds trains every fold: --fold F "
		                   "trains one",
		                   one_run_only(o));
	if (o->folds && o->patience > 0)
		return tool_refuse(line, "--folds compares all folds epoch by epoch, which --patience does "
		                         "not allow");
	return o->doctor && o->together > 1
	           ? tool_refuse(line,
	                         "--doctor checks every step, which --together %lld does not allow",
	                         (long long)o->together)
	           : 0;
}

static void set_defaults(struct options *o)
{
	*o = (struct options){.config = o->config,
	                      .held = o->held,
	                      .patience = -1,
	                      .batch_size = -1,
	                      .together = -1,
	                      .observe = -1,
	                      .eval_every = 1,
	                      .seeds = 1};
	training_defaults(&o->training);
}

/* Read the command line. If it names a file of options, read that first, and the command line once
 * more on top of it. */
static int read_options(struct tool_line *line, struct options *o, int argc, char **argv)
{
	const struct tool_line fresh = *line;
	set_defaults(o);
	int bad = tool_line_read(line, argc, argv);
	if (bad || !o->config || o->help || o->version)
		return bad;
	*line = fresh;
	set_defaults(o);
	bad = tool_config_read(line, o->config, &o->held);
	return bad ? bad : tool_line_read(line, argc, argv);
}

void options_free(struct options *o)
{
	json_decref(o->given);
	json_decref(o->held);
	o->given = o->held = NULL;
}

int options_parse(struct options *o, int argc, char **argv, char *message, size_t size)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = o, .operand = read_operand};
	line.shared = training_options;
	line.shared_count = training_option_count;
	line.shared_to = &o->training;
	*o = (struct options){.config = NULL};
	int bad = read_options(&line, o, argc, argv);
	if (o->folds && o->training.fold < 0)
		o->training.fold = 0; /* the first of them */
	if (!bad && !o->help && !o->version)
		bad = check_options(&line, o);
	if (o->doctor && o->observe < 0)
		o->observe = 1;
	o->given = bad ? NULL : tool_config_make(&line);
	if (!bad && !o->given)
		bad = tool_refuse(&line, "out of memory");
	(void)snprintf(message, size, "%s", line.message);
	return bad;
}

static const struct tool_part parts[] = {
    {.title = "notes",
     .text = "A step whose gradients overflow is skipped, and the loss scale is lowered. That is "
             "normal in the\n"
             "first few steps. Ctrl-C ends the training after the current epoch; the summary "
             "covers the epochs\n"
             "that were done, and tells where --save wrote the state and how to continue from it. "
             "A second\n"
             "Ctrl-C ends the program at once, but never while it writes a file.\n"
             "\n"
             "Epochs are counted from 1 in every run. Steps are counted from 0 since the weights "
             "were created,\n"
             "over all resumed runs: without --resume and --batch-size, epoch 5 is step 4. "
             "Findings and hg-doctor\n"
             "name steps; the JSON lines of epochs have both numbers.\n"}};

/* training_option_count is no constant, which the count of shared options would have to be. */
struct tool_about options_about(void)
{
	return (struct tool_about){
	    .tool = "hg-train",
	    .summary = "train graph neural networks in half precision",
	    .usage = "--data FILE.h5 --model NAME [options]\n",
	    .text = "Trains a graph neural network on all nodes at once, or in batches of graphs, and "
	            "reports the test\n"
	            "accuracy, or another metric, at the epoch with the best validation value. State "
	            "tensors have the\n"
	            "chosen precision; master weights are always fp32.\n",
	    .examples =
	        "  h5convert --from npz cora.npz -o cora.h5\n"
	        "  hg-train --data cora.h5 --model gcn --seeds 10\n"
	        "  hg-train --data cora.h5 --model gcn --seeds 10 --precision fp32    for comparison\n"
	        "  hg-train --data cora.h5 --model gat --json - | jq .loss\n"
	        "  hg-train --data proteins.h5 --model gin --folds --validate held-out\n"
	        "  hg-train --data zinc.h5 --model gin --task regression --metric mae --batch-size "
	        "128\n"
	        "  hg-train --data cora.h5 --model gat --save gat.h5\n"
	        "  hg-train --data cora.h5 --model gat --resume gat.h5\n"
	        "  hg-train --evaluate cora.h5 --checkpoint gat.h5\n"
	        "  hg-train --data cora.h5 --model gat --html gat.html --json gat.jsonl\n"
	        "  hg-train --html both.html --compare gcn.jsonl gat.jsonl\n"
	        "  hg-train --predict other.h5 --checkpoint gat.h5 -o classes.csv\n"
	        "  hg-train --predict other.h5 --checkpoint gat.h5 -o nodes.npz --embed last\n",
	    .part = parts,
	    .parts = 1,
	    .options = table,
	    .shared = training_options,
	    .count = OPTIONS,
	    .shared_count = training_option_count,
	    .owners = 1,
	    .codes = {.done = "done",
	              .bad_run =
	                  "done, but a last loss is not a number or nothing was learnt: every step "
	                  "was skipped, or every gradient was 0 with a loss that is not 0, or, "
	                  "from fresh weights, none of more than 20 losses is below the first",
	              .interrupted =
	                  "interrupted by Ctrl-C, TERM or HUP (summary printed, --save done)"},
	    .files = 1, /* of --compare */
	};
}
