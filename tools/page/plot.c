/* Curves over epochs: a figure with a title, a legend, and the picture for a wide window and for a
 * telephone. */
#include <math.h>

#include "html.h"

/* The most pieces of a linear axis; rounding it may add one. */
enum { PIECES = 4 };
/* In pixels. */
enum { LEFT = 64, TOP = 10, LOW = 160, MARKS = 164, NUMBERS = 190, HIGH = 194 };

struct picture {
	FILE *out;
	const struct page_plot *plot;
	struct page_axis axis;
	double step;  /* from tick to tick of a linear axis */
	int64_t last; /* the largest x */
	int right;
};

static double at(const struct picture *p, int64_t x)
{
	const int64_t range = p->last - p->plot->first;
	return range > 0
	           ? LEFT + (double)(p->right - LEFT) * (double)(x - p->plot->first) / (double)range
	           : (LEFT + p->right) / 2.0;
}

static double value_of(const struct page_series *s, int64_t k)
{
	return s->y[k * s->stride];
}

/* ---- the axes ---- */

/* Whole ticks at both ends of a linear axis. Returns the step from tick to tick; 0: the values are
 * as good as equal, so that ticks could not be told apart. */
static double round_axis(struct page_axis *a)
{
	if (!(a->high - a->low > 1e-9 * fmax(fabs(a->low), fabs(a->high))))
		return 0;
	const double step = page_tick_step(a->high - a->low, PIECES);
	a->low = floor(a->low / step) * step;
	a->high = ceil(a->high / step) * step;
	return step;
}

static struct page_axis axis_of(const struct page_plot *plot, double *step)
{
	struct page_axis a = page_axis_of(TOP, LOW);
	for (int i = 0; i < plot->count; i++)
		for (int64_t k = 0; k < plot->series[i].count; k++)
			page_axis_take(&a, value_of(&plot->series[i], k));
	a.logarithm = plot->logarithm && page_axis_spreads(&a);
	*step = a.logarithm ? 0 : round_axis(&a);
	return a;
}

static void print_level(const struct picture *p, double x)
{
	const double y = page_axis_height(&p->axis, x);
	(void)fprintf(
	    p->out,
	    "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" class=\"t2 end\">", LEFT,
	    y, p->right, LEFT - 8, y + 4);
	page_number(p->out, p->plot->percent ? 100 * x : x);
	(void)fputs(p->plot->percent ? " %</text>\n" : "</text>\n", p->out);
}

static void print_levels(const struct picture *p)
{
	const struct page_axis *a = &p->axis;
	if (!(a->low <= a->high))
		return;
	if (!(p->step > 0)) {
		print_level(p, a->low);
		if (a->high > a->low) {
			print_level(p, a->logarithm ? sqrt(a->low * a->high) : (a->low + a->high) / 2);
			print_level(p, a->high);
		}
		return;
	}
	for (double k = rint(a->low / p->step); k * p->step <= a->high + p->step / 2; k++)
		print_level(p, k * p->step);
}

static void print_place(const struct picture *p, int64_t x, const char *class)
{
	(void)fprintf(p->out,
	              "<path d=\"M%.1f %dv4\" class=\"axis\"/><text x=\"%.1f\" y=\"%d\" "
	              "class=\"t2 %s\">",
	              at(p, x), LOW, at(p, x), NUMBERS, class);
	page_count(p->out, x);
	(void)fputs("</text>\n", p->out);
}

/* The first and the last epoch, and round ones between them that do not touch these. */
static void print_places(const struct picture *p)
{
	const int64_t first = p->plot->first, range = p->last - first;
	(void)fprintf(p->out,
	              "<path d=\"M%d %dH%d\" class=\"axis\"/>"
	              "<text x=\"0\" y=\"%d\" class=\"t2\">%s</text>",
	              LEFT, LOW, p->right, NUMBERS, p->plot->axis);
	print_place(p, first, range ? "" : "mid");
	if (!range)
		return;
	const double step = page_tick_step((double)range, p->right > 500 ? 10 : 4);
	for (double k = 1; k * step < (double)p->last; k++) {
		const int64_t x = (int64_t)(k * step);
		if ((double)x >= k * step && at(p, x) > LEFT + 34 && at(p, x) < p->right - 44)
			print_place(p, x, "mid");
	}
	print_place(p, p->last, "end");
}

