#ifndef HG_DATA_IMPORT_YAML_FILE_H
#define HG_DATA_IMPORT_YAML_FILE_H

#include <yaml.h>

#include "import/folder.h"

/* A YAML file of at most 1 MiB, parsed by libyaml. A node is the number that libyaml gives it; 0 is
 * what is absent or null. */
struct hg__yaml {
	char *path; /* for messages */
	char *message;
	yaml_document_t *document; /* NULL: nothing is loaded */
};

/* Open a dataset that the file `name` describes, such as metadata.yaml. `path` leads to this file,
 * or to a folder or zip archive with one such file; one in a folder preprocessed/ does not count.
 * The stem of the folder is where the file is. The caller closes both after a failure, too. */
HG_NODISCARD hg_status hg__yaml_open(const char *path, const char *name,
                                     const hg_progress *progress, struct hg__folder *folder,
                                     struct hg__yaml *yaml, char *message);
void hg__yaml_close(struct hg__yaml *yaml);

/* *node := the value of `key` in a mapping, of this type. `map` 0 stands for the whole file.
 * HG_ERR_FORMAT: `map` is no mapping, the value has another type, or it is absent and `required`.
 */
HG_NODISCARD hg_status hg__yaml_get(const struct hg__yaml *yaml, int map, const char *key,
                                    yaml_node_type_t type, int required, int *node);
/* The same for a text, which lives as long as the file, and an integer from 0; *text stays NULL and
 * *value -1 where there is none. */
HG_NODISCARD hg_status hg__yaml_text(const struct hg__yaml *yaml, int map, const char *key,
                                     int required, const char **text);
HG_NODISCARD hg_status hg__yaml_whole(const struct hg__yaml *yaml, int map, const char *key,
                                      int required, int64_t *value);
/* The same for the path of a file in the folder. */
HG_NODISCARD hg_status hg__yaml_path(const struct hg__yaml *yaml, int map, const char *key,
                                     const char **path);
/* The only item of a list, where a dataset with several types of nodes has several. */
HG_NODISCARD hg_status hg__yaml_only(const struct hg__yaml *yaml, int map, const char *key,
                                     int *item);
/* The items of a sequence; a sequence that is absent has none. */
int hg__yaml_count(const struct hg__yaml *yaml, int sequence);
int hg__yaml_item(const struct hg__yaml *yaml, int sequence, int k);

/* The failure "PATH:LINE: text", where the node is. */
hg_status hg__yaml_fail(const struct hg__yaml *yaml, int node, const char *format, ...)
    HG_PRINTF(3, 4);

#endif
