#ifndef HG_DATA_IMPORT_PICKLE_MACHINE_H
#define HG_DATA_IMPORT_PICKLE_MACHINE_H

#include "import/pickle.h"

/* The parts of the reader of pickles: a stack of values, and opcodes that work on it. */

/* Append a value that begins at the current opcode, and push it. */
HG_NODISCARD hg_status hg__pickle_push(struct hg__pickle *p, struct hg__pickle_value value);
/* Push a value that exists. */
HG_NODISCARD hg_status hg__pickle_push_ref(struct hg__pickle *p, hg__ref ref);
/* Pop the top of the stack, above the last mark. */
HG_NODISCARD hg_status hg__pickle_pop(struct hg__pickle *p, hg__ref *ref);
/* Append an item to a container. */
HG_NODISCARD hg_status hg__pickle_append(struct hg__pickle *p, hg__ref container, hg__ref item);
/* The height of the stack above which values may be taken: the last mark. */
int64_t hg__pickle_floor(const struct hg__pickle *p);
/* The height of the last mark, which is removed. */
HG_NODISCARD hg_status hg__pickle_pop_mark(struct hg__pickle *p, int64_t *height);
/* Append the values from the height `first` on to the container below them, or replace them by a
 * new container. */
HG_NODISCARD hg_status hg__pickle_append_above(struct hg__pickle *p, int64_t first,
                                               enum hg__pickle_kind kind);
HG_NODISCARD hg_status hg__pickle_collect(struct hg__pickle *p, int64_t first,
                                          enum hg__pickle_kind kind);
/* Store the top of the stack in the memo; push a value of the memo. */
HG_NODISCARD hg_status hg__pickle_memo_put(struct hg__pickle *p, int64_t number);
HG_NODISCARD hg_status hg__pickle_memo_get(struct hg__pickle *p, int64_t number);

/* The next `count` bytes of the file. */
HG_NODISCARD hg_status hg__pickle_take(struct hg__pickle *p, int64_t count,
                                       const unsigned char **bytes);
/* The next line of the file without its end. */
HG_NODISCARD hg_status hg__pickle_line(struct hg__pickle *p, unsigned char **text, int64_t *length);

/* Read and run one opcode. p->root is set by the last one. */
HG_NODISCARD hg_status hg__pickle_step(struct hg__pickle *p);
/* The opcodes that name classes and make objects of them. */
HG_NODISCARD hg_status hg__pickle_global(struct hg__pickle *p);
HG_NODISCARD hg_status hg__pickle_reduce(struct hg__pickle *p);
HG_NODISCARD hg_status hg__pickle_newobj(struct hg__pickle *p);
HG_NODISCARD hg_status hg__pickle_build(struct hg__pickle *p);
/* The opcodes that hold numbers and strings as text. */
HG_NODISCARD hg_status hg__pickle_integer_line(struct hg__pickle *p);
HG_NODISCARD hg_status hg__pickle_string_line(struct hg__pickle *p);

#endif
