/* Printing and parsing of numbers that does not depend on the locale of the program. */
#ifndef HG_CORE_TEXT_H
#define HG_CORE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* snprintf, vsnprintf and strtod with the point as decimal separator in every locale. What the
 * library prints, and what it reads back, does not depend on the surrounding program. */
int hg__print(char *text, size_t size, const char *format, ...) HG_PRINTF(3, 4);
int hg__vprint(char *text, size_t size, const char *format, va_list args) HG_PRINTF(3, 0);
double hg__number(const char *text);

/* hg__vprint for a message: one line that is safe to print, whatever names are in it
 * (core/printable.h). */
void hg__vprint_line(char *line, size_t size, const char *format, va_list args) HG_PRINTF(3, 0);

HG_EXTERN_C_END
#endif
