#ifndef HG_TRAINING_JSONL_H
#define HG_TRAINING_JSONL_H

#include <jansson.h>
#include <stdio.h>

/* Lines of JSON. A number that is not finite becomes null, as JSON knows none. */
json_t *jsonl_number(double x);
/* What the lines of hg-train and hg-doctor mean is written down in docs/json-lines.schema.json,
 * and each line has the number of that writing as "format": one more where a field goes or means
 * something else, not where one is new. */
#define JSONL_FORMAT 1
/* One object on one line, at once. Takes the reference; NULL (out of memory) fails. 0 or -1. */
int jsonl_write(FILE *out, json_t *object);

#endif
