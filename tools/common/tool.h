#ifndef HG_TOOL_H
#define HG_TOOL_H

#include <stdio.h>

#include "halfgraph/export.h"
#include "halfgraph/status.h"

/* Exit codes of all tools. */
enum tool_code {
	TOOL_DONE = 0,
	TOOL_FAILED = 1, /* the library or the machine failed, or an output broke off */
	/* the command line or a file is wrong, or an output cannot be opened, which is found before the
	 * work begins */
	TOOL_BAD_INPUT = 2,
	TOOL_BAD_RUN = 3, /* done, but the training run that the tool made or examined went wrong */
	TOOL_INTERRUPTED = 130
};
/* The exit code for a failed call: TOOL_BAD_INPUT if the user can correct the cause, TOOL_FAILED if
 * it is in the library or the machine. */
int tool_code_of(hg_status status);

/* A row of a table of --help: its name, and what it is. */
struct tool_row {
	const char *name, *text;
};

/* What the codes mean in a tool, for --help. */
struct tool_codes {
	const char *done;
	const char *failed;  /* what else ends with 1: "a result is wrong, "; or NULL */
	const char *bad_run; /* NULL: the tool has no TOOL_BAD_RUN */
	const char *interrupted;
};
void tool_codes_print(FILE *out, const struct tool_codes *codes);
/* The same as rows, row[TOOL_CODES], of which it returns the number. `failed` holds the text of one
 * of them. */
enum { TOOL_CODES = 5, TOOL_CODE_TEXT = 160 };
int tool_codes_list(const struct tool_codes *codes, char failed[TOOL_CODE_TEXT],
                    struct tool_row *row);

/* Call this first in main, with its argv. From here on a signal ends the tool with
 * TOOL_INTERRUPTED (watch.h). It makes waiting OpenMP threads sleep soon, unless the
 * user's environment configures their waiting (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME); for
 * that the program executes itself a second time. A standard stream that the parent closed gets a
 * descriptor whose every use fails; otherwise a file that the tool opens could take its number and
 * receive printed text. A write beyond the file-size limit (SIGXFSZ) becomes an error to report
 * instead of ending the program and leaving temporary files. */
void tool_begin(char **argv);

/* For tools that save their work at the end: a reader of stdout that leaves (`| head`) makes a
 * write fail, which is reported, instead of ending the program by SIGPIPE before it saves. */
void tool_outlive_reader(void);

/* Call this last in main: `return tool_finish("h5convert", code);`. It closes stdout. If output did
 * not reach stdout (a full disk, a closed pipe), it prints that on stderr and turns the exit code 0
 * into 1. */
int tool_finish(const char *tool, int code);

/* Print "TOOL: SENTENCE" as one line on stderr. Text from a command line or a file may hold any
 * bytes; it is printed as tool_printable does. */
void tool_say(const char *tool, const char *format, ...) HG_PRINTF(2, 3);

/* Seconds of a monotonic clock. */
double tool_seconds(void);

/* Make text of unknown origin safe for a terminal: control characters and bytes that are not UTF-8
 * become "\xHH". Returns malloc'd text, or NULL if memory ran out. */
char *tool_printable(const char *text);

#endif
