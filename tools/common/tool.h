#ifndef HG_TOOL_H
#define HG_TOOL_H

#include "halfgraph/export.h"
#include "halfgraph/status.h"

/* Exit codes of all tools. */
enum tool_code {
	TOOL_DONE = 0,
	TOOL_FAILED = 1,    /* the library or the machine did */
	TOOL_BAD_INPUT = 2, /* the command line or a file is wrong */
	TOOL_BAD_RUN = 3,   /* done, but the training that the tool made or looked at went wrong */
	TOOL_INTERRUPTED = 130
};
/* Of a call that failed: what is the user's to mend (2), and what the library's or the machine's
 * fault (1). */
int tool_code_of(hg_status status);

/* First in main, with its argv. OpenMP's threads soon fall asleep while they wait, unless the
 * user's environment says how
 * they wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT, KMP_BLOCKTIME): that takes loading the program a
 * second time. A standard
 * stream that the caller closed gets a descriptor that fails, so that no file the tool opens can
 * take its number and
 * receive what was printed; and a file-size limit (SIGXFSZ) becomes an error to report, instead of
 * the end of the program
 * with its temporary files left behind. */
void tool_begin(char **argv);

/* Last in main: `return tool_finish("h5convert", code);`. Output that did not reach stdout (a full
 * disk, a closed pipe) is said on stderr, and makes 1 of the exit code 0. stdout is closed then. */
int tool_finish(const char *tool, int code);

/* "TOOL: SENTENCE", a line on stderr. What comes from a command line or a file may hold anything;
 * it is printed as tool_printable says. */
void tool_say(const char *tool, const char *format, ...) HG_PRINTF(2, 3);

/* Seconds of a clock that no one sets. */
double tool_seconds(void);

/* Text of unknown origin for a terminal: control characters and bytes that are not UTF-8 become
 * "\xHH". malloc'd; NULL: out of memory. */
char *tool_printable(const char *text);

#endif
