#define _POSIX_C_SOURCE 200809L
#include "files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "halfgraph/data.h"
#include "watch.h"

static int same_entry(const char *a, const char *b)
{
	struct stat x, y;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Copy the folder of a path, as a path, and return the file name in it. */
static const char *split_path(const char *path, char *folder, size_t size)
{
	const char *slash = strrchr(path, '/');
	(void)snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return slash ? slash + 1 : path;
}

/* Do both paths name the same file? The file may exist (the same path, a symbolic or a hard link),
 * or not yet. */
static int same_file(const char *a, const char *b)
{
	char in[2][4096];
	if (strcmp(a, b) == 0 || same_entry(a, b))
		return 1;
	return strcmp(split_path(a, in[0], sizeof in[0]), split_path(b, in[1], sizeof in[1])) == 0 &&
	       same_entry(in[0], in[1]);
}

static int is_file(const struct tool_file *f)
{
	return f->path && !(f->use == TOOL_STREAMED && strcmp(f->path, "-") == 0);
}

static int is_read(const struct tool_file *f)
{
	return f->use == TOOL_READ || f->use == TOOL_RENEWED;
}

/* May `out` be written although `other` is in use? */
static hg_status check_pair(const struct tool_file *out, const struct tool_file *other,
                            char *message)
{
	if (!is_file(other) || (other->use == TOOL_RENEWED && out->use == TOOL_REPLACED) ||
	    !same_file(out->path, other->path))
		return HG_OK;
	if (is_read(other))
		(void)snprintf(message, HG_DATA_MESSAGE, "%s %s is %s: it is not overwritten", out->option,
		               out->path, other->what);
	else
		(void)snprintf(message, HG_DATA_MESSAGE, "%s %s is also the file of %s: expected two files",
		               out->option, out->path, other->option);
	return HG_ERR_ARG;
}

/* A signal that ends the program waits until the file of the attempt is removed. */
hg_status tool_file_try(const char *path, char *message)
{
	watch_block();
	const hg_status status = hg_file_try(path, message);
	watch_unblock();
	return status;
}

hg_status tool_files_check(const struct tool_file *files, size_t count, char *message)
{
	for (size_t k = 0; k < count; k++) {
		const struct tool_file *out = &files[k];
		hg_status status = HG_OK;
		if (!is_file(out) || is_read(out))
			continue;
		if (strcmp(out->path, "-") == 0) {
			(void)snprintf(message, HG_DATA_MESSAGE, "%s is \"-\", expected the name of a file",
			               out->option);
			return HG_ERR_ARG;
		}
		for (size_t other = 0; other < count && status == HG_OK; other++)
			if (is_read(&files[other]) || other < k)
				status = check_pair(out, &files[other], message);
		if (status == HG_OK && out->use == TOOL_REPLACED)
			status = tool_file_try(out->path, message);
		if (status < 0)
			return status;
	}
	return HG_OK;
}
