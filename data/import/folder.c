/* Read the files of a folder or zip archive by their names. */
#include "import/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/archive.h"

/* More files than this are not a dataset but the wrong folder, such as a home directory. */
#define FILES_MAX 100000
/* "split/NAME/train.csv.gz" of OGB has three levels. */
#define LEVELS 3

int hg__folder_is(const char *path)
{
	struct stat info;
	char magic[2] = "";
	if (stat(path, &info) != 0)
		return 0;
	if (S_ISDIR(info.st_mode))
		return 1;
	if (!S_ISREG(info.st_mode))
		return 0; /* what is read of a pipe is lost */
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const int yes = fd >= 0 && read(fd, magic, 2) == 2 && memcmp(magic, "PK", 2) == 0;
	if (fd >= 0)
		close(fd);
	return yes;
}

static hg_status set_root(struct hg__folder *f, const char *path, size_t length)
{
	while (length > 1 && path[length - 1] == '/')
		length--;
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a path", &memory, f->message));
	f->root = memory;
	memcpy(f->root, path, length);
	f->root[length] = 0;
	return HG_OK;
}

hg_status hg__folder_open(struct hg__folder *f, const char *path, const hg_progress *progress,
                          char *message)
{
	struct stat info;
	*f = (struct hg__folder){.progress = progress, .message = message};
	HG__TRY(set_root(f, path, strlen(path)));
	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return HG_OK;
	return hg__zip_open(path, &f->zip, &f->mark, message);
}

hg_status hg__folder_open_around(struct hg__folder *f, const char *path,
                                 const hg_progress *progress, char *message)
{
	const char *slash = strrchr(path, '/');
	*f = (struct hg__folder){.progress = progress, .message = message};
	return set_root(f, path, slash ? (size_t)(slash - path) + (slash == path) : 0);
}

void hg__folder_close(struct hg__folder *f)
{
	for (int64_t k = 0; k < f->count; k++)
		free(f->name[k]);
	free(f->name);
	free(f->root);
	free(f->stem);
	free(f->shown);
	if (f->zip)
		zip_discard(f->zip);
	*f = (struct hg__folder){0};
}

hg_status hg__folder_path(const struct hg__folder *f, const char *name, char **path)
{
	const size_t length = strlen(f->root), room = length + strlen(name) + 2;
	const char *slash = length > 0 && f->root[length - 1] != '/' && *name ? "/" : "";
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, f->message));
	*path = memory;
	(void)snprintf(*path, room, "%s%s%s", f->root, slash, name);
	return HG_OK;
}

/* ---- the list ---- */

static hg_status add_name(struct hg__folder *f, const char *name)
{
	if (f->count == FILES_MAX)
		return hg__data_fail(f->message, HG_ERR_FORMAT,
		                     "%s: holds more than %d files: not a dataset", f->root, FILES_MAX);
	if (f->count == f->room) {
		const int64_t room = 2 * f->room + 64;
		HG__TRY(
		    hg__data_grow((void **)&f->name, room, sizeof *f->name, "a list of files", f->message));
		f->room = room;
	}
	HG__TRY(hg__data_copy_text(name, &f->name[f->count], f->message));
	f->count++;
	return HG_OK;
}

/* Is a part of the name hidden, or of the folder that macOS adds to archives? */
static int is_hidden(const char *name)
{
	return *name == '.' || strstr(name, "/.") || strncmp(name, "__MACOSX/", 9) == 0;
}

static hg_status list_zip(struct hg__folder *f)
{
	const zip_int64_t members = zip_get_num_entries(f->zip, 0);
	for (zip_int64_t k = 0; k < members; k++) {
		const char *name = zip_get_name(f->zip, (zip_uint64_t)k, 0);
		if (name && *name && !is_hidden(name) && name[strlen(name) - 1] != '/')
			HG__TRY(add_name(f, name));
	}
	return HG_OK;
}

static hg_status list_level(struct hg__folder *f, const char *below, int level);

