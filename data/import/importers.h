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
hg_status hg__import_gin(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message);
hg_status hg__import_musae(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message);
hg_status hg__import_metis(const char *const *paths, int count, const hg_import_config *config,
                           hg_dataset **dataset, char *message);
hg_status hg__import_ogb(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message);
hg_status hg__import_h5ad(const char *const *paths, int count, const hg_import_config *config,
                          hg_dataset **dataset, char *message);
hg_status hg__import_planetoid(const char *const *paths, int count, const hg_import_config *config,
                               hg_dataset **dataset, char *message);
hg_status hg__import_graphbolt(const char *const *paths, int count, const hg_import_config *config,
                               hg_dataset **dataset, char *message);
hg_status hg__import_dgl_csv(const char *const *paths, int count, const hg_import_config *config,
                             hg_dataset **dataset, char *message);
hg_status hg__import_h5(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message);

/* Copy the caller's configuration, or the default where there is none. */
HG_NODISCARD hg_status hg__import_configure(const hg_import_config *caller,
                                            hg_import_config *config, char *message);
/* Send a sentence to the note callback, if there is one; control characters become '?'. */
void hg__import_note(const hg_import_config *config, const char *format, ...) HG_PRINTF(2, 3);
/* Note that of `read` edges only `kept` remain; no note where the two are equal. */
void hg__import_note_merged(const hg_import_config *config, const char *path, int64_t read,
                            int64_t kept, int weighted);

/* Name the dataset after its file, without folder and extensions. */
HG_NODISCARD hg_status hg__import_name(hg_dataset *d, const char *path, char *message);

#endif
