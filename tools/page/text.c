/* Text and numbers on a page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "names.h"
#include "tool.h"

/* `breaks`: signs after which a line may break. */
static void print_text(FILE *out, const char *text, const char *breaks)
{
	static const char special[] = "&<>\"'";
	static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	char *printable = tool_printable(text);
	for (const char *c = printable; c && *c; c++) {
		const char *found = strchr(special, *c);
		if (found)
			(void)fputs(entity[found - special], out);
		else
			(void)fputc(*c, out);
		if (strchr(breaks, *c))
			(void)fputs("<wbr/>", out);
	}
	free(printable);
}

void page_text(FILE *out, const char *text)
{
	print_text(out, text, "");
}

void page_name(FILE *out, const char *name)
{
	/* an op has slashes and plus signs; breaks within its words would come before these */
	print_text(out, name, strchr(name, '/') ? "/+" : "._");
}

void page_number(FILE *out, double x)
{
	char text[NAME_SIZE];
	const double size = fabs(x);
	if (!isfinite(x))
		(void)fprintf(out, "%s", name_number(x, text));
	else if (size < 1e9 && x == rint(x))
		(void)fprintf(out, "%.0f", x);
	else if (size >= 1e6 || (size < 1e-3 && size > 0))
		(void)fprintf(out, "%.3g", x);
	else
		(void)fprintf(out, "%.*g", size >= 1e4 ? 6 : 4, x);
}

void page_count(FILE *out, int64_t n)
{
	char digits[24];
	const int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
	for (int i = 0; i < length; i++)
		(void)fprintf(out, "%s%c", i && length > 4 && (length - i) % 3 == 0 ? "&#8239;" : "",
		              digits[i]);
}

const char *page_headroom_class(double bits)
{
	return isnan(bits) ? "" : bits < 1 ? "bad" : bits < 3 ? "warn" : "good";
}

const char *page_type(hg_dtype dtype)
{
	return dtype == HG_F16 ? "fp16" : dtype == HG_F32 ? "fp32" : hg_dtype_name(dtype);
}
