#ifndef HG_TOOL_THREADS_H
#define HG_TOOL_THREADS_H

/* Configure how threads wait and how they are scheduled, so that the tool runs well beside other
 * programs. tool_begin calls this first. */
void tool_threads(char **argv);

#endif
