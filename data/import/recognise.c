/* Recognise the format of an input: a folder or archive by the names of the files in it, a file by
 * its first bytes, and by its name where they do not tell. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "import/folder.h"
#include "import/importers.h"
#include "import/number.h"

static const hg_importer *importer_called(const char *name)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	for (size_t k = 0; k < count; k++)
		if (strcmp(table[k].name, name) == 0)
			return &table[k];
	return NULL;
}

/* ---- by the names of files ---- */

/* Does the path end like this, or does the name of the file match, where the ending has a star? */
static int ends_with(const char *path, const char *ending, size_t length)
{
	const char *slash = strrchr(path, '/');
	const size_t n = strlen(path);
	char pattern[64] = "";
	if (!memchr(ending, '*', length))
		return n >= length && strncmp(path + n - length, ending, length) == 0;
	if (length < sizeof pattern)
		memcpy(pattern, ending, length);
	return fnmatch(pattern, slash ? slash + 1 : path, 0) == 0;
}

static const hg_importer *by_ending(const char *path)
{
	size_t count = 0;
	const hg_importer *table = hg_importers(&count);
	for (size_t k = 0; k < count; k++)
		for (const char *at = table[k].endings; *at;) {
			const size_t length = strcspn(at, " ");
			if (ends_with(path, at, length))
				return &table[k];
			at += length + strspn(at + length, " ");
		}
	return NULL;
}

struct sign {
	const char *pattern, *format;
};
/* Files that only datasets of one format have. A star also matches slashes. */
static const struct sign signs[] = {{"*ind.*.graph", "planetoid"},
                                    {"*_A.txt", "tu"},
                                    {"*10fold_idx/test_idx-1.txt", "gin"},
                                    {"*_target.csv", "musae"},
                                    {"*_target.csv.gz", "musae"},
                                    {"*raw/edge.csv.gz", "ogb"},
                                    {"*raw/data.npz", "ogb"}};
enum { SIGNS = sizeof signs / sizeof signs[0] };
/* Files with names that many programs use count where there is no other sign, in this order. Loose
 * numpy arrays lie in many folders, so only an archive of them counts. */
static const struct sign weak_signs[] = {
    {"metadata.yaml", "graphbolt"}, {"meta.yaml", "dgl-csv"}, {"*.npy", "npz"}};
enum { WEAK_SIGNS = sizeof weak_signs / sizeof weak_signs[0] };

static hg_status by_files(const struct hg__folder *f, const hg_importer **importer)
{
	const char *file = NULL;
	for (int64_t k = 0; k < f->count; k++)
		for (int s = 0; s < SIGNS; s++) {
			if (fnmatch(signs[s].pattern, f->name[k], 0) != 0)
				continue;
			const hg_importer *found = importer_called(signs[s].format);
			if (*importer && *importer != found)
				return hg__data_fail(f->message, HG_ERR_FORMAT,
				                     "%s: holds %s of the format %s and %s of the format %s: add "
				                     "--from FORMAT",
				                     f->root, file, (*importer)->name, f->name[k], found->name);
			*importer = found;
			file = f->name[k];
		}
	return HG_OK;
}

static void by_weak_signs(const struct hg__folder *f, const hg_importer **importer)
{
	for (int s = 0; s < WEAK_SIGNS; s++)
		for (int64_t k = 0; k < f->count && !*importer; k++) {
			const char *slash = strrchr(f->name[k], '/'), *file = slash ? slash + 1 : f->name[k];
			if (fnmatch(weak_signs[s].pattern, file, 0) == 0 &&
			    (f->zip || weak_signs[s].pattern[0] != '*'))
				*importer = importer_called(weak_signs[s].format);
		}
}

static hg_status look_inside(const char *path, const hg_importer **importer, char *message)
{
	struct hg__folder folder;
	hg_status status = hg__folder_open(&folder, path, NULL, message);
	if (status == HG_OK)
		status = hg__folder_list(&folder);
	if (status == HG_OK)
		status = by_files(&folder, importer);
	if (status == HG_OK)
		by_weak_signs(&folder, importer);
	hg__folder_close(&folder);
	return status;
}

/* ---- by the first bytes ---- */

/* text [room] := what the file begins with, inflated; "" where it cannot be read. */
static void read_beginning(const char *path, char *text, size_t room)
{
	struct hg__bytes bytes;
	size_t used = 0, got = 1;
	hg_status status = hg__bytes_open(&bytes, path, NULL, NULL);
	while (status == HG_OK && got > 0 && used + 1 < room) {
		status = hg__bytes_read(&bytes, text + used, room - 1 - used, &got);
		used += status == HG_OK ? got : 0;
	}
	hg__bytes_close(&bytes);
	text[used] = 0;
}

/* Count the fields of the line at *at if all are whole numbers, and go to the next line; -1: they
 * are not. */
static int count_numbers(const char **at)
{
	int count = 0;
	int64_t value = 0;
	const size_t length = strcspn(*at, "\r\n");
	char line[128] = "";
	const char *c = line;
	if (length >= sizeof line)
		return -1;
	memcpy(line, *at, length);
	*at += length + strspn(*at + length, "\r\n");
	for (c = hg__skip_separators(c); *c; count++)
		if (!hg__lines_whole(&c, &value))
			return -1;
	return count;
}

/* The text of GIN begins with one number, the graphs, and the line "nodes label". */
static int is_gin(const char *text)
{
	return count_numbers(&text) == 1 && count_numbers(&text) == 2;
}

static const hg_importer *by_beginning(const char *path)
{
	static const char banner[] = "%%MatrixMarket", signature[] = "\211HDF\r\n\032\n";
	char text[1024] = "", word[sizeof banner] = "";
	read_beginning(path, text, sizeof text);
	memcpy(word, text, sizeof banner - 1);
	if (memcmp(text, signature, 8) == 0 || memcmp(text + 512, signature, 8) == 0)
		return ends_with(path, ".h5ad", 5) ? importer_called("h5ad") : importer_called("h5");
	if (hg__same_word(word, banner))
		return importer_called("mtx");
	const size_t length = strlen(path);
	const int is_text = length > 4 && strcmp(path + length - 4, ".txt") == 0;
	return is_text && is_gin(text) ? importer_called("gin") : NULL;
}

hg_status hg_import_recognise(const char *path, const hg_importer **importer, char *message)
{
	struct stat info;
	if (!path || !importer)
		return hg__data_fail(message, HG_ERR_ARG, "import_recognise: %s is NULL",
		                     path ? "importer" : "path");
	const hg_importer *found = NULL;
	*importer = NULL;
	const int exists = stat(path, &info) == 0, reason = errno;
	if (hg__folder_is(path))
		HG__TRY(look_inside(path, &found, message));
	else if (exists && S_ISREG(info.st_mode)) /* what is read of a pipe is lost */
		found = by_beginning(path);
	*importer = found ? found : by_ending(path);
	if (*importer)
		return HG_OK;
	if (exists && S_ISDIR(info.st_mode))
		return hg__data_fail(message, HG_ERR_FORMAT,
		                     "%s: what this folder holds does not identify the format: add --from "
		                     "FORMAT",
		                     path);
	if (!exists)
		return hg__data_fail(message, HG_ERR_IO, "%s: %s", path, strerror(reason));
	return hg__data_fail(message, HG_ERR_FORMAT,
	                     "%s: its ending does not identify the format: add --from FORMAT", path);
}
