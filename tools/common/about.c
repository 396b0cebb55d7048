/* --help, and the options for the installation. */
#include "about.h"

#include <string.h>

static void print_usage(FILE *out, const struct tool_about *about)
{
	const char *before = "usage:";
	for (const char *line = about->usage; *line; line += strcspn(line, "\n") + 1) {
		(void)fprintf(out, "%-6s %s %.*s\n", before, about->tool, (int)strcspn(line, "\n"), line);
		before = "";
	}
}

static void print_parts(FILE *out, const struct tool_about *about, int before_list)
{
	for (int i = 0; i < about->parts; i++) {
		const struct tool_part *part = &about->part[i];
		struct tool_row row;
		if (part->before_list != before_list)
			continue;
		(void)fprintf(out, "\n%s:\n%s", part->title, part->text ? part->text : "");
		for (int k = 0; part->rows && part->rows(k, &row); k++)
			tool_row_print(out, part->width, row.name, row.text);
	}
}

void tool_help_print(FILE *out, const struct tool_about *about)
{
	print_usage(out, about);
	(void)fprintf(out, "\n%s", about->text);
	print_parts(out, about, 1);
	(void)fprintf(out, "\nexamples:\n%s\noptions:\n", about->examples);
	tool_options_print(out, about->shared, about->shared_count, about->owners);
	tool_options_print(out, about->options, about->count, about->owners);
	print_parts(out, about, 0);
	tool_codes_print(out, &about->codes);
}

int tool_describes(const struct tool_about *about, int argc, char **argv, int *code)
{
	static const char completion[] = "--completion";
	const size_t length = sizeof completion - 1;
	*code = TOOL_DONE;
	if (argc == 2 && strcmp(argv[1], "--man") == 0) {
		tool_manual_print(stdout, about);
		return 1;
	}
	if (argc < 2 || strncmp(argv[1], completion, length) != 0)
		return 0;
	const char *shell = argc == 3 && !argv[1][length]         ? argv[2]
	                    : argc == 2 && argv[1][length] == '=' ? argv[1] + length + 1
	                                                          : "";
	if (tool_completion_print(stdout, about, shell)) {
		tool_say(about->tool, "%s is \"%s\", expected one of %s and no other option", completion,
		         shell, TOOL_SHELLS);
		*code = TOOL_BAD_INPUT;
	}
	return 1;
}