/* Add one entry of the folder `below` ("": the root) to the list, or list the folder that it is. */
static hg_status list_entry(struct hg__folder *f, const char *below, const char *entry, int level)
{
	struct stat info;
	char *path = NULL;
	void *memory = NULL;
	const size_t room = strlen(below) + strlen(entry) + 2;
	HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, f->message));
	char *name = memory;
	(void)snprintf(name, room, "%s%s%s", below, *below ? "/" : "", entry);
	hg_status status = hg__folder_path(f, name, &path);
	if (status == HG_OK && stat(path, &info) == 0) {
		if (S_ISDIR(info.st_mode))
			status = level < LEVELS ? list_level(f, name, level + 1) : HG_OK;
		else
			status = add_name(f, name);
	}
	free(path);
	free(name);
	return status;
}

static hg_status list_level(struct hg__folder *f, const char *below, int level)
{
	char *path = NULL;
	HG__TRY(hg__folder_path(f, below, &path));
	DIR *folder = opendir(*path ? path : ".");
	hg_status status =
	    folder ? HG_OK : hg__data_fail(f->message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	const struct dirent *entry;
	while (status == HG_OK && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			status = list_entry(f, below, entry->d_name, level);
	if (folder)
		closedir(folder);
	free(path);
	return status;
}

static int ascending(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

hg_status hg__folder_list(struct hg__folder *f)
{
	HG__TRY(f->zip ? list_zip(f) : list_level(f, "", 1));
	if (f->count > 0)
		qsort(f->name, (size_t)f->count, sizeof *f->name, ascending);
	return HG_OK;
}

hg_status hg__folder_find(const struct hg__folder *f, const char *pattern, const char **name)
{
	*name = NULL;
	for (int64_t k = 0; k < f->count; k++) {
		if (fnmatch(pattern, f->name[k], 0) != 0)
			continue;
		if (*name)
			return hg__data_fail(f->message, HG_ERR_FORMAT,
			                     "%s: holds %s and %s, expected one file %s", f->root, *name,
			                     f->name[k], pattern);
		*name = f->name[k];
	}
	return HG_OK;
}

/* ---- one file ---- */

int hg__folder_has(const struct hg__folder *f, const char *name)
{
	char *path = NULL;
	if (f->zip)
		return zip_name_locate(f->zip, name, 0) >= 0;
	if (hg__folder_path(f, name, &path) < 0)
		return 1; /* opening it reports that memory ran out */
	const int exists = access(path, F_OK) == 0;
	free(path);
	return exists;
}

hg_status hg__folder_bytes(const struct hg__folder *f, const char *name, const char *path,
                           struct hg__bytes *bytes)
{
	zip_stat_t info;
	*bytes = (struct hg__bytes){.fd = -1};
	if (!f->zip)
		return hg__bytes_open(bytes, path, f->progress, f->message);
	zip_stat_init(&info);
	if (zip_stat(f->zip, name, 0, &info) != 0)
		return hg__data_fail(f->message, HG_ERR_FORMAT, "%s: no such member", path);
	HG__TRY(hg__zip_check(&info, f->mark.bytes, path, f->message));
	zip_file_t *member = zip_fopen(f->zip, name, 0);
	if (!member)
		return hg__data_fail(f->message, HG_ERR_FORMAT, "%s: %s", path, zip_strerror(f->zip));
	return hg__bytes_open_member(bytes, member, (int64_t)info.size, f->root, &f->mark, path,
	                             f->progress, f->message);
}

hg_status hg__folder_lines(const struct hg__folder *f, const char *name, struct lines *lines)
{
	*lines = (struct lines){.message = f->message, .bytes.fd = -1};
	HG__TRY(hg__folder_path(f, name, &lines->owned));
	lines->path = lines->owned;
	HG__TRY(hg__folder_bytes(f, name, lines->path, &lines->bytes));
	return hg__lines_begin(lines);
}

hg_status hg__folder_text(const struct hg__folder *f, const char *name,
                          hg_status (*read)(struct lines *, void *), void *to)
{
	struct lines lines;
	hg_status status = hg__folder_lines(f, name, &lines);
	if (status == HG_OK)
		status = read(&lines, to);
	hg__lines_close(&lines);
	return status;
}
