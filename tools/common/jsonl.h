#ifndef HG_JSONL_H
#define HG_JSONL_H

#include <jansson.h>
#include <stdio.h>

/* Lines of JSON. A number that is not finite becomes null, as JSON knows none. */
json_t *jsonl_number(double x);
/* The version of docs/json-lines.schema.json, which describes the lines of hg-train, hg-doctor and
 * h5convert --check. Every line carries it as "format". It is incremented when a field is removed
 * or changes its meaning, but not for a new field. */
#define JSONL_FORMAT 1
/* One object on one line, at once and whole (stream_line). Takes the reference; NULL (out of
 * memory) fails. 0 or -1. */
int jsonl_write(FILE *out, json_t *object);

#endif
