#include "commandline.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int tool_refuse(struct tool_line *line, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(line->message, sizeof line->message, format, args);
	va_end(args);
	return -1;
}

/* The index of `word` in a list with this separator, or -1. */
static int word_in(const char *list, const char *word, char separator)
{
	const size_t length = strlen(word);
	for (int i = 0; *list; i++) {
		const char *end = strchr(list, separator);
		const size_t size = end ? (size_t)(end - list) : strlen(list);
		if (size == length && strncmp(list, word, length) == 0)
			return i;
		list += size + (end != NULL);
	}
	return -1;
}

/* ---- values ---- */

static void *field_of(const struct tool_line *line, const struct tool_option *option)
{
	return (char *)line->target + option->offset;
}

int tool_read_flag(struct tool_line *line, const struct tool_option *option, const char *text)
{
	(void)text;
	*(int *)field_of(line, option) = 1;
	return 0;
}

int tool_read_text(struct tool_line *line, const struct tool_option *option, const char *text)
{
	*(const char **)field_of(line, option) = text;
	return 0;
}

static int choice_of(struct tool_line *line, const struct tool_option *option, const char *text)
{
	const int choice = word_in(option->choices, text, '|');
	return choice >= 0 ? choice
	                   : tool_refuse(line, "%s is \"%s\", expected one of %s", option->name, text,
	                                 option->choices);
}

int tool_read_word(struct tool_line *line, const struct tool_option *option, const char *text)
{
	return choice_of(line, option, text) < 0 ? -1 : tool_read_text(line, option, text);
}

const char *tool_join(const char *const *names, const char *separator, char *buffer, size_t size)
{
	size_t length = 0;
	buffer[0] = '\0';
	for (size_t i = 0; names[i] && length < size; i++)
		length +=
		    (size_t)snprintf(buffer + length, size - length, "%s%s", i ? separator : "", names[i]);
	return buffer;
}

int tool_read_name(struct tool_line *line, const struct tool_option *option, const char *text)
{
	char list[256];
	for (const char *const *name = option->names(); *name; name++)
		if (strcmp(*name, text) == 0)
			return tool_read_text(line, option, text);
	return tool_refuse(line, "%s is \"%s\", expected one of %s", option->name, text,
	                   tool_join(option->names(), "|", list, sizeof list));
}

int tool_read_choice(struct tool_line *line, const struct tool_option *option, const char *text)
{
	const int choice = choice_of(line, option, text);
	*(int *)field_of(line, option) = choice;
	return choice < 0 ? -1 : 0;
}

int tool_read_level(struct tool_line *line, const struct tool_option *option, const char *text)
{
	const int choice = text ? choice_of(line, option, text) : -1;
	*(int *)field_of(line, option) = choice + 2;
	return text && choice < 0 ? -1 : 0;
}

int tool_whole(struct tool_line *line, const struct tool_option *option, const char *whole,
               const char *text, char stop, int64_t *value, const char **rest)
{
	char *end = NULL;
	errno = 0;
	*value = strtoll(text, &end, 10);
	*rest = end;
	if (end == text || (*end && *end != stop) || isspace((unsigned char)*text) || errno ||
	    (double)*value < option->low || (double)*value > option->high)
		return tool_refuse(line, "%s is \"%s\", expected %s from %lld to %lld", option->name, whole,
		                   stop ? "whole numbers" : "a whole number", (long long)option->low,
		                   (long long)option->high);
	return 0;
}

int tool_read_integer(struct tool_line *line, const struct tool_option *option, const char *text)
{
	const char *rest;
	return tool_whole(line, option, text, text, '\0', (int64_t *)field_of(line, option), &rest);
}

int tool_read_real(struct tool_line *line, const struct tool_option *option, const char *text)
{
	char *end = NULL;
	const double value = strtod(text, &end);
	if (end == text || *end || isspace((unsigned char)*text) ||
	    !(value >= option->low && value <= option->high))
		return tool_refuse(line, "%s is \"%s\", expected a number from %.8g to %.8g", option->name,
		                   text, option->low, option->high);
	*(double *)field_of(line, option) = value;
	return 0;
}

/* ---- the command line ---- */

size_t tool_option_count(const struct tool_line *line)
{
	return line->count + line->shared_count;
}

const struct tool_option *tool_option_at(const struct tool_line *line, size_t k)
{
	return k < line->count ? &line->options[k] : &line->shared[k - line->count];
}

/* The index of the option with this name; tool_option_count if there is none. */
static size_t option_named(const struct tool_line *line, const char *name, size_t length)
{
	size_t k = 0;
	while (k < tool_option_count(line) &&
	       (strlen(tool_option_at(line, k)->name) != length ||
	        strncmp(tool_option_at(line, k)->name, name, length) != 0))
		k++;
	return k;
}

static int option_store(struct tool_line *line, size_t k, const char *value)
{
	const struct tool_option *option = tool_option_at(line, k);
	line->given[k] = 1;
	line->text[k] = value;
	line->target = k < line->count ? line->to : line->shared_to;
	return option->read(line, option, value);
}

int tool_option_set(struct tool_line *line, size_t k, const char *text)
{
	line->filed[k] = 1;
	return option_store(line, k, text);
}

/* The command line sets option k: what a file says of it, also under another name (--steps for
 * --epochs), no longer counts as given. */
