/* The sum that an element comes from: its largest terms in a circle around it, or in a list where
 * there is no room. */
#include <math.h>
#include <string.h>

#include "page.h"

static const int WIDE = 560, HIGH = 346, MIDDLE_X = 280, MIDDLE_Y = 182, RADIUS_X = 150,
                 RADIUS_Y = 128;

/* The part of a name that fits beside a dot: without the row in brackets and the graph, which all
 * names share. */
static void print_short(FILE *out, char *name)
{
	static const char *const rest[] = {" (", " of graph "};
	for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
		if (strstr(name, rest[i]))
			*strstr(name, rest[i]) = 0;
	page_text(out, name);
}

/* Position k of `count` around the hub, clockwise from the top. */
static void term_position(int k, int count, double *x, double *y)
{
	const double angle = 2 * acos(-1.0) * k / count;
	*x = MIDDLE_X + RADIUS_X * sin(angle);
	*y = MIDDLE_Y - RADIUS_Y * cos(angle);
}

/* The label stands above or below the dot if the dot is in the middle, else on its outer side. */
static void print_label(FILE *out, double x, double y, int line, const char *class)
{
	const int side = x > MIDDLE_X + 20 ? 1 : x < MIDDLE_X - 20 ? -1 : 0;
	const double dx = side * 17, dy = side ? 0 : y < MIDDLE_Y ? -31 : 25;
	const double down = y + dy + (side ? -1 : 4) + 14 * line;
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s%s\">", x + dx, down, class,
	              side < 0    ? " end"
	              : side == 0 ? " mid"
	                          : "");
}

/* The size of a term relative to the largest one; 1 if the largest is zero or not finite. */
static double share_of(const hg_finding *f, const hg_term *t)
{
	const double largest = fabs(f->top[0].value);
	return largest > 0 && isfinite(t->value / largest) ? fabs(t->value) / largest : 1;
}

static void print_product(FILE *out, const hg_term *t)
{
	page_number(out, t->factor);
	(void)fputs(" &#215; ", out);
	page_number(out, t->operand);
}

static void print_peer(FILE *out, const struct diagnosis *d, const hg_finding *f, int k, int count)
{
	const hg_term *t = &f->top[k];
	char name[NAME_SIZE];
	double x, y;
	term_position(k, count, &x, &y);
	(void)fprintf(out, "<g><title>");
	page_text(out, name_term(d->dataset, f, t, name));
	(void)fprintf(out, ": %.8g x %.8g = %.8g</title>", t->factor, t->operand, t->value);
	(void)fprintf(
	    out,
	    "<line x1=\"%d\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"spoke\" stroke-width=\"%.1f\"/>"
	    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"9\" class=\"peer hit\"/>",
	    MIDDLE_X, MIDDLE_Y, x, y, 1.5 + 6 * share_of(f, t), x, y);
	print_label(out, x, y, 0, "bold");
	print_short(out, name);
	(void)fputs("</text>", out);
	print_label(out, x, y, 1, "t2");
	print_product(out, t);
	(void)fputs("</text></g>\n", out);
}

static void print_rest(FILE *out, const hg_finding *f, int count)
{
	double x, y;
	term_position(f->tops, count, &x, &y);
	(void)fprintf(out,
	              "<line x1=\"%d\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"more\"/>"
	              "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"9\" class=\"card more\"/>",
	              MIDDLE_X, MIDDLE_Y, x, y, x, y);
	print_label(out, x, y, 0, "bold");
	(void)fputs("and ", out);
	page_count(out, f->terms - f->tops);
	(void)fputs(" more</text>\n", out);
}

static void print_around(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	const int more = f->terms > f->tops, count = f->tops + more;
	char name[NAME_SIZE];
	(void)name_row(d->dataset, f->row_is, f->row, name);
	(void)fprintf(out,
	              "<svg viewBox=\"0 14 %d %d\" width=\"%d\" class=\"only-wide\" role=\"img\" "
	              "aria-label=\"The element "
	              "and its largest terms\">\n",
	              WIDE, HIGH, WIDE);
	if (more)
		print_rest(out, f, count);
	for (int k = f->tops - 1; k >= 0; k--)
		print_peer(out, d, f, k, count);
	(void)fprintf(out,
	              "<circle cx=\"%d\" cy=\"%d\" r=\"38\" class=\"hub\"/><text x=\"%d\" y=\"%d\" "
	              "class=\"mid bold\">",
	              MIDDLE_X, MIDDLE_Y, MIDDLE_X, MIDDLE_Y - 1);
	print_short(out, name);
	(void)fprintf(out, "</text><text x=\"%d\" y=\"%d\" class=\"mid t2\">", MIDDLE_X, MIDDLE_Y + 15);
	page_number(out, f->got);
	(void)fputs("</text>\n</svg>\n", out);
}

/* The same as a list with bars. */
static void print_list(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char name[NAME_SIZE];
	(void)fputs("<div class=\"terms only-narrow\">\n", out);
	for (int k = 0; k < f->tops; k++) {
		const hg_term *t = &f->top[k];
		(void)fputs("<div><b>", out);
		page_text(out, name_term(d->dataset, f, t, name));
		(void)fputs("</b><span>", out);
		print_product(out, t);
		(void)fprintf(out, "</span><em><i style=\"width:%.1f%%\"></i></em></div>\n",
		              fmax(1, 100 * share_of(f, t)));
	}
	if (f->terms > f->tops) {
		(void)fputs("<p class=\"soft small\">and ", out);
		page_count(out, f->terms - f->tops);
		(void)fputs(" more</p>\n", out);
	}
	(void)fputs("</div>\n", out);
}

void page_terms(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	if (!f->tops)
		return;
	print_around(out, d, f);
	print_list(out, d, f);
}
