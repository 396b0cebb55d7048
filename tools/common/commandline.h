#ifndef HG_COMMANDLINE_H
#define HG_COMMANDLINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "halfgraph/export.h"

/* The command line of a tool: one table of its options makes parsing, checking and --help. */

struct tool_line;
struct tool_option;
/* Puts the value's text where the option says. 0, or -1 through tool_refuse. */
typedef int (*tool_read)(struct tool_line *line, const struct tool_option *option,
                         const char *text);

struct tool_option {
	const char *name;     /* as it is typed: "--nodes", "-o" */
	const char *argument; /* what --help calls its value; NULL: a flag */
	const char *help;
	size_t place; /* in the tool's own struct */
	tool_read read;
	double low, high;    /* of a number, both included */
	const char *choices; /* "a|b|c" */
	size_t count;        /* of a list: the place of its length */
	/* what alone has it: commands, a model; blanks part them. NULL: everything */
	const char *only;
};

/* What a place holds: int 1; const char *; one of the choices, as const char * or as its number, an
 * int; int64_t; double. */
#define TOOL_FLAG .read = tool_read_flag
#define TOOL_TEXT .read = tool_read_text
#define TOOL_WORD(list) .read = tool_read_word, .choices = (list)
#define TOOL_CHOICE(list) .read = tool_read_choice, .choices = (list)
/* A flag that may be given with one of the choices, "--explain=full": 1, or 2 and more by its
 * number. */
#define TOOL_LEVEL(list) .read = tool_read_level, .choices = (list)
#define TOOL_INTEGER(least, most) .read = tool_read_integer, .low = (least), .high = (most)
#define TOOL_REAL(least, most) .read = tool_read_real, .low = (least), .high = (most)
/* A method of halfgraph/order.h, or TOOL_ORIGINAL: the order as it is, or was. Text. */
#define TOOL_ORDER .read = tool_read_order
#define TOOL_ORIGINAL "original"
/* 2^53: up to here every whole number is a double. */
#define TOOL_WHOLE 9007199254740992.0

int tool_read_flag(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_text(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_word(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_choice(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_level(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_integer(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_real(struct tool_line *line, const struct tool_option *option, const char *text);
int tool_read_order(struct tool_line *line, const struct tool_option *option, const char *text);

struct tool_line {
	const struct tool_option *options;
	size_t count;
	void *to; /* the tool's own struct */
	/* Options that several tools have, and what they fill; NULL: none. With the tool's own at most
	 * 64. */
	const struct tool_option *shared;
	size_t shared_count;
	void *shared_to;
	/* A word that is no option. 0, or -1 through tool_refuse. NULL: there are none. */
	int (*operand)(struct tool_line *line, const char *word);
	void *at;          /* what the option that is being read fills */
	uint64_t given;    /* bit k: option k was given, the shared ones after the tool's own */
	char message[512]; /* why a word was refused */
};

/* 0, or -1 with one sentence in line->message. A value follows its option as the next word or after
 * '='; "--" ends the options; -h is --help. */
int tool_line_read(struct tool_line *line, int argc, char **argv);
int tool_refuse(struct tool_line *line, const char *format, ...) HG_PRINTF(2, 3);
/* A whole number in the option's range, up to `stop` or the end; *rest is what follows. `whole` is
 * the option's text, for the sentence. */
int tool_whole(struct tool_line *line, const struct tool_option *option, const char *whole,
               const char *text, char stop, int64_t *value, const char **rest);
/* Was the option of this name given? */
int tool_given(const struct tool_line *line, const char *name);
/* An option that was given and that `name` does not have; NULL: there is none. */
const struct tool_option *tool_misfit(const struct tool_line *line, const char *name);

/* The options' part of --help; with `owners`, the name of what alone has an option goes before its
 * text. */
void tool_options_print(FILE *out, const struct tool_option *options, size_t count, int owners);

#endif
