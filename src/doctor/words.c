#include "doctor/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/text.h"

void hg__say(struct hg__words *w, const char *format, ...)
{
	const size_t at = w->length < w->size ? w->length : w->size;
	va_list args;
	va_start(args, format);
	const int more = hg__vprint(w->text + at, w->size - at, format, args);
	va_end(args);
	w->length += more > 0 ? (size_t)more : 0;
}

const char *hg__limit_type(const hg_finding *f)
{
	return f->limit > 0x1p127 ? "fp32" : "fp16";
}

void hg__name_row(const hg_finding *f, char *name, size_t size)
{
	static const char *const kind[] = {[HG_ROW_NODE] = "node",
	                                   [HG_ROW_EDGE] = "edge",
	                                   [HG_ROW_GRAPH] = "graph",
	                                   [HG_ROW_WEIGHT] = "row",
	                                   [HG_ROW_SCALAR] = "row"};
	(void)snprintf(name, size, "%s %" PRId64, kind[f->row_is], f->row);
}

/* Of such a finding the limit is the number of classes. */
int hg__is_label_finding(const hg_finding *f)
{
	return f->cause == HG_CAUSE_INPUT && f->limit < hg_dtype_get(HG_F16)->overflow;
}
