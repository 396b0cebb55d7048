/* Every tensor of the step as a histogram over the range of a half.
 *
 *     32 bins of 13: bin 0 the subnormals, 1 to 30 one power of two each, 31 what a half cannot hold
 */
#include <math.h>
#include <string.h>

#include "page.h"

static const int BIN = 13, WIDE = 32 * 13, HIGH = 34;

/* Where |x| stands. Bin 0 has 10 powers of two in it, all others one. */
static double along(double x)
{
	const double bits = log2(x);
	if (!(bits > -24))
		return 0;
	return bits < -14 ? BIN * (bits + 24) / 10 : BIN * fmin(bits + 15, 32);
}

/* The logarithm of the count, so that one bad element among a million is seen. */
static double bar(int64_t count, int64_t most)
{
	return count ? 3 + (HIGH - 4) * log1p((double)count) / log1p((double)most) : 0;
}

static void print_bar(FILE *out, const hg_doctor_tensor *t, int k, int64_t most)
{
	const double high = bar(t->bin[k], most);
	if (high > 0)
		(void)fprintf(out, "M%d %.1fh%dV%dh-%dz", k * BIN + 1, HIGH - high, BIN - 2, HIGH, BIN - 2);
}

static void print_mark(FILE *out, double x, const char *class)
{
	if (x > 0 && x < 0x1p17)
		(void)fprintf(out, "<path d=\"M%.1f 0V%d\" class=\"%s\"/>", along(x), HIGH, class);
	else if (x > 0)
		(void)fprintf(out, "<path d=\"M%d 4l5 4-5 4\" class=\"%s\"/>", WIDE - 7, class);
}

static void print_histogram(FILE *out, const hg_doctor_tensor *t)
{
	int64_t most = 1;
	for (int k = 0; k < 32; k++)
		most = t->bin[k] > most ? t->bin[k] : most;
	(void)fprintf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"histogram of ", WIDE, HIGH + 1, WIDE, HIGH + 1);
	page_text(out, t->name);
	(void)fprintf(out,
	              "\"><rect width=\"%d\" height=\"%d\" class=\"subbg\"/><rect x=\"%d\" width=\"%d\" height=\"%d\" class=\"overbg\"/><path class=\"sub\" d=\"",
	              BIN, HIGH, WIDE - BIN, BIN, HIGH);
	print_bar(out, t, 0, most);
	(void)fprintf(out, "\"/><path class=\"%s\" d=\"", t->dtype == HG_F16 ? "bar" : "bar2");
	for (int k = 1; k < 31; k++)
		print_bar(out, t, k, most);
	(void)fputs("\"/><path class=\"over\" d=\"", out);
	print_bar(out, t, 31, most);
	(void)fprintf(out, "\"/><path d=\"M0 %d.5H%d\" class=\"axis\"/>", HIGH, WIDE);
	if (isfinite(t->bound))
		print_mark(out, ldexp(t->bound, -t->shift), "bound");
	print_mark(out, ldexp(t->amax, -t->shift), "amax");
	(void)fputs("</svg>", out);
}

static void print_headroom(FILE *out, const hg_doctor_tensor *t)
{
	const int half = t->dtype == HG_F16;
	(void)fprintf(out, "<td class=\"r %s\">", half ? page_headroom_class(t->headroom) : "");
	if (!half || isnan(t->headroom))
		(void)fputs("&#8211;", out);
	else if (!isfinite(t->headroom) || t->nonfinite)
		(void)fputs(t->nonfinite ? "none" : "all", out);
	else
		(void)fprintf(out, "%.1f", t->headroom);
	(void)fputs("</td>", out);
}

/* What a histogram has no bar for. */
static void print_rest(FILE *out, const hg_doctor_tensor *t)
{
	const double all = (double)t->rows * (double)t->cols, zeros = all > 0 ? 100 * (double)t->zeros / all : 0;
	if (zeros >= 1)
		(void)fprintf(out, "<div class=\"soft small\">%.0f %% zero</div>", zeros);
	else if (t->zeros)
		(void)fprintf(out, "<div class=\"soft small\">%lld zero</div>", (long long)t->zeros);
	if (t->nonfinite)
		(void)fprintf(out, "<div class=\"small\" style=\"color:var(--bad)\">%lld not finite</div>", (long long)t->nonfinite);
}

static int is_origin(const struct diagnosis *d, const hg_doctor_tensor *t)
{
	return d->findings && strcmp(d->finding[0].tensor, t->name) == 0;
}

