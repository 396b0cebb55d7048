#ifndef HG_DATA_CLASS_NAMES_H
#define HG_DATA_CLASS_NAMES_H

#include "internal.h"

/* The most bytes of the names of all classes: far more than anybody gives names to. */
#define HG__NAMES_MAX (INT64_C(1) << 24)

/* Names of classes that are being collected: UTF-8, one after the other, each with its terminating
 * 0, as a dataset has them. */
struct hg__names {
	char *at;
	int64_t bytes, room, count;
};

/* Append a name; bytes that are no UTF-8 become '?'. */
HG_NODISCARD hg_status hg__names_add(struct hg__names *names, const char *text, size_t length,
                                     char *message);
/* Append a name of Unicode code points, up to the first 0. */
HG_NODISCARD hg_status hg__names_add_wide(struct hg__names *names, const uint32_t *text,
                                          int64_t length, char *message);
/* The dataset takes the names if there is one for each of its classes; else they are freed. */
void hg__names_take(struct hg__names *names, hg_dataset *d);
void hg__names_free(struct hg__names *names);
/* Take the names of the classes away. */
void hg__names_drop(hg_dataset *d);

/* The names as numpy stores texts, "<U19": `width` code points each, filled with 0. *wide is
 * malloc'd. */
HG_NODISCARD hg_status hg__names_widen(const char *names, int64_t bytes, uint32_t **wide,
                                       int64_t *count, int64_t *width, char *message);
HG_NODISCARD hg_status hg__names_check(const hg_dataset *d, const char *origin, char *message);

#endif
