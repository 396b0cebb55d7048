/* Find and read the files of a TU Dortmund dataset. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/tu.h"

static const char ending[] = "_A.txt";

/* The length of STEM in "STEM_A.txt"; 0: it is another name. */
static size_t stem_length(const char *name)
{
	const size_t length = strlen(name), end = sizeof ending - 1;
	return length > end && strcmp(name + length - end, ending) == 0 && name[length - end - 1] != '/'
	           ? length - end
	           : 0;
}

static hg_status set_stem(struct hg__tu_files *p, const char *name)
{
	HG__TRY(hg__folder_stem(&p->folder, name, stem_length(name)));
	p->path = p->folder.shown;
	return HG_OK;
}

hg_status hg__tu_find(struct hg__tu_files *p, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *found = NULL;
	if (stem_length(path) > 0) {
		HG__TRY(hg__folder_open_around(&p->folder, path, p->config.progress, p->message));
		return set_stem(p, file);
	}
	const size_t length = strlen(path);
	if (length > 4 && strcmp(path + length - 4, ".txt") == 0)
		return hg__data_fail(p->message, HG_ERR_FORMAT,
		                     "%s: expected the file NAME_A.txt of a TU dataset, with the other "
		                     "files beside it, or their folder or zip archive",
		                     path);
	HG__TRY(hg__folder_open(&p->folder, path, p->config.progress, p->message));
	HG__TRY(hg__folder_list(&p->folder));
	HG__TRY(hg__folder_find(&p->folder, "*_A.txt", &found));
	if (!found || stem_length(found) == 0)
		return hg__data_fail(p->message, HG_ERR_FORMAT,
		                     "%s: holds no file NAME_A.txt of a TU dataset", path);
	return set_stem(p, found);
}

/* A part is called "_A.txt"; the longest name, of graph_attributes, fits. */
static void name_part(const char *part, char name[32])
{
	(void)snprintf(name, 32, "_%s.txt", part);
}

int hg__tu_has(const struct hg__tu_files *p, const char *part)
{
	char name[32];
	name_part(part, name);
	return hg__folder_has_part(&p->folder, name);
}

hg_status hg__tu_read(const struct hg__tu_files *p, const char *part, int optional,
                      hg_status (*add)(const struct lines *, const char *, void *), void *to)
{
	char name[32];
	name_part(part, name);
	return optional && !hg__folder_has_part(&p->folder, name)
	           ? HG_OK
	           : hg__folder_read(&p->folder, name, add, to);
}

hg_status hg__tu_expect(const struct hg__tu_files *p, const char *part, int64_t found,
                        int64_t expected, const char *what)
{
	if (found == expected)
		return HG_OK;
	return hg__data_fail(p->message, HG_ERR_FORMAT,
	                     "%s_%s.txt: %" PRId64 " lines for %" PRId64 " %s", p->path, part, found,
	                     expected, what);
}
