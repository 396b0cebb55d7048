/* The options of hg-doctor alone; options of every training run are in tools/training. */
#include "options.h"

#include <string.h>

#define AT(field) offsetof(struct options, field)

static const struct tool_option table[] = {
    {"--checkpoint", "FILE",
     "begin from a checkpoint of hg-train; runs that try remedies begin from it, too",
     AT(checkpoint), TOOL_TEXT},
    {"--try", "WHEN",
     "train with the remedies to find out which help: on (default; at most 12 runs of --epochs, "
     "those for the first fault first), off",
     AT(no_try), TOOL_CHOICE("on|off")},
    {"--json", "FILE",
     "write one JSON object for every step, tensor and finding, then one with "
     "\"event\":\"summary\"; - for standard output",
     AT(json), TOOL_TEXT},
    {"--html", "FILE", "write the report as one HTML page that needs no network", AT(html),
     TOOL_TEXT},
    {"--help", NULL, "print this text", AT(help), TOOL_FLAG},
    {"--version", NULL, "print the version", AT(version), TOOL_FLAG},
};
#define OPTIONS (sizeof table / sizeof *table)

static int check_options(struct tool_line *line, const struct options *o)
{
	return training_check(line, &o->training) ? -1
	                                          /* files are checked once all of them are known */
	                                          : 0;
}

int options_parse(struct options *o, int argc, char **argv, char *message, size_t size)
{
	struct tool_line line = {.options = table, .count = OPTIONS, .to = o};
	line.shared = training_options;
	line.shared_count = training_option_count;
	line.shared_to = &o->training;
	*o = (struct options){0};
	training_defaults(&o->training);
	int bad = tool_line_read(&line, argc, argv);
	if (!bad && !o->help && !o->version)
		bad = check_options(&line, o);
	(void)snprintf(message, size, "%s", line.message);
	return bad;
}

static const struct tool_part parts[] = {
    {.title = "bad steps",
     .text =
         "A dynamic loss scale begins too high on purpose and falls until the gradients fit, and "
         "a result\n"
         "that overflows is then stored x 2^-k, or in fp32. The steps skipped for this are normal "
         "and no\n"
         "finding, unless the loss scale needs a quarter of the run for it. A step is bad\n"
         "  - if it is skipped although the loss scale cannot fall further,\n"
         "  - if it is the fifth in a row whose forward pass overflows and the run does not "
         "recover,\n"
         "  - if its loss is not finite and the run cannot recover (--precision fp16-naive),\n"
         "  - if it is the last one and its loss is not finite, or nothing was learnt.\n"
         "\n"
         "A run in which nothing goes wrong is examined for silent faults: the first step, the "
         "last one,\n"
         "and the steps 1, 2, 4, 8, ... are replayed. A sum that is too large for its terms, "
         "values that\n"
         "are rounded to zero, running statistics that no column had, and an overflow without a "
         "later\n"
         "effect are findings, too, and so is an overflow in the evaluation at the end. A run "
         "without a\n"
         "finding is healthy. Its smallest headroom is reported: how many times the largest value "
         "of any\n"
         "fp16 tensor could double before it is infinite.\n"},
    {.title = "notes",
     .text = "Steps are counted from 0 since the weights were created, as in hg-train, whose "
             "epochs begin\n"
             "with 1 in every run.\n"
             "\n"
             "JSON lines have \"event\": \"step\", \"tensor\" (of the last replayed step), "
             "\"finding\" and\n"
             "\"summary\", and \"format\", the version of docs/json-lines.schema.json, which "
             "describes every\n"
             "field.\n"}};

/* training_option_count is no constant, which the count of shared options would have to be. */
struct tool_about options_about(void)
{
	return (struct tool_about){
	    .tool = "hg-doctor",
	    .summary = "explain what goes wrong in a training in half precision",
	    .usage = "--data FILE.h5 --model NAME [options]\n",
	    .text =
	        "Trains until a step goes bad, replays that step op by op beside the same ops in fp32, "
	        "and\n"
	        "reports what happened and what to do, then the op, the node, the sum, the cause and "
	        "how it\n"
	        "spread. The options of training are those of hg-train; the same options give the same "
	        "training.\n",
	    .examples =
	        "  hg-doctor --data cora.h5 --model gcn\n"
	        "  hg-doctor --data planted.h5 --model gcn --norm right --precision fp16-naive \\\n"
	        "    --html report.html\n"
	        "  hg-doctor --data cora.h5 --model gat --json - | jq 'select(.event == "
	        "\"finding\")'\n",
	    .part = parts,
	    .parts = 2,
	    .options = table,
	    .shared = training_options,
	    .count = OPTIONS,
	    .shared_count = training_option_count,
	    .owners = 1,
	    .codes = {.done = "healthy",
	              .bad_run = "findings",
	              .interrupted = "interrupted by Ctrl-C, TERM or HUP (the reports so far are "
	                             "written)"},
	};
}
