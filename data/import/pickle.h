#ifndef HG_DATA_IMPORT_PICKLE_H
#define HG_DATA_IMPORT_PICKLE_H

#include "internal.h"

/* A Python pickle of protocol 0 to 2 with integers, strings, tuples, lists, dictionaries, and
 * numpy arrays and scipy CSR matrices as what they were made from. Nothing is executed: a class is
 * a row of a table (pickle_objects.c), and any other class or function is refused by name. */

enum hg__pickle_kind {
	HG__PICKLE_NONE,
	HG__PICKLE_BOOL,
	HG__PICKLE_INTEGER,
	HG__PICKLE_TEXT,
	HG__PICKLE_TUPLE,
	HG__PICKLE_LIST,
	HG__PICKLE_DICT,
	HG__PICKLE_CLASS,
	HG__PICKLE_OBJECT
};

/* The known classes and functions. */
enum hg__pickle_class {
	HG__CLASS_CSR_MATRIX,
	HG__CLASS_NDARRAY,
	HG__CLASS_DTYPE,
	HG__CLASS_DEFAULTDICT,
	HG__CLASS_LIST,
	HG__CLASS_OBJECT,
	HG__CLASS_MAKE_ARRAY,
	HG__CLASS_MAKE_OBJECT,
	HG__CLASS_NONE
};

/* The index of a value; -1: there is none. */
typedef int32_t hg__ref;

struct hg__pickle_value {
	enum hg__pickle_kind kind;
	enum hg__pickle_class class; /* of a class and of an object */
	int64_t at;                  /* the byte of the file where it begins */
	union {
		int64_t integer; /* also of a bool */
		struct {
			const unsigned char *bytes;
			int64_t length;
		} text;
		struct {
			int32_t first, last; /* cells; -1: none */
			int64_t count;
		} items; /* of a tuple, list, or dictionary (a key, its value, the next key, ...) */
		struct {
			hg__ref arguments, state; /* what it was made with, and what it was built from */
		} object;
	} as;
};

/* One item of a container. Containers refer to items, so that a pickle needs memory in proportion
 * to its bytes even where an item is in many containers. */
struct hg__pickle_cell {
	hg__ref value;
	int32_t next; /* -1: the last one */
};

/* Containers that are open at the same time. A Planetoid file has at most four. */
#define HG__PICKLE_DEPTH 32

struct hg__pickle {
	const char *path;
	char *message;
	unsigned char *bytes; /* the file, with a zero after it */
	int64_t size, next;   /* next: the byte that is read next */
	int64_t opcode;       /* the byte where the current opcode is */
	struct hg__pickle_value *value;
	struct hg__pickle_cell *cell;
	hg__ref *stack, *memo;
	int64_t values, value_room, cells, cell_room, height, stack_room, memo_room;
	int64_t mark[HG__PICKLE_DEPTH]; /* heights of the stack */
	int marks;
	hg__ref root;
};

/* Read a file, plain or gzip. The caller closes the pickle after a failure, too. */
HG_NODISCARD hg_status hg__pickle_open(struct hg__pickle *p, const char *path,
                                       const hg_progress *progress, char *message);
void hg__pickle_close(struct hg__pickle *p);

/* The failure "FILE: at byte AT: ...". */
hg_status hg__pickle_fail(const struct hg__pickle *p, int64_t at, const char *format, ...)
    HG_PRINTF(3, 4);
/* What a value is, for a message: "a list", "numpy.ndarray". */
const char *hg__pickle_what(const struct hg__pickle_value *v);
/* The item at `index` of a tuple; -1: none. */
hg__ref hg__pickle_item(const struct hg__pickle *p, hg__ref tuple, int64_t index);
/* The value that a dictionary has for a key that is a string; -1: none. */
hg__ref hg__pickle_get(const struct hg__pickle *p, hg__ref dict, const char *key);

#endif
