/* The running sum as a curve: the sum in fp16, the true sum, and the limit of fp16. */
#include <math.h>

#include "page.h"

/* From this many terms on a curve shows more than the terms themselves. */
enum { LEAST_TERMS = 12 };

/* The picture, in pixels: drawn once for a wide window and once for a telephone. */
struct frame {
	FILE *out;
	const hg_finding *f;
	int wide, left, right, top, bottom, high;
	double low, most; /* values at the bottom and at the top */
	int ticks;
};

static double at_term(const struct frame *p, double taken)
{
	return p->left + (p->right - p->left) * taken / (double)p->f->terms;
}

static double at_value(const struct frame *p, double x)
{
	return p->bottom - (p->bottom - p->top) * (x - p->low) / (p->most - p->low);
}

/* ---- what is shown ---- */

static int has_half(const hg_finding *f)
{
	for (int i = 0; i < f->runnings; i++)
		if (!isnan(f->running[i].half))
			return 1;
	return 0;
}

/* The value at which the running sum overflows, on the scale of the result; 0: the curve stays far
 * below it. */
static double limit_of(const hg_finding *f)
{
	const double end = ldexp(65504.0, f->shift) * f->partial_factor;
	double most = 0;
	if (f->cause == HG_CAUSE_SWAMPING || f->limit > 0x1p127)
		return 0;
	for (int i = 0; i < f->runnings; i++) {
		const double x = isfinite(f->running[i].half) ? f->running[i].half : f->running[i].wide;
		most = fabs(x) > fabs(most) ? x : most;
	}
	return fabs(most) >= end / 2 ? copysign(end, most) : 0;
}

static void widen_to(struct frame *p, double x)
{
	if (!isfinite(x))
		return;
	p->low = fmin(p->low, x);
	p->most = fmax(p->most, x);
}

static void frame_fit(struct frame *p)
{
	const hg_finding *f = p->f;
	widen_to(p, limit_of(f));
	for (int i = 0; i < f->runnings; i++) {
		widen_to(p, f->running[i].half);
		widen_to(p, f->running[i].wide);
	}
	if (!(p->most > p->low))
		p->most = p->low + 1;
	const double air = 0.06 * (p->most - p->low);
	p->most += p->most > 0 ? air : 0;
	p->low -= p->low < 0 ? air : 0;
}

/* ---- axes ---- */

static void print_values(const struct frame *p)
{
	const double step = page_tick_step(p->most - p->low, p->ticks);
	for (double k = ceil(p->low / step); k * step <= p->most; k++) {
		const double y = at_value(p, k * step);
		(void)fprintf(
		    p->out,
		    "<path d=\"M%d %.1fH%d\" class=\"%s\"/><text x=\"%d\" y=\"%.1f\" class=\"t2 end\">",
		    p->left, y, p->right, k == 0 ? "axis" : "grid", p->left - 7, y + 4);
		page_number(p->out, k * step);
		(void)fputs("</text>\n", p->out);
	}
}

static void print_terms(const struct frame *p)
{
	const double step = fmax(1, page_tick_step((double)p->f->terms, p->ticks));
	for (double k = 0; k * step <= (double)p->f->terms; k++) {
		const double x = at_term(p, k * step);
		const int last = x > p->right - 24;
		(void)fprintf(
		    p->out,
		    "<path d=\"M%.1f %dv4\" class=\"axis\"/><text x=\"%.1f\" y=\"%d\" class=\"t2 %s\">", x,
		    p->bottom, last ? p->right : x, p->bottom + 18, last ? "end" : "mid");
		page_count(p->out, (int64_t)(k * step));
		(void)fputs("</text>\n", p->out);
	}
	(void)fprintf(p->out, "<path d=\"M%d %dH%d\" class=\"axis\"/>", p->left, p->bottom, p->right);
	(void)fprintf(p->out, "<text x=\"%d\" y=\"%d\" class=\"t2 end\">terms added</text>\n", p->right,
	              p->high - 4);
}

/* ---- curves ---- */

static void print_curve(const struct frame *p, int half)
{
	int open = 0;
	(void)fprintf(p->out, "<path class=\"%s\" d=\"M%.1f %.1f", half ? "half" : "true",
	              at_term(p, 0), at_value(p, 0));
	for (int i = 0; i < p->f->runnings; i++) {
		const hg_running *r = &p->f->running[i];
		const double x = half ? r->half : r->wide;
		if (!isfinite(x))
			break;
		(void)fprintf(p->out, "%s%.1f %.1f", open++ ? " " : "L", at_term(p, (double)r->taken),
		              at_value(p, x));
	}
	(void)fputs("\"/>\n", p->out);
}

