/* Read the files of one dataset in a folder or archive, whose names begin alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/folder.h"

hg_status hg__folder_stem(struct hg__folder *f, const char *name, size_t length)
{
	HG__TRY(hg__data_copy_text(name, &f->stem, f->message));
	f->stem[length] = 0;
	return hg__folder_path(f, f->stem, &f->shown);
}

/* The name STEM PART, or STEM PART.gz where only that exists, malloc'd; *has: is there a file? */
static hg_status find_part(const struct hg__folder *f, const char *part, char **name, int *has)
{
	const size_t room = strlen(f->stem) + strlen(part) + 4;
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)room, 1, "a path", &memory, f->message));
	*name = memory;
	(void)snprintf(*name, room, "%s%s.gz", f->stem, part);
	char *ending = *name + room - 4;
	*ending = 0;
	*has = hg__folder_has(f, *name);
	if (*has)
		return HG_OK;
	*ending = '.';
	*has = hg__folder_has(f, *name);
	if (!*has)
		*ending = 0;
	return HG_OK;
}

hg_status hg__folder_part(const struct hg__folder *f, const char *part, char **name)
{
	int has = 0;
	return find_part(f, part, name, &has);
}

void hg__folder_show(const struct hg__folder *f, const char *part, char shown[HG_DATA_MESSAGE])
{
	const size_t length = strlen(f->root);
	const char *slash = length > 0 && f->root[length - 1] != '/' ? "/" : "";
	(void)snprintf(shown, HG_DATA_MESSAGE, "%s%s%s%s", f->root, slash, f->stem, part);
}

int hg__folder_has_part(const struct hg__folder *f, const char *part)
{
	char *name = NULL;
	int has = 0;
	if (find_part(f, part, &name, &has) < 0)
		return 1; /* reading it reports that memory ran out */
	free(name);
	return has;
}

struct adder {
	hg_status (*add)(const struct lines *, const char *, void *);
	void *to;
};

static hg_status add_lines(struct lines *lines, void *to)
{
	const struct adder *adder = to;
	char *line = NULL;
	for (;;) {
		HG__TRY(hg__lines_next(lines, &line));
		if (!line)
			return HG_OK;
		line += strspn(line, " \t");
		if (*line)
			HG__TRY(adder->add(lines, line, adder->to));
	}
}

hg_status hg__folder_read(const struct hg__folder *f, const char *part,
                          hg_status (*add)(const struct lines *, const char *, void *), void *to)
{
	char *name = NULL;
	HG__TRY(hg__folder_part(f, part, &name));
	const hg_status status = hg__folder_text(f, name, add_lines, &(struct adder){add, to});
	free(name);
	return status;
}

hg_status hg__folder_name(const struct hg__folder *f, hg_dataset *d)
{
	size_t end = strlen(f->shown);
	while (end > 0 && (f->shown[end - 1] == '/'))
		end--;
	size_t begin = end;
	while (begin > 0 && f->shown[begin - 1] != '/')
		begin--;
	HG__TRY(hg__data_copy_text(f->shown + begin, &d->name, f->message));
	d->name[end - begin] = 0;
	if (end - begin > 4 && strcmp(d->name + end - begin - 4, ".zip") == 0)
		d->name[end - begin - 4] = 0;
	return HG_OK;
}