static void print_tensor(FILE *out, const struct diagnosis *d, const hg_doctor_tensor *t)
{
	static const char *const colour[] = {[HG_PROVED] = "good", [HG_GUARDED] = "plain", [HG_PROMOTED] = "plain", [HG_REFUSED] = "bad", [HG_EXACT] = "plain"};
	(void)fprintf(out, "<tr%s><td><div class=\"who\">", is_origin(d, t) ? " class=\"origin\"" : "");
	page_text(out, t->name);
	(void)fprintf(out, "</div><div class=\"soft small\">%s [%lld, %lld]</div></td><td><span class=\"badge %s\">%s</span></td><td>", hg_dtype_name(t->dtype),
	              (long long)t->rows, (long long)t->cols, colour[t->verdict], hg_verdict_name(t->verdict));
	print_histogram(out, t);
	(void)fputs("</td><td class=\"small\">", out);
	page_number(out, t->amax);
	print_rest(out, t);
	(void)fputs("</td>", out);
	print_headroom(out, t);
	(void)fputs("</tr>\n", out);
}

/* The powers of two that bins begin with. */
static void print_ruler(FILE *out)
{
	static const struct {
		int bin;
		const char *text;
	} mark[] = {{1, "2<tspan dy=\"-4\" style=\"font-size:8px\">-14</tspan>"}, {8, "1/128"}, {15, "1"}, {22, "128"}, {31, "65504"}};
	(void)fprintf(out, "<svg viewBox=\"0 0 %d 16\" width=\"%d\" aria-hidden=\"true\" style=\"overflow:visible\">", WIDE, WIDE);
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		(void)fprintf(out, "<text x=\"%d\" y=\"13\" class=\"t2 mid\">%s</text>", mark[i].bin * BIN, mark[i].text);
	(void)fputs("</svg>", out);
}

enum part { READ, FORWARD, BACKWARD };

static enum part part_of(const hg_doctor_tensor *t)
{
	return t->backward ? BACKWARD : t->node < 0 ? READ : FORWARD;
}

static void print_table(FILE *out, const struct diagnosis *d, enum part part)
{
	static const char *const title[] = {[READ] = "What is read", [FORWARD] = "Forward", [BACKWARD] = "Backward"};
	const hg_doctor_report *r = d->report;
	(void)fprintf(out,
	              "<h3>%s</h3>\n<div class=\"wide\"><table class=\"tensors\">\n<colgroup><col/><col style=\"width:104px\"/><col style=\"width:430px\"/><col "
	              "style=\"width:150px\"/><col style=\"width:70px\"/></colgroup>\n<tr><th>tensor</th><th>verdict</th><th>",
	              title[part]);
	print_ruler(out);
	(void)fputs("</th><th>largest |x|</th><th class=\"r\">headroom</th></tr>\n", out);
	for (int i = 0; i < r->tensors; i++)
		if (part_of(&r->tensor[i]) == part)
			print_tensor(out, d, &r->tensor[i]);
	(void)fputs("</table></div>\n", out);
}

void page_tensors(FILE *out, const struct diagnosis *d)
{
	if (!d->report || !d->report->tensors)
		return;
	(void)fprintf(out,
	              "<section>\n<h2>Headroom of every tensor</h2>\n<p class=\"soft\">Step %lld, loss scale %.8g. A bar is a power of two, its height the "
	              "logarithm of the count; "
	              "headroom, in bits, is how many times the largest value can double before fp16 holds it no more.</p>\n<div class=\"legend\">",
	              (long long)d->report->step, d->report->loss_scale);
	(void)fputs("<span><svg width=\"14\" height=\"14\"><rect width=\"14\" height=\"14\" class=\"bar\"/></svg>fp16</span>"
	            "<span><svg width=\"14\" height=\"14\"><rect width=\"14\" height=\"14\" class=\"bar2\"/></svg>fp32</span>"
	            "<span><svg width=\"14\" height=\"14\"><rect width=\"14\" height=\"14\" class=\"subbg\"/><rect y=\"7\" width=\"14\" height=\"7\" "
	            "class=\"sub\"/></svg>subnormal: "
	            "bits are lost</span>"
	            "<span><svg width=\"14\" height=\"14\"><rect width=\"14\" height=\"14\" class=\"overbg\"/><rect y=\"7\" width=\"14\" height=\"7\" "
	            "class=\"over\"/></svg>beyond "
	            "65504</span>"
	            "<span><svg width=\"14\" height=\"14\"><path d=\"M7 0V14\" class=\"amax\"/></svg>largest value</span>"
	            "<span><svg width=\"14\" height=\"14\"><path d=\"M7 0V14\" class=\"bound\"/></svg>bound that is proved or assumed</span></div>\n",
	            out);
	print_table(out, d, READ);
	print_table(out, d, FORWARD);
	print_table(out, d, BACKWARD);
	(void)fputs("</section>\n", out);
}
