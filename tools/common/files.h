#ifndef HG_FILES_H
#define HG_FILES_H

#include <stddef.h>

#include "halfgraph/status.h"

/* The files that a command line names. */
enum tool_use {
	TOOL_READ,
	TOOL_RENEWED,  /* read, and may be replaced by what is written */
	TOOL_STREAMED, /* written line by line; "-" is standard output */
	TOOL_REPLACED, /* written as a whole (hg_file_write) */
};
struct tool_file {
	const char *option, *path; /* path NULL: it was not given */
	enum tool_use use;
	const char *what; /* of what is read: "the dataset itself" */
};

/* Nothing is written over what is read, no two things into one file, and what is to be replaced can
 * be: HG_ERR_ARG, and HG_ERR_IO, with one line in message[HG_DATA_MESSAGE]. */
HG_NODISCARD hg_status tool_files_check(const struct tool_file *files, size_t count, char *message);

#endif
