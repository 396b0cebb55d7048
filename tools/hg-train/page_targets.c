/* Real targets: how large the errors are, and predictions beside the truth. */
#include <math.h>

#include "page.h"

/* Targets that are drawn; points of a picture. */
enum { MOST_TARGETS = 8, MOST_POINTS = 700, BINS = 31 };
enum { LEFT = 58, RIGHT = 322, TOP = 10, LOW = 210, HIGH = 246 };

struct errors {
	int64_t count;
	double mean, absolute, square, low, high; /* of prediction - truth; low, high: of both values */
	double truth_mean, truth_square;
	double widest;
};

/* One target: visits rows where it is known and the prediction is a number. */
static int pair_of(const struct judged *j, int64_t row, int64_t c, double *truth, double *said)
{
	*truth = (double)j->truth[row * j->cols + c];
	*said = (double)j->prediction[row * j->cols + c];
	return isfinite(*truth) && isfinite(*said);
}

static struct errors errors_of(const struct judged *j, int64_t c)
{
	struct errors e = {.low = INFINITY, .high = -INFINITY};
	double t, p;
	for (int64_t i = 0; i < j->rows; i++) {
		if (!pair_of(j, i, c, &t, &p))
			continue;
		e.count++;
		e.mean += p - t;
		e.absolute += fabs(p - t);
		e.square += (p - t) * (p - t);
		e.truth_mean += t;
		e.low = fmin(e.low, fmin(t, p));
		e.high = fmax(e.high, fmax(t, p));
		e.widest = fmax(e.widest, fabs(p - t));
	}
	e.mean /= (double)e.count;
	e.absolute /= (double)e.count;
	e.square /= (double)e.count;
	e.truth_mean /= (double)e.count;
	for (int64_t i = 0; i < j->rows; i++)
		if (pair_of(j, i, c, &t, &p))
			e.truth_square += (t - e.truth_mean) * (t - e.truth_mean) / (double)e.count;
	return e;
}

static void print_text(FILE *out, double x, double y, const char *class, double value)
{
	(void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"t2 %s\">", x, y, class);
	page_number(out, value);
	(void)fputs("</text>\n", out);
}

static void print_frame(FILE *out, const char *what, const char *below)
{
	(void)fprintf(out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"%s\">\n"
	              "<path d=\"M%d %dV%dH%d\" class=\"axis\"/>"
	              "<text x=\"%d\" y=\"%d\" class=\"t2 mid\">%s</text>\n",
	              RIGHT + 8, HIGH, RIGHT + 8, what, LEFT, TOP, LOW, RIGHT, (LEFT + RIGHT) / 2,
	              HIGH - 4, below);
}

/* ---- the histogram ---- */

static void print_histogram(FILE *out, const struct judged *j, int64_t c, const struct errors *e)
{
	int64_t bin[BINS] = {0}, most = 1;
	const double reach = e->widest > 0 ? e->widest * (1 + 1e-12) : 1;
	double t, p;
	for (int64_t i = 0; i < j->rows; i++)
		if (pair_of(j, i, c, &t, &p))
			bin[(int)fmin((p - t + reach) / (2 * reach) * BINS, BINS - 1)]++;
	for (int k = 0; k < BINS; k++)
		most = bin[k] > most ? bin[k] : most;
	print_frame(out, "Histogram of the errors", "prediction - truth");
	(void)fputs("<path class=\"bar\" d=\"", out);
	const double wide = (double)(RIGHT - LEFT) / BINS;
	for (int k = 0; k < BINS; k++)
		if (bin[k])
			(void)fprintf(out, "M%.1f %dV%.1fh%.1fV%dz", LEFT + k * wide + 0.5, LOW,
			              LOW - (double)(LOW - TOP) * (double)bin[k] / (double)most, wide - 1, LOW);
	(void)fputs("\"/>\n", out);
	(void)fprintf(out, "<path d=\"M%.1f %dV%d\" class=\"same\"/>", (LEFT + RIGHT) / 2.0, TOP, LOW);
	print_text(out, LEFT, LOW + 16, "", -reach);
	print_text(out, (LEFT + RIGHT) / 2.0, LOW + 16, "mid", 0);
	print_text(out, RIGHT, LOW + 16, "end", reach);
	print_text(out, LEFT - 6, TOP + 8, "end", (double)most);
	print_text(out, LEFT - 6, LOW, "end", 0);
	(void)fputs("</svg>\n", out);
}

