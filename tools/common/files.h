#ifndef HG_FILES_H
#define HG_FILES_H

#include <stddef.h>

#include "halfgraph/status.h"

/* The files that a command line names. */
enum tool_use {
	TOOL_READ,
	TOOL_RENEWED,  /* read, and may be replaced by an output */
	TOOL_STREAMED, /* written line by line; "-" is standard output */
	TOOL_REPLACED, /* written as a whole (hg_file_write) */
};
struct tool_file {
	const char *option, *path; /* path NULL: the option was not given */
	enum tool_use use;
	const char *what; /* for messages about files that are read: "the dataset itself" */
};

/* Check that no output overwrites an input, that no two outputs share a file, and that a file can
 * be replaced. HG_ERR_ARG or HG_ERR_IO, with one line in message[HG_DATA_MESSAGE]. */
HG_NODISCARD hg_status tool_files_check(const struct tool_file *files, size_t count, char *message);

/* Check that a file can be written (hg_file_try). A signal leaves no file of the attempt. */
HG_NODISCARD hg_status tool_file_try(const char *path, char *message);

#endif
