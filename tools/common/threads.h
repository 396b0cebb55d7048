#ifndef HG_TOOL_THREADS_H
#define HG_TOOL_THREADS_H

/* Makes threads get on with other programs, and with each other beside them: the part of tool_begin
 * that comes first. */
void tool_threads(char **argv);

#endif
