/* The man page of a tool, in the language of man(7). */
#include <ctype.h>
#include <string.h>

#include "about.h"
#include "halfgraph/version.h"

/* The characters that roff would read or print as others. */
static void print_roff(FILE *out, const char *text, size_t length)
{
	static const char *const escape[256] = {['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq",
	                                        ['`'] = "\\(ga", ['^'] = "\\(ha", ['~'] = "\\(ti"};
	if (length && *text == '.')
		(void)fputs("\\&", out); /* it would begin a request */
	for (size_t i = 0; i < length; i++) {
		const char *other = escape[(unsigned char)text[i]];
		if (other)
			(void)fputs(other, out);
		else
			(void)fputc(text[i], out);
	}
}

static void print_all(FILE *out, const char *text)
{
	print_roff(out, text, strlen(text));
}

/* A text of paragraphs and of lines that stay as they are (struct tool_about). */
static void print_text(FILE *out, const char *text)
{
	int kept = 0; /* the lines before this one stay as they are */
	for (const char *line = text; *line;) {
		const size_t length = strcspn(line, "\n"), blanks = strspn(line, " ");
		const int keep = blanks && blanks < length;
		if (keep && !kept)
			(void)fputs(".PP\n.RS 2\n.nf\n", out);
		if (!keep && kept)
			(void)fputs(".fi\n.RE\n", out);
		if (!length || (kept && !keep))
			(void)fputs(".PP\n", out);
		/* of two columns that begin a line, the first is the indentation of all */
		const size_t skipped = keep ? 2 : 0;
		if (length)
			print_roff(out, line + skipped, length - skipped);
		if (length)
			(void)fputc('\n', out);
		kept = keep;
		line += length + (line[length] == '\n');
	}
	if (kept)
		(void)fputs(".fi\n.RE\n", out);
}

/* "GRAPHS" of "graphs" */
static void print_heading(FILE *out, const char *title)
{
	(void)fputs(".SH \"", out);
	for (; *title; title++)
		(void)fputc(toupper((unsigned char)*title), out);
	(void)fputs("\"\n", out);
}

static void print_synopsis(FILE *out, const struct tool_about *about)
{
	print_heading(out, "synopsis");
	for (const char *line = about->usage; *line; line += strcspn(line, "\n") + 1) {
		(void)fputs(line == about->usage ? "\\fB" : ".br\n\\fB", out);
		print_all(out, about->tool);
		(void)fputs("\\fR ", out);
		print_roff(out, line, strcspn(line, "\n"));
		(void)fputc('\n', out);
	}
}

static void print_parts(FILE *out, const struct tool_about *about, int before_list)
{
	for (int i = 0; i < about->parts; i++) {
		const struct tool_part *part = &about->part[i];
		struct tool_row row;
		if (part->before_list != before_list)
			continue;
		print_heading(out, part->title);
		if (part->text)
			print_text(out, part->text);
		for (int k = 0; part->rows && part->rows(k, &row); k++) {
			(void)fputs(".TP\n\\fB", out);
			print_all(out, row.name);
			(void)fputs("\\fR\n", out);
			print_all(out, row.text);
			(void)fputc('\n', out);
		}
	}
}

static void print_option(FILE *out, const struct tool_option *o, int owners)
{
	(void)fputs(".TP\n\\fB", out);
	print_all(out, o->name);
	(void)fputs("\\fR", out);
	if (o->argument) {
		(void)fputs(" \\fI", out);
		print_all(out, o->argument);
		(void)fputs("\\fR", out);
	} else if (o->choices) {
		(void)fputs("[=\\fI", out);
		print_all(out, o->choices);
		(void)fputs("\\fR]", out);
	}
	(void)fputc('\n', out);
	if (owners && o->only) {
		print_all(out, o->only);
		(void)fputs(": ", out);
	}
	print_all(out, o->help);
	for (const char *const *name = o->names ? o->names() : NULL; name && *name; name++) {
		(void)fputs(name == o->names() ? ": " : ", ", out);
		print_all(out, *name);
	}
	(void)fputc('\n', out);
}

static void print_options(FILE *out, const struct tool_about *about)
{
	print_heading(out, "options");
	for (size_t k = 0; k < about->shared_count; k++)
		print_option(out, &about->shared[k], about->owners);
	for (size_t k = 0; k < about->count; k++)
		print_option(out, &about->options[k], about->owners);
}

static void print_codes(FILE *out, const struct tool_codes *codes)
{
	struct tool_row row[TOOL_CODES];
	char failed[TOOL_CODE_TEXT];
	print_heading(out, "exit status");
	const int count = tool_codes_list(codes, failed, row);
	for (int k = 0; k < count; k++) {
		(void)fprintf(out, ".TP\n\\fB%s\\fR\n", row[k].name);
		print_all(out, row[k].text);
		(void)fputc('\n', out);
	}
}

static void print_others(FILE *out, const char *tool)
{
	static const char *const tools[] = {"h5convert", "hg-train", "hg-doctor", "hg-bench"};
	const char *before = "";
	print_heading(out, "see also");
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
		if (strcmp(tools[i], tool) == 0)
			continue;
		(void)fprintf(out, "%s\\fB", before);
		print_all(out, tools[i]);
		(void)fputs("\\fR(1)", out);
		before = ",\n";
	}
	(void)fputc('\n', out);
}

void tool_manual_print(FILE *out, const struct tool_about *about)
{
	(void)fprintf(out, ".\\\" Printed by %s --man from the table of its options.\n.TH \"",
	              about->tool);
	for (const char *c = about->tool; *c; c++)
		(void)fputc(toupper((unsigned char)*c), out);
	/* without a date: the same sources give the same page */
	(void)fprintf(out, "\" 1 \"\" \"HalfGraph %s\" \"HalfGraph\"\n", hg_version_string());
	print_heading(out, "name");
	print_all(out, about->tool);
	(void)fputs(" \\- ", out);
	print_all(out, about->summary);
	(void)fputc('\n', out);
	print_synopsis(out, about);
	print_heading(out, "description");
	print_text(out, about->text);
	print_parts(out, about, 1);
	print_options(out, about);
	print_parts(out, about, 0);
	print_heading(out, "examples");
	print_text(out, about->examples);
	print_codes(out, &about->codes);
	print_others(out, about->tool);
}
