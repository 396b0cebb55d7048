/* The error message of an op that refuses its operands. */
#include <stdarg.h>

#include "autograd/tape.h"
#include "core/text.h"

hg_status hg__infer_fail(const struct hg__infer *s, hg_status status, const char *format, ...)
{
	char text[HG__MESSAGE - 128];
	va_list args;
	va_start(args, format);
	hg__vprint(text, sizeof text, format, args);
	va_end(args);
	const char *scope = s->node->scope;
	return hg__fail(s->tape->ctx, status, *scope ? "%s: %s (layer %.40s)" : "%s: %s",
	                s->node->op->name, text, scope);
}
