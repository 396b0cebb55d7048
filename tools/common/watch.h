#ifndef HG_WATCH_H
#define HG_WATCH_H

#include "halfgraph/progress.h"

/* A line on stderr with percentage and ETA while something takes long; only where stderr is a
 * terminal and `show` is not 0. Also the way a Ctrl-C reaches the library, which asks between two
 * pieces of work whether to go on. After watch_end signals do what they did before. */
void watch_begin(int show);
void watch_end(void);
/* Between these two a second Ctrl-C does not end the program either: a file is being written, and
 * no half of it stays. Only after watch_begin. */
void watch_hold(void);
void watch_release(void);
const hg_progress *watch_progress(void);
int watch_interrupted(void);

#endif
