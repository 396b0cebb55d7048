/* Every tensor of the step as a histogram over the range of fp16.
 *
 *    x: 32 bins of 13 pixels: bin 0 holds the subnormals, bins 1 to 30 one power of two each,
 *       bin 31 everything larger
 *    y: the logarithm of the count, so that one bad element among a million is visible */
#include <math.h>
#include <string.h>

#include "html.h"

static const int BIN = 13, LEFT = 44, PLOT = 32 * 13, WIDE = 44 + 32 * 13 + 16, TOP = 8, LOW = 54,
                 HIGH = 74;

/* The x coordinate of |x|. Bin 0 covers 10 powers of two, all other bins one. */
static double x_of(double x)
{
	const double bits = log2(x);
	if (!(bits > -24))
		return LEFT;
	return LEFT + (bits < -14 ? BIN * (bits + 24) / 10 : BIN * fmin(bits + 15, 32));
}

static int64_t largest_count(const hg_doctor_tensor *t)
{
	int64_t most = 1;
	for (int k = 0; k < 32; k++)
		most = t->bin[k] > most ? t->bin[k] : most;
	return most;
}

/* The y coordinate of a count. A count of one has the height of one decade, so that it is
 * visible. */
static double y_of(double count, int64_t most)
{
	return LOW - (LOW - TOP) * (1 + log10(count)) / (1 + log10((double)most));
}

static void print_bar(FILE *out, const hg_doctor_tensor *t, int k, int64_t most)
{
	if (t->bin[k])
		(void)fprintf(out, "M%d %.1fh%dV%dh-%dz", LEFT + k * BIN + 1, y_of((double)t->bin[k], most),
		              BIN - 2, LOW, BIN - 2);
}

static void print_mark(FILE *out, double x, const char *class)
{
	if (x > 0 && x < 0x1p17)
		(void)fprintf(out, "<path d=\"M%.1f %dV%d\" class=\"%s\"/>", x_of(x), TOP - 3, LOW, class);
	else if (x > 0)
		(void)fprintf(out, "<path d=\"M%d %dl5 4-5 4\" class=\"%s\"/>", LEFT + PLOT - 7, TOP,
		              class);
}

/* Labels of the powers of two at which some bins begin. */
static void print_sizes(FILE *out)
{
	static const struct {
		int bin;
		const char *text;
	} mark[] = {{1, "2<tspan dy=\"-4\" style=\"font-size:.75em\">-14</tspan>"},
	            {8, "1/128"},
	            {15, "1"},
	            {22, "128"},
	            {31, "65504"}};
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		(void)fprintf(out,
		              "<path d=\"M%d %dv4\" class=\"axis\"/><text x=\"%d\" y=\"%d\" class=\"t2 "
		              "mid\">%s</text>",
		              LEFT + mark[i].bin * BIN, LOW, LEFT + mark[i].bin * BIN, HIGH - 4,
		              mark[i].text);
}

/* 1, 10, 100, 1k, 10k, 100k, 1M, ... */
static void print_power(FILE *out, int power, int64_t most)
{
	static const char *const unit[] = {"", "k", "M", "G", "T"};
	static const int whole[] = {1, 10, 100};
	const double y = y_of(pow(10, power), most);
	(void)fprintf(out,
	              "<path d=\"M%d %.1fH%d\" class=\"grid\"/><text x=\"%d\" y=\"%.1f\" class=\"t2 "
	              "end\">%d%s</text>",
	              LEFT, y, LEFT + PLOT, LEFT - 5, y + 4, whole[power % 3],
	              unit[power / 3 < 4 ? power / 3 : 4]);
}

/* Ticks at 1, at the largest power of ten below the largest count, and halfway. */
static void print_counts(FILE *out, int64_t most)
{
	const int top = (int)floor(log10((double)most));
	print_power(out, 0, most);
	if (top > 3)
		print_power(out, top / 2, most);
	if (top > 0)
		print_power(out, top, most);
}

static void print_ground(FILE *out, const hg_doctor_tensor *t, int64_t most)
{
	(void)fprintf(out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"histogram of ",
	              WIDE, HIGH, WIDE);
	page_text(out, t->name);
	(void)fprintf(out,
	              "\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"subbg\"/>"
	              "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"overbg\"/>",
	              LEFT, TOP, BIN, LOW - TOP, LEFT + PLOT - BIN, TOP, BIN, LOW - TOP);
	print_counts(out, most);
}

