/* Loss and loss scale, step by step, with the skipped steps. */
#include <math.h>

#include "page.h"

static const int LEFT = 64, LOSS_TOP = 30, LOSS_LOW = 160, SCALE_TOP = 204, SCALE_LOW = 258,
                 HIGH = 292;

/* The picture is drawn once for a wide window and once for a telephone. */
struct picture {
	FILE *out;
	const struct history *c;
	int right;
};

static double at_step(const struct picture *p, int64_t k)
{
	const int64_t count = p->c->count;
	return count > 1 ? LEFT + (double)(p->right - LEFT) * (double)k / (double)(count - 1)
	                 : (LEFT + p->right) / 2.0;
}

static struct page_axis loss_axis(const struct history *c)
{
	struct page_axis a = page_axis_of(LOSS_TOP, LOSS_LOW);
	for (int64_t k = 0; k < c->count; k++)
		page_axis_take(&a, c->step[k].loss);
	a.logarithm = page_axis_spreads(&a);
	return a;
}

static struct page_axis scale_axis(const struct history *c)
{
	struct page_axis a = {c->scale, c->scale, 1, SCALE_TOP, SCALE_LOW};
	for (int64_t k = 0; k < c->count; k++)
		page_axis_take(&a, c->step[k].scale);
	return a;
}

/* Steps per point: more points than pixels would show nothing more. */
static int64_t stride(const struct picture *p)
{
	return 1 + p->c->count / (2 * p->right);
}

static void print_loss(const struct picture *p, const struct page_axis *a)
{
	int open = 0;
	(void)fputs("<path class=\"line\" d=\"", p->out);
	for (int64_t k = 0; k < p->c->count; k += stride(p)) {
		const double loss = p->c->step[k].loss;
		if (isfinite(loss))
			(void)fprintf(p->out, "%c%.1f %.1f", open ? 'L' : 'M', at_step(p, k),
			              page_axis_height(a, loss));
		if (isfinite(loss) && !open)
			(void)fputs("h.01", p->out); /* makes a single point visible */
		open = isfinite(loss);
	}
	(void)fputs("\" stroke-linecap=\"round\"/>\n", p->out);
}

static void print_scale(const struct picture *p, const struct page_axis *a)
{
	(void)fputs("<path class=\"scale\" d=\"", p->out);
	for (int64_t k = 0; k < p->c->count; k += stride(p))
		(void)fprintf(p->out, k ? "H%.1fV%.1f" : "M%.1f %.1f", at_step(p, k),
		              page_axis_height(a, p->c->step[k].scale));
	(void)fprintf(p->out, "V%.1fh5\"/>\n", page_axis_height(a, p->c->scale));
}

static void print_mark(const struct picture *p, int64_t k, double x)
{
	const struct history_step *s = &p->c->step[k];
	const int near_end = x > p->right - 140;
	char loss[NAME_SIZE];
	(void)fprintf(p->out, "<g class=\"hit\"><title>step %lld: loss %s, loss scale %.8g, ",
	              (long long)(p->c->first + k), name_number(s->loss, loss), s->scale);
	page_text(p->out, hg_step_reason_text(s->reason));
	(void)fprintf(p->out, "</title><path d=\"M%.1f %dV%d\" class=\"%s\"/>", x, SCALE_LOW + 4,
	              SCALE_LOW + 13,
	              s->reason == HG_STEP_SKIPPED_AT_FLOOR || !isfinite(s->loss) ? "floor" : "skip");
	if (!isfinite(s->loss))
		(void)fprintf(p->out,
		              "<path d=\"M%.1f %dl5 9h-10z\" class=\"over\"/><text x=\"%.1f\" y=\"%d\" "
		              "class=\"t2%s\">%s</text>",
		              x, LOSS_TOP, x + (near_end ? -9 : 9), LOSS_TOP + 9, near_end ? " end" : "",
		              loss);
	(void)fputs("</g>\n", p->out);
}

/* Mark skipped steps and losses that are not finite, at most one mark per pixel. */
static void print_marks(const struct picture *p)
{
	double before = -1;
	for (int64_t k = 0; k < p->c->count; k++) {
		const struct history_step *s = &p->c->step[k];
		const double x = at_step(p, k);
		if ((s->applied && isfinite(s->loss)) || x - before < 1)
			continue;
		before = x;
		print_mark(p, k, x);
	}
}

/* List the reasons of the first skipped steps. */
static void print_reasons(FILE *out, const struct history *c)
{
	int64_t listed = 0;
	if (!c->skipped)
		return;
	(void)fputs("<h3>Skipped steps</h3>\n<table><tr><th>step</th><th>loss</th><th>loss "
	            "scale</th><th>why</th></tr>\n",
	            out);
	for (int64_t k = 0; k < c->count && listed < 12; k++) {
		const struct history_step *s = &c->step[k];
		if (s->applied)
			continue;
		listed++;
		(void)fprintf(out, "<tr><td>%lld</td><td>", (long long)(c->first + k));
		page_number(out, s->loss);
		(void)fputs("</td><td>", out);
		page_number(out, s->scale);
		(void)fputs("</td><td>", out);
		page_text(out, hg_step_reason_text(s->reason));
		(void)fputs("</td></tr>\n", out);
	}
	(void)fputs("</table>\n", out);
	if (c->skipped > listed)
		(void)fprintf(out, "<p class=\"soft small\">and %lld more</p>\n",
		              (long long)(c->skipped - listed));
}

static void print_picture(const struct picture *p, const char *class)
{
	const struct history *c = p->c;
	const struct page_axis loss = loss_axis(c), scale = scale_axis(c);
	(void)fprintf(p->out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" class=\"%s\" role=\"img\" "
	              "aria-label=\"Loss and loss scale\">\n"
	              "<text x=\"0\" y=\"%d\" class=\"bold\">loss</text><text x=\"0\" y=\"%d\" "
	              "class=\"bold\">loss scale</text>\n",
	              p->right + 8, HIGH, p->right + 8, class, LOSS_TOP - 16, SCALE_TOP - 16);
	page_axis_ticks(p->out, &loss, LEFT, p->right, 1);
	page_axis_ticks(p->out, &scale, LEFT, p->right, 0);
	print_loss(p, &loss);
	print_scale(p, &scale);
	print_marks(p);
	(void)fprintf(p->out,
	              "<text x=\"%d\" y=\"%d\" class=\"t2\">step %lld</text>"
	              "<text x=\"%d\" y=\"%d\" class=\"t2 end\">%lld</text>\n</svg>\n",
	              LEFT, HIGH - 6, (long long)c->first, p->right, HIGH - 6,
	              (long long)(c->first + c->count - 1));
}

void page_history(FILE *out, const struct diagnosis *d)
{
	const struct picture wide = {out, &d->history, 1038}, narrow = {out, &d->history, 322};
	if (!d->history.count)
		return;
	(void)fputs("<section>\n<h2>The run</h2>\n<p class=\"soft\">Loss and loss scale of every step. "
	            "Marks below: steps that "
	            "were skipped, in red where the loss scale could not help.</p>\n",
	            out);
	print_picture(&wide, "only-wide");
	print_picture(&narrow, "only-narrow");
	print_reasons(out, &d->history);
	(void)fputs("</section>\n", out);
}