/* ---- curves ---- */

/* More points than pixels would show nothing more. */
static int64_t stride_of(const struct picture *p, const struct page_series *s)
{
	return 1 + s->count / (2 * p->right);
}

static void print_point(const struct picture *p, int open, double x, double y)
{
	if (!open)
		(void)fprintf(p->out, "M%.1f %.1fh.01", x, y); /* makes a single point visible */
	else if (p->plot->steps)
		(void)fprintf(p->out, "H%.1fV%.1f", x, y);
	else
		(void)fprintf(p->out, "L%.1f %.1f", x, y);
}

/* Values that are not there, such as those of epochs without an evaluation, are passed over; one
 * that is not finite interrupts a curve only where the plot holds values in steps. */
static void print_series(const struct picture *p, const struct page_series *s)
{
	static const char *const kind[] = {"", " thin", " dashed"};
	const int64_t stride = stride_of(p, s);
	int open = 0;
	(void)fprintf(p->out, "<path class=\"series c%d%s\" d=\"", s->colour, kind[s->thin]);
	for (int64_t k = 0; k < s->count; k++) {
		const double y = value_of(s, k);
		if (!isfinite(y) || (k % stride && k != s->count - 1) || (p->axis.logarithm && y <= 0))
			continue;
		print_point(p, open, at(p, p->plot->first + k), page_axis_height(&p->axis, y));
		open = 1;
	}
	(void)fputs(open ? "\"/>\n" : "M0 0\"/>\n", p->out);
}

/* At most one mark per pixel. */
static void print_marks(const struct picture *p)
{
	double before = -1;
	for (int64_t k = 0; k < p->plot->marks; k++) {
		const struct page_mark *mark = &p->plot->mark[k];
		const double x = at(p, mark->at);
		if (x - before < 1)
			continue;
		before = x;
		(void)fputs("<g class=\"hit\"><title>", p->out);
		page_text(p->out, mark->title);
		(void)fprintf(p->out, "</title><path d=\"M%.1f %dv10\" class=\"%s\"/></g>\n", x, MARKS,
		              mark->bad ? "floor" : "skip");
	}
}

static void print_picture(struct picture p, const char *class)
{
	(void)fprintf(p.out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" class=\"%s\" role=\"img\" "
	              "aria-label=\"",
	              p.right + 8, HIGH, p.right + 8, class);
	page_text(p.out, p.plot->title);
	(void)fputs("\">\n", p.out);
	print_levels(&p);
	print_places(&p);
	for (int i = p.plot->count - 1; i >= 0; i--)
		print_series(&p, &p.plot->series[i]);
	print_marks(&p);
	(void)fputs("</svg>\n", p.out);
}

/* ---- the figure ---- */

void page_swatch(FILE *out, int colour, int thin)
{
	(void)fprintf(out,
	              "<svg width=\"22\" height=\"10\" viewBox=\"0 0 22 10\"><path d=\"M1 5H21\" "
	              "class=\"series c%d%s\"/></svg>",
	              colour, thin == 2 ? " dashed" : "");
}

static void print_legend(FILE *out, const struct page_plot *plot)
{
	int named = 0;
	for (int i = 0; i < plot->count; i++)
		named += plot->series[i].name != NULL;
	if (named < 2)
		return;
	(void)fputs("<div class=\"legend\">", out);
	for (int i = 0; i < plot->count; i++) {
		if (!plot->series[i].name)
			continue;
		(void)fputs("<span>", out);
		page_swatch(out, plot->series[i].colour, plot->series[i].thin);
		page_text(out, plot->series[i].name);
		(void)fputs("</span>\n", out);
	}
	(void)fputs("</div>\n", out);
}

void page_plot(FILE *out, const struct page_plot *plot)
{
	double step;
	const struct page_axis axis = axis_of(plot, &step);
	struct picture p = {out, plot, axis, step, plot->first, 1038};
	for (int i = 0; i < plot->count; i++)
		if (plot->first + plot->series[i].count - 1 > p.last)
			p.last = plot->first + plot->series[i].count - 1;
	(void)fputs("<h3>", out);
	page_text(out, plot->title);
	(void)fputs("</h3>\n", out);
	print_legend(out, plot);
	print_picture(p, "only-wide");
	p.right = 322;
	print_picture(p, "only-narrow");
}
