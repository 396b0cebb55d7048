/* The options of hg-train alone; options of every training run are in tools/training. */
#include "options.h"

#include "tool.h"

#define AT(field) offsetof(struct options, field)

static const struct tool_option table[] = {
    {"--patience", "N",
     "stop after N epochs without a better validation accuracy or loss; 0 (default): never",
     AT(patience), TOOL_INTEGER(0, 100000000)},
    {"--eval-every", "N", "evaluate the validation and test sets every N epochs (1)",
     AT(eval_every), TOOL_INTEGER(1, 100000000)},
    {"--together", "N",
     "run N epochs, with their evaluations, without waiting for the device; every N gives the same "
     "results (GPU: as many as take about a millisecond; CPU: 1)",
     AT(together), TOOL_INTEGER(1, HG_STEP_REMEMBERED)},
    {"--save", "FILE",
     "write the state after the last epoch to a checkpoint, also when interrupted; whether the "
     "file "
     "can be written is tested first",
     AT(save), TOOL_TEXT},
    {"--resume", "FILE",
     "continue from a checkpoint; epochs are counted from 1 again. With the same options the run "
     "continues bit for bit",
     AT(resume), TOOL_TEXT},
    {"--seeds", "K", "train K times, with seeds S, S+1, ..., and report mean and deviation (1)",
     AT(seeds), TOOL_INTEGER(1, 100000)},
    {"--json", "FILE",
     "write one JSON object per epoch, then one with \"event\":\"summary\"; - for standard output",
     AT(json), TOOL_TEXT},
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
    {"--help", NULL, "print this text", AT(help), TOOL_FLAG},
    {"--version", NULL, "print the version", AT(version), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof *table)

static int check_options(struct tool_line *line, const struct options *o)
{
	if (training_check(line, &o->training))
		return -1;
	if (o->seeds > 1 && (o->save || o->resume))
		return tool_refuse(line, "%s is for one run, but --seeds is %lld",
		                   o->save ? "--save" : "--resume", (long long)o->seeds);
	return o->doctor && o->together > 1
	           ? tool_refuse(line,
	                         "--doctor checks every step, which --together %lld does not allow",
	                         (long long)o->together)
	           : 0;
}

int options_parse(struct options *o, int argc, char **argv, char *message, size_t size)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = o};
	line.shared = training_options;
	line.shared_count = training_option_count;
	line.shared_to = &o->training;
	*o = (struct options){
	    .patience = -1, .together = -1, .observe = -1, .eval_every = 1, .seeds = 1};
	training_defaults(&o->training);
	int bad = tool_line_read(&line, argc, argv);
	if (!bad && !o->help && !o->version)
		bad = check_options(&line, o);
	if (o->doctor && o->observe < 0)
		o->observe = 1;
	(void)snprintf(message, size, "%s", line.message);
	return bad;
}

void options_help(FILE *out)
{
	fputs("usage: hg-train --data FILE.h5 --model NAME [options]\n"
	      "\n"
	      "Trains a graph neural network on all nodes at once and reports the test accuracy at the "
	      "epoch\n"
	      "with the best validation accuracy. State tensors have the chosen precision; master "
	      "weights are\n"
	      "always fp32.\n"
	      "\n"
	      "  h5convert --from npz cora.npz -o cora.h5\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10 --precision fp32    for comparison\n"
	      "  hg-train --data cora.h5 --model gat --json - | jq .loss\n"
	      "  hg-train --data cora.h5 --model gat --save gat.h5\n"
	      "  hg-train --data cora.h5 --model gat --resume gat.h5\n"
	      "\n"
	      "options:\n",
	      out);
	tool_options_print(out, training_options, training_option_count, 1);
	tool_options_print(out, table, OPTIONS, 1);
	fputs("\n"
	      "A step whose gradients overflow is skipped, and the loss scale is lowered. That is "
	      "normal in the\n"
	      "first few steps. Ctrl-C ends the training after the current epoch; the summary covers "
	      "the epochs\n"
	      "that were done, and tells where --save wrote the state and how to continue from it. A "
	      "second\n"
	      "Ctrl-C ends the program at once, but never while it writes a file.\n"
	      "\n"
	      "Epochs are counted from 1 in every run. Steps are counted from 0 since the weights were "
	      "created,\n"
	      "over all resumed runs: without --resume, epoch 5 is step 4. Findings and hg-doctor name "
	      "steps; the\n"
	      "JSON lines of epochs have both numbers.\n",
	      out);
	tool_codes_print(
	    out,
	    &(struct tool_codes){
	        .done = "done",
	        .bad_run = "done, but a last loss is not a number or nothing was learnt: every step "
	                   "was skipped, or every gradient was 0 with a loss that is not 0, or, "
	                   "from fresh weights, none of more than 20 losses is below the first",
	        .interrupted = "interrupted by Ctrl-C, TERM or HUP (summary printed, --save done)"});
}
