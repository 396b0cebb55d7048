/* A file that changes while it is read is refused: what was read is neither the old nor the new
 * one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "sets.h"

enum change { APPEND, CUT, TOUCH, REPLACE, CHANGES, HALVE };

/* What a callback does to a file at the given call, counted from 1. */
struct plan {
	char path[256];
	enum change change;
	int at, calls;
};

static void apply(const struct plan *p)
{
	struct stat info;
	FILE *file;
	char other[280];
	CHECK(stat(p->path, &info) == 0);
	switch (p->change) {
	case APPEND:
		file = fopen(p->path, "ab");
		CHECK(file != NULL && fputs("\n", file) >= 0 && fclose(file) == 0);
		break;
	case CUT:
		CHECK(truncate(p->path, info.st_size - 1) == 0);
		break;
	case HALVE:
		CHECK(truncate(p->path, info.st_size / 2) == 0);
		break;
	case TOUCH: { /* another program wrote as many bytes a second later */
		struct timespec times[2] = {info.st_atim, info.st_mtim};
		times[1].tv_sec++;
		CHECK(utimensat(AT_FDCWD, p->path, times, 0) == 0);
		break;
	}
	default: { /* another file is renamed to this one, as long and as old */
		size_t count = 0;
		struct timespec times[2] = {info.st_atim, info.st_mtim};
		unsigned char *bytes = read_bytes(p->path, &count);
		snprintf(other, sizeof other, "%s.new", p->path);
		write_bytes(other, bytes, count);
		free(bytes);
		CHECK(utimensat(AT_FDCWD, other, times, 0) == 0 && rename(other, p->path) == 0);
	}
	}
}

static int on_step(void *user, const char *what, int64_t done, int64_t total)
{
	struct plan *p = user;
	(void)what;
	(void)done;
	(void)total;
	if (++p->calls == p->at)
		apply(p);
	return 0;
}

static void on_note(void *user, const char *sentence)
{
	(void)sentence;
	(void)on_step(user, NULL, 0, 0);
}

static hg_status import(const char *format, const char *path, struct plan *p, hg_dataset **d,
                        char *message)
{
	size_t count = 0, k = 0;
	const hg_importer *table = hg_importers(&count);
	const hg_progress progress = {.step = on_step, .user = p};
	hg_import_config config = HG_IMPORT_CONFIG_INIT;
	/* of AnnData only a note is heard */
	if (strcmp(format, "h5ad") == 0) {
		config.note = on_note;
		config.user = p;
	} else {
		config.progress = &progress;
	}
	while (strcmp(table[k].name, format) != 0)
		CHECK(++k < count);
	return table[k].import(&path, 1, &config, d, message);
}

/* One import of the set, or of the archive `zip` of it, with a change at call `at` (0: none). */
static hg_status run(const struct small_set *set, const char *zip, enum change change, int at,
                     struct plan *p, char *message)
{
	hg_dataset *d = NULL;
	char path[256];
	small_set_make(set, NULL, NULL);
	if (zip)
		small_set_pack(set, zip, -1);
	*p = (struct plan){.change = change, .at = at};
	snprintf(p->path, sizeof p->path, "%s", zip ? scratch(2, zip) : small_set_path(set->files[0]));
	snprintf(path, sizeof path, "%s", zip ? p->path : small_set_path(set->input));
	const hg_status status = import(set->format, path, p, &d, message);
	CHECK((d != NULL) == (status == HG_OK));
	hg_dataset_free(d);
	return status;
}

/* A change at any call of the watcher. Before the file is opened and after its end it does not
 * matter, in between it must be found. */
static void check_changes(const struct small_set *set, const char *zip)
{
	char message[HG_DATA_MESSAGE] = "";
	struct plan p;
	CHECK_MSG(run(set, zip, APPEND, 0, &p, message) == HG_OK, "%s: %s", set->format, message);
	const int calls = p.calls, by_name = zip || strcmp(set->format, "npz") == 0;
	CHECK_MSG(calls > 0, "%s reports no progress", set->format);
	for (int change = APPEND; change < CHANGES; change++) {
		int found = 0;
		for (int at = 1; at <= calls; at++) {
			const hg_status status = run(set, zip, (enum change)change, at, &p, message);
			if (status == HG_OK || !strstr(message, "changed while it was read"))
				continue;
			found++;
			CHECK_EQ_I(status, HG_ERR_IO);
			CHECK_CONTAINS(message, p.path);
		}
		/* the file that another one is renamed to is still read to its end */
		const int expected = change != REPLACE || by_name;
		CHECK_MSG((found > 0) == expected, "%s%s: change %d was found at %d of %d calls",
		          set->format, zip ? " archive" : "", change, found, calls);
	}
}

static const struct small_set *set_called(const char *format)
{
	for (int k = 0; k < small_set_count; k++)
		if (strcmp(small_sets[k].format, format) == 0)
			return &small_sets[k];
	test_fail(__FILE__, __LINE__, "no set %s", format);
}

static void changes_of_files_are_found(void)
{
	for (int k = 0; k < small_set_count; k++)
		check_changes(&small_sets[k], NULL);
}

static void changes_of_archives_are_found(void)
{
	static const char *const formats[] = {"tu", "gin", "musae", "ogb", "graphbolt", "dgl-csv"};
	for (size_t k = 0; k < sizeof formats / sizeof formats[0]; k++)
		check_changes(set_called(formats[k]), "set.zip");
}

/* A long file is cut in the middle of a line, or of what gzip made of it. */
static void cutting_long_files_is_found(void)
{
	for (int packed = 0; packed < 2; packed++) {
		char message[HG_DATA_MESSAGE] = "";
		hg_dataset *d = NULL;
		struct plan p = {.change = HALVE, .at = 1};
		snprintf(p.path, sizeof p.path, "%s", scratch(0, "long.txt"));
		gzFile file = gzopen(p.path, packed ? "wb" : "wbT");
		CHECK(file != NULL);
		for (uint32_t k = 0, r = 1; k < 200000; k++) {
			r = 1664525 * r + 1013904223;
			CHECK(gzprintf(file, "%u %u\n", r >> 8, r >> 10) > 0);
		}
		CHECK(gzclose(file) == Z_OK);
		CHECK_EQ_I(import("edges", p.path, &p, &d, message), HG_ERR_IO);
		CHECK_CONTAINS(message, "long.txt: changed while it was read: ");
		CHECK_CONTAINS(message, " bytes at the beginning, ");
		CHECK(d == NULL);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(changes_of_files_are_found),
	    TEST(changes_of_archives_are_found),
	    TEST(cutting_long_files_is_found),
	};
	return RUN_TESTS(argc, argv, cases);
}
