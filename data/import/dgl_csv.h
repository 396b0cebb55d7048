#ifndef HG_DATA_IMPORT_DGL_CSV_H
#define HG_DATA_IMPORT_DGL_CSV_H

#include "import/csv.h"
#include "import/ids.h"
#include "import/run.h"
#include "import/values.h"
#include "import/yaml_file.h"

/* The folder of meta.yaml, and what the file says. */
struct hg__dgl {
	struct hg__folder folder; /* the stem is the folder of meta.yaml */
	struct hg__yaml yaml;
	char separator; /* of all tables */
	hg_import_config config;
	hg_dataset *d;
	char *message;
};

/* A table of nodes or graphs. */
struct hg__dgl_table {
	const char *file;  /* its path in the folder */
	struct hg__ids id; /* [rows] */
	/* [rows]; `at` is NULL where there is no such column */
	struct hg__numbers label, feat;
	uint8_t *mask[3];                   /* [rows] train, val, test; each may be NULL */
	const struct hg__dgl_table *graphs; /* that nodes of a batch belong to; or NULL */
};

/* Read the table that an item of meta.yaml names. Its ids are in the column that the key `id` names
 * there, or in the column of that default name. The caller frees the table after a failure, too. */
HG_NODISCARD hg_status hg__dgl_table(const struct hg__dgl *in, int item, const char *key,
                                     const char *column, struct hg__dgl_table *table);
void hg__dgl_table_free(struct hg__dgl_table *table);
/* Read the edges that an item of meta.yaml names, between the nodes, whose ids are sorted. */
HG_NODISCARD hg_status hg__dgl_edges(const struct hg__dgl *in, int item,
                                     const struct hg__dgl_table *nodes);

/* Read the file that an item of meta.yaml names. */
HG_NODISCARD hg_status hg__dgl_read(const struct hg__dgl *in, const char *file,
                                    struct hg__csv_reader *reader);
/* *name := the column that a key names, or the default. */
HG_NODISCARD hg_status hg__dgl_column(const struct hg__dgl *in, int item, const char *key,
                                      const char *otherwise, const char **name);
/* *group := the graph that the field names, of these graphs. Without graphs there is only 0. */
HG_NODISCARD hg_status hg__dgl_graph(const struct lines *lines, const char *field,
                                     const struct hg__dgl_table *graphs, int32_t *group);
/* Note the columns that are not in `used`. */
void hg__dgl_note_columns(const struct hg__dgl *in, const char *file, const struct hg__csv *header,
                          const int *used, int count, const char *why);
/* A field without the blanks around it. */
char *hg__dgl_trim(char *field);
/* The numbers of a list, which may have brackets. */
char *hg__dgl_list(char *field);

#endif
