#ifndef HG_DATA_IMPORT_RUN_H
#define HG_DATA_IMPORT_RUN_H

#include "import/importers.h"
#include "import/lines.h"

/* One import while it runs. */
struct hg__import {
	const char *path;         /* the first of the paths */
	const char *const *paths; /* [count] */
	int count;
	hg_import_config config;
	hg_dataset *d; /* to be filled */
	int is_named;  /* 1: the file says the name, even if it says that there is none */
	char *message;
};

/* The frame of every import: `read` fills a new dataset, which then is checked and gets the largest
 * magnitude of its features, and the name of the first path unless `read` has named it. After a
 * failure there is no dataset. */
HG_NODISCARD hg_status hg__import_run(const char *const *paths, int count,
                                      const hg_import_config *config,
                                      hg_status (*read)(struct hg__import *), hg_dataset **dataset,
                                      char *message);

/* Open the text file at `path`, pass it to `read`, and close it. */
HG_NODISCARD hg_status hg__import_text(const struct hg__import *in, const char *path,
                                       hg_status (*read)(struct lines *, void *), void *to);

#endif