static void print_limit(const struct frame *p)
{
	const double limit = limit_of(p->f), y = at_value(p, limit);
	if (limit == 0)
		return;
	(void)fprintf(p->out, "<path d=\"M%d %.1fH%d\" class=\"ends\"/>", p->left, y, p->right);
	(void)fprintf(p->out,
	              "<text x=\"%d\" y=\"%.1f\" class=\"t2 halo bad\">fp16 ends: ", p->left + 6,
	              y + (limit > 0 ? -6 : 15));
	page_number(p->out, limit);
	(void)fputs(p->f->partial_factor != 1.0 && p->wide > 500
	                ? " (65504 x the factor of the sum)</text>\n"
	                : "</text>\n",
	            p->out);
}

/* The label stands below the point on its right if there is room, else above it on its left. */
static void print_end(const struct frame *p, double x, double y)
{
	const int fits = x + 110 < p->right && y + 40 < p->bottom;
	const double at = x + (fits ? 9 : -9);
	(void)fprintf(
	    p->out,
	    "<text y=\"%.1f\" class=\"halo bold bad%s\"><tspan x=\"%.1f\">overflows with</tspan>"
	    "<tspan x=\"%.1f\" dy=\"15\">term ",
	    fits ? y + 20 : fmax(y - 26, 12), fits ? "" : " end", at, at);
	page_count(p->out, p->f->partial_at);
	(void)fputs("</tspan></text>\n", p->out);
}

/* The label stands above the middle of the rest of the sum. */
static void print_stuck(const struct frame *p, double x, double y)
{
	const double middle = fmin((x + p->right) / 2, p->right - 105);
	(void)fprintf(p->out,
	              "<text x=\"%.1f\" y=\"%.1f\" class=\"halo bold bad mid\">terms get lost from ",
	              middle, y - 9);
	page_count(p->out, p->f->partial_at + 1);
	(void)fputs(" on</text>\n", p->out);
}

/* Mark the point at which the fp16 sum leaves the true sum. */
static void print_point(const struct frame *p)
{
	const hg_finding *f = p->f;
	const int lost = f->cause == HG_CAUSE_SWAMPING;
	const hg_running *there = NULL;
	for (int i = 0; i < f->runnings && f->partial_at > 0; i++)
		if (f->running[i].taken <= f->partial_at && isfinite(f->running[i].half))
			there = &f->running[i];
	if (!there)
		return;
	const double x = at_term(p, (double)there->taken), y = at_value(p, there->half);
	(void)fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" class=\"bad\"/>", x, y);
	if (lost)
		print_stuck(p, x, y);
	else
		print_end(p, x, y);
}

static void print_frame(struct frame p, const char *class)
{
	frame_fit(&p);
	(void)fprintf(p.out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" class=\"%s\" role=\"img\" "
	              "aria-label=\"The sum, term by term\">\n",
	              p.wide, p.high, p.wide, class);
	print_values(&p);
	print_terms(&p);
	print_limit(&p);
	print_curve(&p, 0);
	if (has_half(p.f)) {
		print_curve(&p, 1);
		print_point(&p);
	}
	(void)fputs("</svg>\n", p.out);
}

static void print_caption(FILE *out, const hg_finding *f)
{
	(void)fputs("<p class=\"soft\">", out);
	if (f->ignored) {
		page_count(out, f->ignored);
		(void)fputs(" of ", out);
		page_count(out, f->terms);
		(void)fputs(" terms changed nothing: each is less than half of the step between two "
		            "numbers of fp16 there.",
		            out);
	} else if (has_half(f) && f->partial_at > 0) {
		(void)fputs("The sum in fp16 ends with term ", out);
		page_count(out, f->partial_at);
		(void)fputs(" of ", out);
		page_count(out, f->terms);
		(void)fputs(f->cause == HG_CAUSE_ACCUMULATION ? "; the sum itself would fit."
		                                              : "; the sum itself does not fit.",
		            out);
	} else {
		(void)fputs("The sum is computed in fp32; its result is larger than fp16 can hold.", out);
	}
	(void)fputs("</p>\n<div class=\"legend\"><span><svg width=\"22\" height=\"10\"><path d=\"M1 "
	            "5H21\" class=\"true\"/></svg>"
	            "the true sum (fp64)</span>",
	            out);
	if (has_half(f))
		(void)fputs(
		    "<span><svg width=\"22\" height=\"10\"><path d=\"M1 5H21\" class=\"half\"/></svg>"
		    "the running sum in fp16</span>",
		    out);
	(void)fputs("</div>\n", out);
}

void page_curve(FILE *out, const hg_finding *f)
{
	const struct frame wide = {out, f, 1000, 70, 986, 14, 250, 288, 0, 0, 7},
	                   narrow = {out, f, 340, 52, 330, 12, 210, 248, 0, 0, 4};
	if (f->terms < LEAST_TERMS || f->runnings < 2)
		return;
	(void)fputs("<h3>The sum, term by term</h3>\n", out);
	print_caption(out, f);
	print_frame(wide, "only-wide");
	print_frame(narrow, "only-narrow");
}
