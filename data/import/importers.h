#ifndef HG_DATA_IMPORTERS_H
#define HG_DATA_IMPORTERS_H

#include "internal.h"

hg_status hg__import_npz(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message);
hg_status hg__import_edges(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message);
hg_status hg__import_mtx(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message);
hg_status hg__import_tu(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message);
hg_status hg__import_h5(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message);

/* The caller's configuration, or the usual one where there is none. */
HG_NODISCARD hg_status hg__import_configure(const hg_import_config *theirs, hg_import_config *ours,
                                            char *message);
/* A sentence for whoever listens; control characters become '?'. */
void hg__import_note(const hg_import_config *config, const char *format, ...) HG_PRINTF(2, 3);
/* Of `read` edges `kept` are left; nothing is said where these are the same. */
void hg__import_note_merged(const hg_import_config *config, const char *path, int64_t read,
                            int64_t kept, int weighted);

/* The name of a dataset: the file's, without folder and endings. */
HG_NODISCARD hg_status hg__import_name(hg_dataset *d, const char *path, char *message);

#endif
