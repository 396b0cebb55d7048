#ifndef HG_DATA_IMPORT_GIN_H
#define HG_DATA_IMPORT_GIN_H

#include "graph/coo.h"
#include "import/folder.h"
#include "import/importers.h"

/* The files of one dataset. */
struct hg__gin_files {
	struct hg__folder folder;
	char *text; /* the name of the file with the graphs; the stem is its folder, "MUTAG/" */
	char *path; /* of the text, for messages */
	hg_import_config config;
	char *message;
};

/* What the lines of the text say. */
struct hg__gin_graphs {
	int64_t declared, count; /* graphs */
	int64_t *label, *end;    /* of each graph read so far: its label, the number of nodes up to its
	                          * end */
	int64_t graph_room;
	int64_t nodes, node_room;
	int64_t *tag;     /* [nodes] */
	float *attribute; /* [nodes, width] */
	int64_t width, attributes, attribute_room;
	struct hg__coo coo;
};

/* Read the text. The caller frees the graphs after a failure, too. */
HG_NODISCARD hg_status hg__gin_read(const struct hg__gin_files *files,
                                    struct hg__gin_graphs *graphs);
void hg__gin_free(struct hg__gin_graphs *graphs);

/* Take a fold of the dataset's own as its splits, if it has so many; a note says what was done. */
HG_NODISCARD hg_status hg__gin_folds(const struct hg__gin_files *files, hg_dataset *d);

#endif