static void print_histogram(FILE *out, const hg_doctor_tensor *t)
{
	const int64_t most = largest_count(t);
	print_ground(out, t, most);
	(void)fputs("<path class=\"sub\" d=\"", out);
	print_bar(out, t, 0, most);
	(void)fprintf(out, "\"/><path class=\"%s\" d=\"", t->dtype == HG_F16 ? "bar" : "bar2");
	for (int k = 1; k < 31; k++)
		print_bar(out, t, k, most);
	(void)fputs("\"/><path class=\"over\" d=\"", out);
	print_bar(out, t, 31, most);
	(void)fprintf(out, "\"/><path d=\"M%d %d.5H%d\" class=\"axis\"/>", LEFT, LOW, LEFT + PLOT);
	print_sizes(out);
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

/* What has no bar in the histogram: zeros and values that are not finite. */
static void print_rest(FILE *out, const hg_doctor_tensor *t)
{
	const double all = (double)t->rows * (double)t->cols,
	             zeros = all > 0 ? 100 * (double)t->zeros / all : 0;
	if (zeros >= 1)
		(void)fprintf(out, "<div class=\"soft small\">%.0f %% zero</div>", zeros);
	else if (t->zeros)
		(void)fprintf(out, "<div class=\"soft small\">%lld zero</div>", (long long)t->zeros);
	if (t->nonfinite)
		(void)fprintf(out, "<div class=\"small\" style=\"color:var(--bad)\">%lld not finite</div>",
		              (long long)t->nonfinite);
}

static void print_tensor(FILE *out, const char *origin, const hg_doctor_tensor *t)
{
	static const char *const colour[] = {[HG_PROVED] = "good",
	                                     [HG_GUARDED] = "plain",
	                                     [HG_PROMOTED] = "plain",
	                                     [HG_REFUSED] = "bad",
	                                     [HG_EXACT] = "plain"};
	(void)fprintf(out, "<tr%s><td><div class=\"who\">",
	              origin && strcmp(origin, t->name) == 0 ? " class=\"origin\"" : "");
	page_name(out, t->name);
	(void)fprintf(out, "</div><div class=\"soft small\">%s, %lld x %lld</div></td>",
	              page_type(t->dtype), (long long)t->rows, (long long)t->cols);
	(void)fprintf(out, "<td><span class=\"badge %s\">%s</span></td><td>", colour[t->verdict],
	              hg_verdict_name(t->verdict));
	print_histogram(out, t);
	(void)fputs("</td><td class=\"small\"><span class=\"soft\">max </span>", out);
	page_number(out, t->amax);
	print_rest(out, t);
	(void)fputs("</td>", out);
	print_headroom(out, t);
	(void)fputs("</tr>\n", out);
}

enum part { READ, FORWARD, BACKWARD };

static enum part part_of(const hg_doctor_tensor *t)
{
	return t->backward ? BACKWARD : t->node < 0 ? READ : FORWARD;
}

static void print_table(FILE *out, const hg_doctor_tensor *tensor, int tensors, const char *origin,
                        enum part part)
{
	static const char *const title[] = {
	    [READ] = "What is read", [FORWARD] = "Forward", [BACKWARD] = "Backward"};
	(void)fprintf(
	    out,
	    "<h3>%s</h3>\n<table class=\"tensors\">\n<colgroup><col/><col style=\"width:98px\"/>"
	    "<col style=\"width:486px\"/><col style=\"width:128px\"/><col "
	    "style=\"width:74px\"/></colgroup>\n"
	    "<tr><th>tensor</th><th>verdict</th><th>number of elements, by size</th><th>largest "
	    "|x|</th>"
	    "<th class=\"r\">headroom</th></tr>\n",
	    title[part]);
	for (int i = 0; i < tensors; i++)
		if (part_of(&tensor[i]) == part)
			print_tensor(out, origin, &tensor[i]);
	(void)fputs("</table>\n", out);
}

static void print_key(FILE *out)
{
	static const struct {
		const char *drawn, *text;
	} key[] = {
	    {"<rect width=\"14\" height=\"14\" class=\"bar\"/>", "fp16"},
	    {"<rect width=\"14\" height=\"14\" class=\"bar2\"/>", "fp32"},
	    {"<rect width=\"14\" height=\"14\" class=\"subbg\"/><rect y=\"7\" width=\"14\" "
	     "height=\"7\" class=\"sub\"/>",
	     "below 2&#8315;&#185;&#8308;: digits are lost"},
	    {"<rect width=\"14\" height=\"14\" class=\"overbg\"/><rect y=\"7\" width=\"14\" "
	     "height=\"7\" class=\"over\"/>",
	     "beyond 65504"},
	    {"<path d=\"M7 0V14\" class=\"amax\"/>", "largest value"},
	    {"<path d=\"M7 0V14\" class=\"bound\"/>", "upper bound, proved or assumed"},
	};
	(void)fputs("<div class=\"legend\">", out);
	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		(void)fprintf(out, "<span><svg width=\"14\" height=\"14\">%s</svg>%s</span>\n",
		              key[i].drawn, key[i].text);
	(void)fputs("</div>\n<div class=\"legend\">"
	            "<span><span class=\"badge good\">proved</span>cannot overflow, whatever the "
	            "weights are</span>"
	            "<span><span class=\"badge plain\">guarded</span>checked in every step</span>"
	            "<span><span class=\"badge plain\">promoted</span>kept in fp32, since no proof was "
	            "found</span>"
	            "<span><span class=\"badge plain\">exact</span>fp32 by choice</span></div>\n",
	            out);
}

static int has_part(const hg_doctor_tensor *tensor, int tensors, enum part part)
{
	int found = 0;
	for (int i = 0; i < tensors; i++)
		found |= part_of(&tensor[i]) == part;
	return found;
}

void page_tensor_section(FILE *out, const hg_doctor_tensor *tensor, int tensors, int64_t step,
                         double loss_scale, const char *origin)
{
	(void)fprintf(out,
	              "<section>\n<h2>Headroom of every tensor</h2>\n<p class=\"soft\">Step %lld, loss "
	              "scale %.8g. A bar is a "
	              "power of two. Headroom, in bits, is how many times the largest value can double "
	              "before it overflows fp16.</p>\n",
	              (long long)step, loss_scale);
	print_key(out);
	for (enum part part = READ; part <= BACKWARD; part++)
		if (part != READ || has_part(tensor, tensors, part))
			print_table(out, tensor, tensors, origin, part);
	(void)fputs("</section>\n", out);
}
