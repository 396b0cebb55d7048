/* The options of hg-train alone; those of every training run are in tools/training. */
#include "options.h"

#define AT(field) offsetof(struct options, field)

static const struct tool_option table[] = {
    {"--patience", "N",
     "stop after N epochs without a better validation accuracy or loss; 0 (default): never",
     AT(patience), TOOL_INTEGER(0, 100000000)},
    {"--eval-every", "N", "look at the validation and test sets every N epochs (1)", AT(eval_every),
     TOOL_INTEGER(1, 100000000)},
    {"--together", "N",
     "epochs, with their evaluations, that run without a wait for the device; results are the same "
     "for every N (a GPU: about a millisecond's worth; else 1)",
     AT(together), TOOL_INTEGER(1, HG_STEP_REMEMBERED)},
    {"--save", "FILE",
     "keep the state behind the last epoch in a checkpoint, also when interrupted; tried before "
     "the first",
     AT(save), TOOL_TEXT},
    {"--resume", "FILE",
     "begin from a checkpoint; epochs are counted anew. With the options it was made with the run "
     "goes on bit for bit",
     AT(resume), TOOL_TEXT},
    {"--seeds", "K", "train K times, with seeds S, S+1, ..., and report mean and deviation (1)",
     AT(seeds), TOOL_INTEGER(1, 100000)},
    {"--json", "FILE",
     "write one JSON object per epoch and a last one with \"event\":\"summary\"; - for standard "
     "output",
     AT(json), TOOL_TEXT},
    {"--observe", "N",
     "count every N epochs on the device how near every tensor comes to the limits of fp16 (16; "
     "with --doctor 1); 0: never",
     AT(observe), TOOL_INTEGER(0, 100000000)},
    {"--print-plan", NULL, "show the plan first: ops, types, verdicts, memory", AT(print_plan),
     TOOL_FLAG},
    {"--explain", NULL,
     "say first which tensors can overflow fp16, the nearest first, and what watches them; full: "
     "the rule of each bound",
     AT(explain), TOOL_LEVEL("full")},
    {"--doctor", NULL,
     "look at every step, and when one goes bad say what went wrong first; replay those numbered "
     "0, "
     "1, 2, 4, 8, ..., the last, and the evaluation of what was learnt, for what is silent "
     "(hg-doctor tries the remedies)",
     AT(doctor), TOOL_FLAG},
    {"--help", NULL, "this page", AT(help), TOOL_FLAG},
    {"--version", NULL, "the library's version", AT(version), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof *table)

static int check(struct tool_line *line, const struct options *o)
{
	if (training_check(line, &o->training))
		return -1;
	if (o->seeds > 1 && (o->save || o->resume))
		return tool_refuse(line, "%s is for one run, and --seeds asks for %lld",
		                   o->save ? "--save" : "--resume", (long long)o->seeds);
	return o->doctor && o->together > 1
	           ? tool_refuse(line,
	                         "--doctor looks at every step: it cannot do so with --together %lld",
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
		bad = check(&line, o);
	if (o->doctor && o->observe < 0)
		o->observe = 1;
	(void)snprintf(message, size, "%s", line.message);
	return bad;
}

void options_help(FILE *out)
{
	fputs("usage: hg-train --data FILE.h5 --model gcn|gin|gat [options]\n"
	      "\n"
	      "Trains a graph neural network on all nodes at once and reports the test accuracy at the "
	      "epoch with the best\n"
	      "validation accuracy. State tensors live in the chosen precision; the master weights are "
	      "always fp32.\n"
	      "\n"
	      "  h5convert --from npz cora.npz -o cora.h5\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10\n"
	      "  hg-train --data cora.h5 --model gcn --seeds 10 --precision fp32    the same, to "
	      "compare\n"
	      "  hg-train --data cora.h5 --model gat --json - | jq .loss\n"
	      "  hg-train --data cora.h5 --model gat --save gat.h5; hg-train --data cora.h5 --model "
	      "gat --resume gat.h5\n"
	      "\n"
	      "options:\n",
	      out);
	tool_options_print(out, training_options, training_option_count, 1);
	tool_options_print(out, table, OPTIONS, 1);
	fputs("\n"
	      "A step whose gradients overflow is skipped and the loss scale lowered: that is normal "
	      "for the first few steps.\n"
	      "Ctrl-C ends the training behind the epoch at hand: the summary is of what was done and "
	      "says where --save put the\n"
	      "state and how to go on from it. A second Ctrl-C ends the program at once, but never in "
	      "the middle of a file.\n"
	      "\n"
	      "Epochs are counted from 1 in every run, steps from 0 over all runs since the weights "
	      "were made: without --resume\n"
	      "epoch 5 is step 4. Findings and hg-doctor speak of steps; JSON lines of epochs have "
	      "both.\n"
	      "\n"
	      "exit code: 0 done, 1 the library or the machine failed, 2 bad usage or bad input, 3 "
	      "done, but a last loss is not a\n"
	      "number or nothing was learnt: every step skipped, every gradient 0 with a loss that is "
	      "not, or, of fresh weights,\n"
	      "no loss of more than 20 steps below the first; 130 interrupted by Ctrl-C, TERM or HUP "
	      "(summary printed, --save\n"
	      "done)\n",
	      out);
}
