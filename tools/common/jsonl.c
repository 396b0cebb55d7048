#include "jsonl.h"

#include <math.h>
#include <stdlib.h>

#include "stream.h"

json_t *jsonl_number(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

int jsonl_write(FILE *out, json_t *object)
{
	char *line = NULL;
	if (object && json_object_set_new(object, "format", json_integer(JSONL_FORMAT)) == 0)
		line = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
	const int failed = !line || stream_line(out, line);
	free(line);
	json_decref(object);
	return failed ? -1 : 0;
}
