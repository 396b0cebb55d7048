#include "jsonl.h"

#include <math.h>

json_t *jsonl_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

int jsonl_write(FILE *out, json_t *object)
{
	const int failed = !object ||
	                   json_object_set_new(object, "format", json_integer(JSONL_FORMAT)) ||
	                   json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(9)) ||
	                   fputc('\n', out) == EOF || fflush(out);
	json_decref(object);
	return failed ? -1 : 0;
}
