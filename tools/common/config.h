#ifndef HG_TOOL_CONFIG_H
#define HG_TOOL_CONFIG_H

#include <jansson.h>

#include "commandline.h"
#include "halfgraph/status.h"

/* A command line as a file: one JSON object with the names of the options, without dashes. It comes
 * from the same tables, so every option can be in it, but for those that are `line_only`.
 *
 *    {"data": "cora.h5", "model": "gcn", "seeds": 10, "eager": true} */

/* Set the options as the file says. A file of JSON lines is read, too: its last line has them as
 * "config". Call it before tool_line_read, whose options win. Returns 0, or -1 with "FILE:LINE:
 * COLUMN: why" in line->message. *held owns the texts that options point to; json_decref frees it,
 * also after a failure. */
int tool_config_read(struct tool_line *line, const char *path, json_t **held);

/* The options that were given: the shared ones, then the tool's own. NULL: out of memory. */
json_t *tool_config_make(const struct tool_line *line);

/* Write such an object as a file for people, complete or not at all. */
HG_NODISCARD hg_status tool_config_write(const json_t *config, const char *path, char *message);

#endif
