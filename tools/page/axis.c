/* The vertical axis of a picture. */
#include <math.h>

#include "html.h"

struct page_axis page_axis_of(int top, int bottom)
{
	const struct page_axis a = {INFINITY, -INFINITY, 0, top, bottom};
	return a;
}

void page_axis_take(struct page_axis *a, double x)
{
	if (!isfinite(x))
		return;
	a->low = fmin(a->low, x);
	a->high = fmax(a->high, x);
}

int page_axis_spreads(const struct page_axis *a)
{
	return a->low > 0 && a->high > 8 * a->low;
}

static double axis_value(const struct page_axis *a, double x)
{
	return a->logarithm ? log(x) : x;
}

double page_axis_height(const struct page_axis *a, double x)
{
	const double low = axis_value(a, a->low), high = axis_value(a, a->high);
	return high > low ? a->bottom - (a->bottom - a->top) * (axis_value(a, x) - low) / (high - low)
	                  : (a->top + a->bottom) / 2.0;
}

static void print_tick(FILE *out, const struct page_axis *a, int left, int right, double x)
{
	const double y = page_axis_height(a, x);
	(void)fprintf(
	    out, "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" class=\"t2 end\">",
	    left, y, right, left - 8, y + 4);
	page_number(out, x);
	(void)fputs("</text>\n", out);
}

void page_axis_ticks(FILE *out, const struct page_axis *a, int left, int right, int middle)
{
	if (!(a->low <= a->high))
		return;
	print_tick(out, a, left, right, a->low);
	if (middle && a->high > a->low)
		print_tick(out, a, left, right,
		           a->logarithm ? sqrt(a->low * a->high) : (a->low + a->high) / 2);
	if (a->high > a->low)
		print_tick(out, a, left, right, a->high);
}

double page_tick_step(double range, int most)
{
	const double least = range / most, power = pow(10, floor(log10(least)));
	return least <= power       ? power
	       : least <= 2 * power ? 2 * power
	       : least <= 5 * power ? 5 * power
	                            : 10 * power;
}
