#ifndef HG_DATA_IMPORT_JSON_LISTS_H
#define HG_DATA_IMPORT_JSON_LISTS_H

#include "import/bytes.h"

/* Receives one list: called once with value -1 where it begins, then with each of its values. */
typedef hg_status (*hg__json_take)(void *user, int64_t key, int64_t value);

/* Read a JSON object of lists of whole numbers, {"3159": [308, 1603], ...}, from open bytes without
 * holding more than a buffer of it. Keys and values are from 0. A failure names the byte. */
HG_NODISCARD hg_status hg__json_lists(struct hg__bytes *bytes, hg__json_take take, void *user);

#endif