/* ---- predictions beside the truth ---- */

static void print_points(FILE *out, const struct judged *j, int64_t c, const struct errors *e)
{
	const double range = e->high > e->low ? e->high - e->low : 1;
	const int64_t stride = 1 + e->count / MOST_POINTS;
	int64_t seen = 0;
	double t, p;
	print_frame(out, "Predicted values beside the true ones", "truth");
	(void)fprintf(out, "<path d=\"M%d %dL%d %d\" class=\"same\"/>\n", LEFT, LOW, RIGHT, TOP);
	for (int64_t i = 0; i < j->rows; i++)
		if (pair_of(j, i, c, &t, &p) && seen++ % stride == 0)
			(void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\" class=\"dot\"/>",
			              LEFT + (RIGHT - LEFT) * (t - e->low) / range,
			              LOW - (LOW - TOP) * (p - e->low) / range);
	(void)fputc('\n', out);
	print_text(out, LEFT, LOW + 16, "", e->low);
	print_text(out, RIGHT, LOW + 16, "end", e->high);
	print_text(out, LEFT - 6, LOW, "end", e->low);
	print_text(out, LEFT - 6, TOP + 8, "end", e->high);
	(void)fputs("</svg>\n", out);
}

static void print_row(FILE *out, int64_t c, const struct errors *e)
{
	const double value[] = {e->absolute, sqrt(e->square), e->mean,
	                        e->truth_square > 0 ? 1 - e->square / e->truth_square : (double)NAN};
	(void)fprintf(out, "<tr><td>%lld</td>", (long long)c);
	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		(void)fputs("<td>", out);
		if (isfinite(value[i]))
			(void)fprintf(out, "%.5g", value[i]);
		else
			(void)fputs("&#8211;", out);
		(void)fputs("</td>", out);
	}
	(void)fprintf(out, "<td>%lld</td></tr>\n", (long long)e->count);
}

void page_targets(FILE *out, const struct judged *j)
{
	(void)fputs("<div class=\"scroll\"><table class=\"num targets slim\"><tr><th>target</th>"
	            "<th>mean |error|</th><th>root mean square</th><th>mean error</th>"
	            "<th>R&#178;</th><th>values</th></tr>\n",
	            out);
	for (int64_t c = 0; c < j->cols; c++) {
		const struct errors e = errors_of(j, c);
		print_row(out, c, &e);
	}
	(void)fputs("</table></div>\n<p class=\"soft small\">R&#178;: the part of the truth's variance "
	            "that is predicted; 1 is all of it, 0 no more than the mean would.</p>\n",
	            out);
	for (int64_t c = 0; c < j->cols && c < MOST_TARGETS; c++) {
		const struct errors e = errors_of(j, c);
		if (!e.count)
			continue;
		(void)fprintf(out,
		              "<h3>Target %lld: errors, and predictions beside the truth</h3>\n"
		              "<div class=\"figures\"><div>",
		              (long long)c);
		print_histogram(out, j, c, &e);
		(void)fputs("</div><div>", out);
		print_points(out, j, c, &e);
		(void)fputs("</div></div>\n", out);
	}
	if (j->cols > MOST_TARGETS)
		(void)fprintf(out, "<p class=\"soft\">The other %lld targets are not drawn.</p>\n",
		              (long long)(j->cols - MOST_TARGETS));
}
