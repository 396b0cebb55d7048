#ifndef HG_WATCH_H
#define HG_WATCH_H

#include "halfgraph/progress.h"

/* Show a line with percentage and remaining time on stderr during long work, if stderr is a
 * terminal and `show` is not 0. A Ctrl-C sets a flag that the library checks between two pieces of
 * work. watch_end restores the signal handlers. */
void watch_begin(int show);
void watch_end(void);
/* Between these two calls a second Ctrl-C does not end the program either, because a file is being
 * written. They may be called only after watch_begin. */
void watch_hold(void);
void watch_release(void);
const hg_progress *watch_progress(void);
int watch_interrupted(void);

#endif
