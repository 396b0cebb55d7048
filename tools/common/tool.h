#ifndef HG_TOOL_H
#define HG_TOOL_H

/* First in main. A standard stream that the caller closed gets a descriptor that fails, so that no file the tool opens can take its number and receive
 * what was printed; and a file-size limit (SIGXFSZ) becomes an error to report, instead of the end of the program with its temporary files left behind. */
void tool_begin(void);

/* Last in main: `return tool_finish("h5convert", code);`. Output that did not reach stdout (a full disk, a closed pipe) is said on stderr, and makes 1 of
 * the exit code 0. stdout is closed then. */
int tool_finish(const char *tool, int code);

/* Two names of one existing file: the same path, a symbolic or a hard link? */
int tool_same_file(const char *a, const char *b);

/* Seconds of a clock that no one sets. */
double tool_seconds(void);

/* Text of unknown origin for a terminal: control characters and bytes that are not UTF-8 become "\xHH". malloc'd; NULL: out of memory. */
char *tool_printable(const char *text);

#endif
