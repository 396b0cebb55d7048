/* Find the files of a Planetoid dataset, which are called ind.NAME.MEMBER. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import/planetoid.h"

/* No ending is the end of another one. */
static const char *const endings[] = {".x",  ".tx",   ".allx",  ".y",
                                      ".ty", ".ally", ".graph", ".test.index"};

/* The length of NAME in "ind.NAME.MEMBER"; 0: it is another file. */
static size_t name_length(const char *file)
{
	const size_t length = strlen(file);
	for (size_t k = 0; strncmp(file, "ind.", 4) == 0 && k < sizeof endings / sizeof *endings; k++) {
		const size_t end = strlen(endings[k]);
		if (length > 4 + end && strcmp(file + length - end, endings[k]) == 0)
			return length - 4 - end;
	}
	return 0;
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* prefix := the first `folder` bytes of the path, a slash where there is none, and "ind.NAME". */
static hg_status set_prefix(struct hg__planetoid *p, const char *path, size_t folder,
                            const char *name, size_t length)
{
	const char *slash = folder > 0 && path[folder - 1] != '/' ? "/" : "";
	const size_t room = folder + length + 6;
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, p->message));
	free(p->prefix);
	p->prefix = memory;
	(void)snprintf(p->prefix, room, "%.*s%sind.%.*s", (int)folder, path, slash, (int)length, name);
	return HG_OK;
}

/* The only dataset in a folder. */
static hg_status find_in_folder(struct hg__planetoid *p, const char *path)
{
	DIR *folder = opendir(path);
	if (!folder)
		return hg__data_fail(p->message, HG_ERR_IO, "%s: %s", path, strerror(errno));
	hg_status status = HG_OK;
	const struct dirent *entry;
	while (status == HG_OK && (entry = readdir(folder))) {
		const size_t length = name_length(entry->d_name);
		const char *found = p->prefix ? file_of(p->prefix) + 4 : "";
		if (length == 0 || (strlen(found) == length && !strncmp(found, entry->d_name + 4, length)))
			continue;
		if (p->prefix)
			status = hg__data_fail(p->message, HG_ERR_FORMAT,
			                       "%s: holds several datasets, expected one: give ind.NAME or one "
			                       "of its files instead",
			                       path);
		else
			status = set_prefix(p, path, strlen(path), entry->d_name + 4, length);
	}
	closedir(folder);
	if (status == HG_OK && !p->prefix)
		return hg__data_fail(p->message, HG_ERR_FORMAT,
		                     "%s: holds no file ind.NAME.graph of a Planetoid dataset", path);
	return status;
}

hg_status hg__planetoid_find(struct hg__planetoid *p, const char *path)
{
	struct stat info;
	const char *file = file_of(path);
	const size_t folder = (size_t)(file - path), length = name_length(file);
	if (strlen(path) > HG__TEXT_MAX)
		return hg__data_fail(p->message, HG_ERR_ARG, "the path is longer than %d bytes",
		                     HG__TEXT_MAX);
	if (length > 0)
		return set_prefix(p, path, folder, file + 4, length);
	const int exists = stat(path, &info) == 0, missing = errno;
	if (exists && S_ISDIR(info.st_mode))
		return find_in_folder(p, path);
	if (strncmp(file, "ind.", 4) == 0 && file[4])
		return set_prefix(p, path, folder, file + 4, strlen(file + 4));
	if (!exists)
		return hg__data_fail(p->message, HG_ERR_IO, "%s: %s", path, strerror(missing));
	return hg__data_fail(p->message, HG_ERR_FORMAT,
	                     "%s: expected ind.NAME, one of its files (ind.NAME.x, y, tx, ty, allx, "
	                     "ally, graph, test.index), or their folder",
	                     path);
}

hg_status hg__planetoid_path(const struct hg__planetoid *p, const char *member, char **path)
{
	const size_t room = strlen(p->prefix) + strlen(member) + 2;
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, p->message));
	*path = memory;
	(void)snprintf(*path, room, "%s.%s", p->prefix, member);
	return HG_OK;
}
