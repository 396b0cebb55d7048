#ifndef HG_DATA_IMPORTERS_H
#define HG_DATA_IMPORTERS_H

#include "internal.h"

hg_status hg__import_npz(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message);
hg_status hg__import_edges(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message);
hg_status hg__import_mtx(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message);
hg_status hg__import_tu(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message);
hg_status hg__import_h5(const char *const *paths, int count, const hg_progress *progress, hg_dataset **dataset, char *message);

/* The name of a dataset: the file's, without folder and endings. */
HG_NODISCARD hg_status hg__import_name(hg_dataset *d, const char *path, char *message);

#endif
