#ifndef HG_COMMANDLINE_H
#define HG_COMMANDLINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "halfgraph/export.h"

/* The command line of a tool. One table of options serves parsing, checking and --help. */

struct tool_line;
struct tool_option;
/* Parses the text of a value and stores the value at the option's offset. Returns 0, or -1 through
 * tool_refuse. */
typedef int (*tool_read)(struct tool_line *line, const struct tool_option *option,
                         const char *text);

struct tool_option {
	const char *name;     /* as typed: "--nodes", "-o" */
	const char *argument; /* the name of the value in --help; NULL: the option is a flag */
	const char *help;
	size_t offset; /* in the tool's own struct */
	tool_read read;
	double low, high;    /* the range of a number, both ends included */
	const char *choices; /* "a|b|c" */
	/* a function that returns the names to choose from, the last one NULL; --help lists them after
	 * the text */
	const char *const *(*names)(void);
	/* what completion offers besides: words as in choices, and FILE for the names of files, which
	 * an argument with FILE in its name has by itself; and names as of `names` */
	const char *offer;
	const char *const *(*offer_names)(void);
	size_t count; /* of a list: the offset of its length */
	/* the commands or models that have the option, separated by blanks; NULL: all */
	const char *only;
	int line_only; /* not in a file of options (config.h): --help, --config */
};

/* The type of the field at the offset: an int that becomes 1; const char *; a choice as const char
 * *, or as its index, an int; int64_t; double. */
#define TOOL_FLAG .read = tool_read_flag
#define TOOL_TEXT .read = tool_read_text
#define TOOL_WORD(list) .read = tool_read_word, .choices = (list)
#define TOOL_NAME(list) .read = tool_read_name, .names = (list)
#define TOOL_CHOICE(list) .read = tool_read_choice, .choices = (list)
/* A flag with an optional choice, "--explain=full": 1 without a choice, 2 plus the index with
 * one. */
#define TOOL_LEVEL(list) .read = tool_read_level, .choices = (list)
#define TOOL_INTEGER(least, most) .read = tool_read_integer, .low = (least), .high = (most)
#define TOOL_REAL(least, most) .read = tool_read_real, .low = (least), .high = (most)
/* A method of halfgraph/order.h as text, or TOOL_ORIGINAL: the order in which the nodes came. */
#define TOOL_ORDER .read = tool_read_order, .offer_names = tool_order_names
#define TOOL_ORIGINAL "original"
const char *const *tool_order_names(void);
/* 2^53: up to here a double represents every integer exactly. */
#define TOOL_WHOLE 9007199254740992.0

int tool_read_flag(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_text(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_word(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_name(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_choice(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_level(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_integer(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_real(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_order(struct tool_line *line, const struct tool_option *option, const char *text);

enum { TOOL_OPTIONS = 128 };

struct tool_line {
	const struct tool_option *options;
	size_t count;
	void *to; /* the tool's own struct */
	/* Options that several tools share, and the struct that they fill; NULL: none. Together with
	 * the tool's own options at most TOOL_OPTIONS. */
	const struct tool_option *shared;
	size_t shared_count;
	void *shared_to;
	/* Handles a word that is not an option. Returns 0, or -1 through tool_refuse. NULL: such words
	 * are refused. */
	int (*operand)(struct tool_line *line, const char *word);
	void *target; /* the struct that the current option fills */
	/* of option k: was it given, and by a file (config.h), so that the command line wins? Shared
	 * options follow the tool's own */
	unsigned char given[TOOL_OPTIONS], filed[TOOL_OPTIONS];
	/* the values of the options that were given, as they were typed; NULL: a flag */
	const char *text[TOOL_OPTIONS];
	char message[512]; /* why the command line was refused */
};

/* Parse the command line. Returns 0, or -1 with one sentence in line->message. A value follows its
 * option as the next word or after '='; "--" ends the options; -h means --help. A flag that a file
 * has set is unset by "--flag=off". */
int tool_line_read(struct tool_line *line, int argc, char **argv);
int tool_refuse(struct tool_line *line, const char *format, ...) HG_PRINTF(2, 3);
/* Put the names of a list in one text, "a, b, c". Returns buffer. */
const char *tool_join(const char *const *names, const char *separator, char *buffer, size_t size);
/* Parse an integer in the option's range, up to `stop` or the end of the text; *rest is what
 * follows. `whole` is the complete text of the option, for the message. */
int tool_whole(struct tool_line *line, const struct tool_option *option, const char *whole,
               const char *text, char stop, int64_t *value, const char **rest);
/* Option number k of all: the tool's own, then the shared ones. */
size_t tool_option_count(const struct tool_line *line);
const struct tool_option *tool_option_at(const struct tool_line *line, size_t k);
/* Set option number k of all as a file of options does; text NULL: a flag. */
int tool_option_set(struct tool_line *line, size_t k, const char *text);
/* How many options were given. */
size_t tool_given_count(const struct tool_line *line);
/* Was the option of this name given? */
int tool_given(const struct tool_line *line, const char *name);
/* An option that was given although the command or model `name` does not have it; NULL: there is
 * none. */
const struct tool_option *tool_misfit(const struct tool_line *line, const char *name);

/* Print the options for --help, in lines of at most 96 columns. With `owners`, the commands or
 * models that have the option are named before its text. */
void tool_options_print(FILE *out, const struct tool_option *options, size_t count, int owners);
/* Print one row of another table of --help: the name, padded to `width`, and its text, wrapped in
 * the same way. */
void tool_row_print(FILE *out, int width, const char *name, const char *text);

#endif
