/* The sum that an element comes from: its largest addends around it, and how far an f16 sum came. */
#include <math.h>
#include <string.h>

#include "page.h"

static const int WIDE = 560, HIGH = 372, MIDDLE_X = 280, MIDDLE_Y = 182, RADIUS_X = 150, RADIUS_Y = 128;

/* The part of a name that fits beside a dot: before its row in brackets. */
static void print_short(FILE *out, char *name)
{
	char *bracket = strstr(name, " (");
	if (bracket)
		*bracket = 0;
	page_text(out, name);
}

/* Place k of `count` around the hub, clockwise from the top. */
static void place(int k, int count, double *x, double *y)
{
	const double angle = 2 * acos(-1.0) * k / count;
	*x = MIDDLE_X + RADIUS_X * sin(angle);
	*y = MIDDLE_Y - RADIUS_Y * cos(angle);
}

/* Above or below the dot where it is in the middle, else on its outer side. */
static void print_label(FILE *out, double x, double y, int line, const char *class)
{
	const int side = x > MIDDLE_X + 20 ? 1 : x < MIDDLE_X - 20 ? -1 : 0;
	const double dx = side * 17, dy = side ? 0 : y < MIDDLE_Y ? -31 : 25;
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s%s\">", x + dx, y + dy + (side ? -1 : 4) + 14 * line, class,
	              side < 0    ? " end"
	              : side == 0 ? " mid"
	                          : "");
}

static void print_peer(FILE *out, const struct diagnosis *d, const hg_finding *f, int k, int count)
{
	const hg_term *t = &f->top[k];
	const double largest = fabs(f->top[0].value), share = largest > 0 && isfinite(t->value / largest) ? fabs(t->value) / largest : 1;
	char name[NAME_SIZE];
	double x, y;
	place(k, count, &x, &y);
	(void)fprintf(out, "<g><title>");
	page_text(out, name_term(d->dataset, f, t, name));
	(void)fprintf(out, ": %.8g x %.8g = %.8g</title><line x1=\"%d\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"spoke\" stroke-width=\"%.1f\"/>", t->factor,
	              t->operand, t->value, MIDDLE_X, MIDDLE_Y, x, y, 1.5 + 6 * share);
	(void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"9\" class=\"peer hit\"/>", x, y);
	print_label(out, x, y, 0, "bold");
	print_short(out, name);
	(void)fputs("</text>", out);
	print_label(out, x, y, 1, "t2");
	page_number(out, t->factor);
	(void)fputs(" &#215; ", out);
	page_number(out, t->operand);
	(void)fputs("</text></g>\n", out);
}

static void print_rest(FILE *out, const hg_finding *f, int count)
{
	double x, y;
	place(f->tops, count, &x, &y);
	(void)fprintf(out, "<line x1=\"%d\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"more\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"9\" class=\"card more\"/>",
	              MIDDLE_X, MIDDLE_Y, x, y, x, y);
	print_label(out, x, y, 0, "bold");
	(void)fputs("and ", out);
	page_count(out, f->terms - f->tops);
	(void)fputs(" more</text>\n", out);
}

static void print_neighbourhood(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	const int more = f->terms > f->tops, count = f->tops + more;
	char name[NAME_SIZE];
	(void)name_row(d->dataset, f->row_is, f->row, name);
	(void)fprintf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"The element and its largest addends\">\n", WIDE, HIGH, WIDE);
	if (more)
		print_rest(out, f, count);
	for (int k = f->tops - 1; k >= 0; k--)
		print_peer(out, d, f, k, count);
	(void)fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"38\" class=\"hub\"/><text x=\"%d\" y=\"%d\" class=\"mid bold\">", MIDDLE_X, MIDDLE_Y, MIDDLE_X,
	              MIDDLE_Y - 1);
	print_short(out, name);
	(void)fprintf(out, "</text><text x=\"%d\" y=\"%d\" class=\"mid t2\">", MIDDLE_X, MIDDLE_Y + 15);
	page_number(out, f->got);
	(void)fputs("</text>\n</svg>\n", out);
}

/* ---- how far the sum came ---- */

static const int LENGTH = 460;

/* 2^-24 to 2^18, the halves and a little more, as a length. */
static double along(double x)
{
	const double bits = x == 0 ? -24 : isfinite(x) ? log2(fabs(x)) : 18;
	return LENGTH * (fmin(fmax(bits, -24), 18) + 24) / 42;
}

struct mark {
	double x;
	int y;
	const char *class, *what;
};

static void print_line(FILE *out, const struct mark *m)
{
	(void)fprintf(out, "<path d=\"M%.1f 74V%d\" class=\"%s\"/>", along(m->x), m->y + 4, m->class);
}

/* Over the lines of all marks, on the side of its own where there is more room. */
static void print_name(FILE *out, const struct mark *m)
{
	const double at = along(m->x);
	const int left = at > LENGTH / 2.0;
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%d\" class=\"t2 halo%s\">%s ", at + (left ? -6 : 6), m->y + 4, left ? " end" : "", m->what);
	page_number(out, m->x);
	(void)fputs("</text>\n", out);
}

static void print_bar(FILE *out, int y, int high, double from, double to, const char *class)
{
	(void)fprintf(out, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"%d\" class=\"%s\"/>", from, y, to - from, high, high / 2, class);
}

/* Addends that were taken in, of all. */
static void print_taken(FILE *out, const hg_finding *f)
{
	(void)fprintf(out, "<text y=\"12\">%s ", f->ignored ? "after addend" : "the f16 sum ended with addend");
	page_count(out, f->partial_at);
	(void)fputs(" of ", out);
	page_count(out, f->terms);
	if (f->ignored) {
		(void)fputs("; in f16 ", out);
		page_count(out, f->ignored);
		(void)fputs(" changed nothing", out);
	}
	(void)fputs("</text>\n", out);
	print_bar(out, 20, 12, 0, LENGTH, "overbg");
	print_bar(out, 20, 12, 0, LENGTH * fmin(1, (double)f->partial_at / (double)f->terms), "bar");
}

/* Where sum, value and limit stand among the halves. */
static void print_standing(FILE *out, const hg_finding *f)
{
	const struct mark mark[] = {{f->wide, 90, "amax", "true value"},
	                            {f->partial, 108, "hot", f->partial_factor == 1.0 ? "f16 sum there" : "unscaled f16 sum there"},
	                            {f->limit, 126, "bound", "limit"}};
	const int count = isfinite(f->limit) && f->limit > 0 ? 3 : 2;
	(void)fprintf(out, "\n<text y=\"60\">among the halves</text><text x=\"%d\" y=\"60\" class=\"t2 end\">infinite</text>\n", LENGTH);
	print_bar(out, 66, 8, 0, along(0x1p-14), "subbg");
	print_bar(out, 66, 8, along(0x1p-14), along(65520), "box");
	print_bar(out, 66, 8, along(65520), LENGTH, "overbg");
	for (int i = 0; i < count; i++)
		print_line(out, &mark[i]);
	for (int i = 0; i < count; i++)
		print_name(out, &mark[i]);
}

void page_running(FILE *out, const hg_finding *f)
{
	if (!f->terms || f->partial_at <= 0)
		return;
	(void)fprintf(out, "<h3>How far the sum came</h3>\n<svg viewBox=\"0 0 %d 132\" width=\"%d\" role=\"img\" aria-label=\"How far the sum came\">\n", LENGTH,
	              LENGTH);
	print_taken(out, f);
	print_standing(out, f);
	(void)fputs("</svg>\n", out);
}

void page_neighbourhood(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	if (f->tops)
		print_neighbourhood(out, d, f);
}
