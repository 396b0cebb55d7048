#ifndef HG_WATCH_H
#define HG_WATCH_H

#include "halfgraph/progress.h"

/* SIGINT (Ctrl-C), SIGTERM and SIGHUP end a tool with TOOL_INTERRUPTED from its first line on:
 * tool_begin blocks them, and installs the handlers when it will not execute the program again. */
void watch_block(void);
void watch_unblock(void);
void watch_install(void);

/* From watch_begin on the first signal sets a flag, which the library checks between two pieces of
 * work, and the second ends the program at once; watch_end undoes it. Long work shows a line with
 * percentage and remaining time on stderr, if stderr is a terminal and `show` is not 0. */
void watch_begin(int show);
void watch_end(void);
/* Between these two calls a second signal does not end the program either, because a file is being
 * written. */
void watch_hold(void);
void watch_release(void);
const hg_progress *watch_progress(void);
int watch_interrupted(void);

#endif
