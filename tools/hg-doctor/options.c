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

void options_help(FILE *out)
{
	fputs("usage: hg-doctor --data FILE.h5 --model gcn|gin|gat [options]\n"
	      "\n"
	      "Trains until a step goes bad, runs that step again op by op beside the same ops in "
	      "fp32, and says what\n"
	      "happened and what to do, then the op, the node, the sum, the cause and the way it "
	      "spread. The options of\n"
	      "training are those of hg-train, and so is what is trained: the same options, the same "
	      "numbers.\n"
	      "\n"
	      "  hg-doctor --data cora.h5 --model gcn\n"
	      "  hg-doctor --data planted.h5 --model gcn --norm right --precision fp16-naive --html "
	      "report.html\n"
	      "  hg-doctor --data cora.h5 --model gat --json - | jq 'select(.event == \"finding\")'\n"
	      "\n"
	      "options:\n",
	      out);
	tool_options_print(out, training_options, training_option_count, 1);
	tool_options_print(out, table, OPTIONS, 1);
	fputs("\n"
	      "When is a step bad? A dynamic loss scale begins too high on purpose and falls until the "
	      "gradients fit, and a node\n"
	      "that overflows behind its guard is stored x 2^-k, or put in f32: the steps that are "
	      "skipped for it are their way to\n"
	      "work, and no finding, unless the loss scale needs a quarter of the run for it. A step "
	      "is bad if it is skipped\n"
	      "although the loss scale cannot fall further, if it is the fifth in a row whose forward "
	      "pass overflows and nothing\n"
	      "mends it, if its loss is not finite and nothing will mend that (--precision "
	      "fp16-naive), or if it is the last and its\n"
	      "loss is not finite, or nothing was learnt.\n"
	      "\n"
	      "While all goes well a few steps are replayed all the same, the first, the last and "
	      "those numbered 1, 2, 4, 8, ...:\n"
	      "a sum too large for its terms, values that were rounded to zero, running statistics "
	      "that no column had, and an\n"
	      "overflow that nothing after it shows are findings too, and so is what overflows in an "
	      "evaluation at the end. A run\n"
	      "without one is healthy, and its smallest headroom is told: how many times the largest "
	      "value of any fp16 tensor\n"
	      "could double before it is infinite.\n"
	      "\n"
	      "Steps are counted from 0 since the weights were made, as in hg-train, whose epochs "
	      "begin with 1 in every run.\n"
	      "\n"
	      "JSON lines have \"event\": \"step\", \"tensor\" (of the last replayed step), "
	      "\"finding\" and "
	      "\"summary\", and \"format\", the\n"
	      "number of docs/json-lines.schema.json, which says what every field is.\n"
	      "\n"
	      "exit code: 0 healthy, 1 the library or the machine failed or a report could not be "
	      "written, 2 bad usage or bad\n"
	      "input, 3 findings, 130 interrupted\n",
	      out);
}