static void line_wins(struct tool_line *line, size_t k)
{
	for (size_t j = 0; j < tool_option_count(line); j++) {
		const int same = (j < line->count) == (k < line->count) &&
		                 tool_option_at(line, j)->offset == tool_option_at(line, k)->offset;
		if (same && line->filed[j])
			line->given[j] = 0;
	}
}

/* "--flag=off" */
static void unset_flag(struct tool_line *line, size_t k)
{
	line->target = k < line->count ? line->to : line->shared_to;
	*(int *)field_of(line, tool_option_at(line, k)) = 0;
	line->given[k] = 0;
}

/* Read the option argv[*i] and its value, which may be the next word. */
static int option_read(struct tool_line *line, int argc, char **argv, int *i)
{
	const char *word = strcmp(argv[*i], "-h") == 0 ? "--help" : argv[*i],
	           *equals = strchr(word, '=');
	const size_t k = option_named(line, word, equals ? (size_t)(equals - word) : strlen(word));
	const char *value = equals ? equals + 1 : NULL;
	if (k == tool_option_count(line))
		return tool_refuse(line, "unknown option \"%s\": --help lists the options", word);
	const struct tool_option *option = tool_option_at(line, k);
	if (!option->argument && value && strcmp(value, "off") == 0) {
		unset_flag(line, k);
		return 0;
	}
	if (!option->argument && value && !option->choices)
		return tool_refuse(line, "%s takes no value, found \"%s\"", option->name, value);
	if (option->argument && !value && *i + 1 < argc)
		value = argv[++*i];
	if (option->argument && (!value || !*value))
		return tool_refuse(line, "%s needs a value%s: %s", option->name,
		                   value ? ", found an empty one" : "", option->argument);
	line_wins(line, k);
	return option_store(line, k, value);
}

int tool_line_read(struct tool_line *line, int argc, char **argv)
{
	int only_operands = 0;
	if (tool_option_count(line) > TOOL_OPTIONS)
		return tool_refuse(line, "this tool has %zu options, more than TOOL_OPTIONS, %d",
		                   tool_option_count(line), TOOL_OPTIONS);
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		int bad = 0;
		if (!only_operands && strcmp(word, "--") == 0)
			only_operands = 1;
		else if (!only_operands && word[0] == '-' && word[1])
			bad = option_read(line, argc, argv, &i);
		else if (line->operand)
			bad = line->operand(line, word);
		else
			bad = tool_refuse(line, "unexpected argument \"%s\": --help lists the options", word);
		if (bad)
			return -1;
	}
	return 0;
}

size_t tool_given_count(const struct tool_line *line)
{
	size_t count = 0;
	for (size_t k = 0; k < tool_option_count(line); k++)
		count += line->given[k];
	return count;
}

int tool_given(const struct tool_line *line, const char *name)
{
	const size_t k = option_named(line, name, strlen(name));
	return k < tool_option_count(line) && line->given[k];
}

const struct tool_option *tool_misfit(const struct tool_line *line, const char *name)
{
	for (size_t k = 0; k < tool_option_count(line); k++) {
		const struct tool_option *option = tool_option_at(line, k);
		if (line->given[k] && option->only && word_in(option->only, name, ' ') < 0)
			return option;
	}
	return NULL;
}

/* ---- help ---- */

/* The width of --help, and the column at which the text of an option begins. */
enum { HELP_COLUMNS = 96, HELP_TEXT = 27 };

/* Prints the words of a text from `column` on. A line that would be too long continues on the next
 * one, below the column `indent`. */
static void print_wrapped(FILE *out, int column, int indent, const char *text)
{
	for (const char *gap = "", *end; *text; text = end + strspn(end, " ")) {
		end = text + strcspn(text, " ");
		const int length = (int)(end - text);
		if (column + (int)strlen(gap) + length > HELP_COLUMNS) {
			(void)fprintf(out, "\n%*s", indent, "");
			column = indent;
			gap = "";
		}
		column += (int)strlen(gap) + length;
		(void)fprintf(out, "%s%.*s", gap, length, text);
		gap = " ";
	}
	(void)fputc('\n', out);
}

void tool_row_print(FILE *out, int width, const char *name, const char *text)
{
	const int column = fprintf(out, "  %-*s ", width, name);
	print_wrapped(out, column, width + 3, text);
}

void tool_options_print(FILE *out, const struct tool_option *options, size_t count, int owners)
{
	for (size_t k = 0; k < count; k++) {
		const struct tool_option *o = &options[k];
		const char *owner = owners && o->only ? o->only : NULL;
		char left[64], list[256], text[512];
		if (!o->argument && o->choices)
			(void)snprintf(left, sizeof left, "%s[=%s]", o->name, o->choices);
		else
			(void)snprintf(left, sizeof left, "%s %s", o->name, o->argument ? o->argument : "");
		int column = fprintf(out, "  %-*s ", HELP_TEXT - 3, left);
		if (owner)
			column += fprintf(out, "%s: ", owner);
		if (o->names)
			(void)snprintf(text, sizeof text, "%s: %s", o->help,
			               tool_join(o->names(), ", ", list, sizeof list));
		print_wrapped(out, column, HELP_TEXT, o->names ? text : o->help);
	}
}
