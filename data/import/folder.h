#ifndef HG_DATA_IMPORT_FOLDER_H
#define HG_DATA_IMPORT_FOLDER_H

#include "import/lines.h"

/* A set of files that belong together: a folder on disk or a zip archive. Names are relative to it,
 * "raw/edge.csv.gz". Messages call a file PATH/NAME in both cases. */
struct hg__folder {
	char *root;           /* the path; "" where names are relative to the working directory */
	zip_t *zip;           /* NULL: a folder on disk */
	struct hg__mark mark; /* of the archive */
	const hg_progress *progress;
	char *message;
	char **name; /* [count] the files, ascending; after hg__folder_list */
	int64_t count, room;
	/* what the names of the dataset's files begin with, "MUTAG/MUTAG" or "ogbn_arxiv/", and the
	 * same as messages call it; after hg__folder_stem */
	char *stem, *shown;
};

/* Is this a folder, or a file that begins like a zip archive? */
int hg__folder_is(const char *path);
/* Open a folder or archive. The caller closes it after a failure, too. */
HG_NODISCARD hg_status hg__folder_open(struct hg__folder *folder, const char *path,
                                       const hg_progress *progress, char *message);
/* Open the folder that holds the file `path`. */
HG_NODISCARD hg_status hg__folder_open_around(struct hg__folder *folder, const char *path,
                                              const hg_progress *progress, char *message);
void hg__folder_close(struct hg__folder *folder);

/* List the files, folders in it included down to three levels; hidden ones are left out. */
HG_NODISCARD hg_status hg__folder_list(struct hg__folder *folder);
/* Find the only listed file that matches a pattern of fnmatch; a star also matches slashes. *name
 * is NULL if there is none. HG_ERR_FORMAT: there are several. */
HG_NODISCARD hg_status hg__folder_find(const struct hg__folder *folder, const char *pattern,
                                       const char **name);

int hg__folder_has(const struct hg__folder *folder, const char *name);
/* The path for messages, "ROOT/NAME", malloc'd. */
HG_NODISCARD hg_status hg__folder_path(const struct hg__folder *folder, const char *name,
                                       char **path);
/* The same as hg__bytes_open and hg__lines_open, for a file of the folder. `path` is what
 * hg__folder_path gives, and must stay until the bytes are closed. */
HG_NODISCARD hg_status hg__folder_bytes(const struct hg__folder *folder, const char *name,
                                        const char *path, struct hg__bytes *bytes);
HG_NODISCARD hg_status hg__folder_lines(const struct hg__folder *folder, const char *name,
                                        struct lines *lines);
/* Open a text file, pass it to `read`, and close it. */
HG_NODISCARD hg_status hg__folder_text(const struct hg__folder *folder, const char *name,
                                       hg_status (*read)(struct lines *, void *), void *to);

/* The names of the dataset's files begin with the first `length` bytes of `name`. */
HG_NODISCARD hg_status hg__folder_stem(struct hg__folder *folder, const char *name, size_t length);
/* The name STEM PART, or STEM PART.gz where only that exists, malloc'd. */
HG_NODISCARD hg_status hg__folder_part(const struct hg__folder *folder, const char *part,
                                       char **name);
/* The path of a part for messages. */
void hg__folder_show(const struct hg__folder *folder, const char *part,
                     char shown[HG_DATA_MESSAGE]);
int hg__folder_has_part(const struct hg__folder *folder, const char *part);
/* Pass every line of a part that is not blank to `add`, such as hg__column_add, from its first
 * character on that is no blank. */
HG_NODISCARD hg_status hg__folder_read(const struct hg__folder *folder, const char *part,
                                       hg_status (*add)(const struct lines *, const char *, void *),
                                       void *to);
/* Name the dataset after the last part of the stem, or, where the stem has none, after the folder
 * or archive. */
HG_NODISCARD hg_status hg__folder_name(const struct hg__folder *folder, hg_dataset *d);

#endif
