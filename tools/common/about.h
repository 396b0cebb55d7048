#ifndef HG_TOOL_ABOUT_H
#define HG_TOOL_ABOUT_H

#include "commandline.h"
#include "tool.h"

/* What a tool says of itself. --help, the man page and the completion of shells are printed from
 * it, and from the table of its options. */

/* Gives row k, from 0. Returns 1, or 0 after the last one. */
typedef int (*tool_rows)(int k, struct tool_row *row);

/* A part with a title: lines of text, then the rows of a table. Both may be NULL. */
struct tool_part {
	const char *title; /* in small letters */
	const char *text;
	tool_rows rows;
	int width;       /* of the names of the rows in --help */
	int before_list; /* 1: it stands before the options, not after them */
};

/* A text consists of paragraphs, separated by empty lines, and of lines that begin with a blank,
 * which stay as they are. Every line ends with "\n" and has at most 100 columns. */
struct tool_about {
	const char *tool;
	const char *summary; /* completes "hg-train - ..." */
	const char *usage;   /* a line for each use, without the name of the tool */
	const char *text;    /* what it does */
	const char *examples;
	const struct tool_part *part; /* [parts] */
	int parts;
	const struct tool_option *options, *shared; /* shared ones are printed first */
	size_t count, shared_count;
	/* 1: name the commands or models that have an option (tool_options_print) */
	int owners;
	struct tool_codes codes;
	/* what completion offers where no option is typed: words, files, or nothing */
	tool_rows words;
	int files;
};

/* Print the text of --help. */
void tool_help_print(FILE *out, const struct tool_about *about);
/* manual.c: print the man page, in section 1, for man(7) of groff and mandoc. */
void tool_manual_print(FILE *out, const struct tool_about *about);
/* completion.c: print a script for one of TOOL_SHELLS that completes options and their values.
 * Returns 0, or -1 if there is no such shell. */
#define TOOL_SHELLS "bash|zsh|fish"
int tool_completion_print(FILE *out, const struct tool_about *about, const char *shell);

/* Every tool has two options that are for its installation, and not in --help: --man, and
 * --completion SHELL. Each is to stand alone. Returns 1 if one of them was given; then *code is the
 * exit code, and nothing is left to do. */
int tool_describes(const struct tool_about *about, int argc, char **argv, int *code);

#endif
