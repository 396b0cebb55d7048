#ifndef HG_DATA_IMPORT_IDS_H
#define HG_DATA_IMPORT_IDS_H

#include "internal.h"

/* The ids of nodes in a file: whole numbers, or, from the first id on that is none, texts. A number
 * is written in the usual way ("7", not "07" or "+7"), so that either can be told from the other.
 * Every id belongs to a group, the graph of its node; the same id may occur in several groups.
 *
 * Nodes are numbered group by group, numbers in ascending order and texts as the file has them. */
struct hg__ids {
	int are_texts;
	int64_t count, room;
	int32_t *group; /* [count] */
	int64_t *at;    /* [count] the number, or where in `text` the id begins */
	char *text;
	int64_t used, text_room;
	/* after hg__ids_sort */
	int32_t *order; /* [count] ascending by group and id */
	int32_t *from;  /* [count] the position of the id of each node; of numbers it is `order` */
	int32_t *node;  /* [count] of texts: the node of each id; NULL: it is its rank in `order` */
};

HG_NODISCARD hg_status hg__ids_add(struct hg__ids *ids, const char *id, int32_t group,
                                   char *message);
/* Sort the ids and number the nodes. *again is the position of an id that occurs before in its
 * group; -1: there is none. */
HG_NODISCARD hg_status hg__ids_sort(struct hg__ids *ids, int64_t *again, char *message);
/* The position of an id in the file, or the node that it numbers; -1: there is no such id in the
 * group. */
int64_t hg__ids_find(const struct hg__ids *ids, const char *id, int32_t group);
int64_t hg__ids_node(const struct hg__ids *ids, const char *id, int32_t group);
/* Id number k as a text, in `digits` where it is a number. */
const char *hg__ids_text(const struct hg__ids *ids, int64_t k, char digits[24]);
void hg__ids_free(struct hg__ids *ids);

#endif
