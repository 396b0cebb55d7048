/* Where the time of a step goes: every op of the training tape, with its forward and backward
 * pass. */
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* An op with all of its lines. */
struct op_time {
	const char *name;
	double forward, backward, bytes, written;
	hg_dtype dtype;
};

static int by_time(const void *a, const void *b)
{
	const struct op_time *x = a, *y = b;
	const double left = x->forward + x->backward, right = y->forward + y->backward;
	return (left < right) - (left > right);
}

/* NULL: memory ran out. */
static struct op_time *ops_of(const struct timing *t, int *count)
{
	struct op_time *op = calloc((size_t)t->lines + 1, sizeof *op);
	*count = 0;
	for (int64_t k = 0; op && k < t->lines; k++) {
		const struct timed_line *line = &t->line[k];
		int i = 0;
		while (i < *count && strcmp(op[i].name, line->name) != 0)
			i++;
		*count += i == *count;
		op[i].name = line->name;
		op[i].dtype = line->dtype;
		op[i].bytes += line->bytes;
		if (line->phase == HG_PHASE_FORWARD) {
			op[i].forward += line->us;
			op[i].written += line->written;
		} else
			op[i].backward += line->us;
	}
	if (op)
		qsort(op, (size_t)*count, sizeof *op, by_time);
	return op;
}

static void print_bar(FILE *out, const struct op_time *op, double most)
{
	(void)fprintf(out,
	              "<span class=\"share\"><i style=\"width:%.1f%%\"></i><i style=\"width:%.1f%%\">"
	              "</i></span>",
	              100 * op->forward / most, 100 * op->backward / most);
}

static void print_op(FILE *out, const struct timing *t, const struct op_time *op, double most)
{
	const double all = t->forward_us + t->backward_us, us = op->forward + op->backward;
	(void)fputs("<tr><td>", out);
	page_name(out, op->name);
	(void)fputs("</td><td>", out);
	page_duration(out, op->forward);
	(void)fputs("</td><td>", out);
	if (op->backward > 0)
		page_duration(out, op->backward);
	else
		(void)fputs("&#8211;", out);
	(void)fputs("</td><td>", out);
	page_share(out, us, all);
	(void)fputs("</td><td>", out);
	print_bar(out, op, most);
	(void)fputs("</td><td>", out);
	page_bytes(out, op->written);
	(void)fputs("</td><td>", out);
	page_bytes(out, op->bytes);
	(void)fputs("</td><td>", out);
	page_share(out, us > 0 ? op->bytes / (1e-6 * us) : 0, t->bandwidth);
	(void)fputs("</td></tr>\n", out);
}

static void print_total(FILE *out, const struct timing *t, const struct op_time *op, int count)
{
	double bytes = 0, written = 0;
	for (int i = 0; i < count; i++) {
		bytes += op[i].bytes;
		written += op[i].written;
	}
	(void)fputs("<tr class=\"total\"><td>all</td><td>", out);
	page_duration(out, t->forward_us);
	(void)fputs("</td><td>", out);
	page_duration(out, t->backward_us);
	(void)fputs("</td><td>100 %</td><td></td><td>", out);
	page_bytes(out, written);
	(void)fputs("</td><td>", out);
	page_bytes(out, bytes);
	(void)fputs("</td><td>", out);
	page_share(out, bytes / (1e-6 * (t->forward_us + t->backward_us)), t->bandwidth);
	(void)fputs("</td></tr>\n", out);
}

void page_times(FILE *out, const struct timing *t)
{
	int count = 0;
	struct op_time *op = t->known ? ops_of(t, &count) : NULL;
	if (count) {
		const double most = op[0].forward + op[0].backward;
		(void)fputs("<section>\n<h2>Where the time goes</h2>\n<p class=\"soft\">One training step, "
		            "op by op, call by call; the update of the weights is not in it. Moved: what "
		            "an op has to read and write at least, and how much of the memory's ",
		            out);
		page_bytes(out, t->bandwidth);
		(void)fputs(" a second that is in its time. More than 100 % comes from caches.</p>\n"
		            "<div class=\"legend\"><span><span class=\"chip\" "
		            "style=\"background:var(--c0)\"></span>forward</span><span><span "
		            "class=\"chip\" style=\"background:var(--c1)\"></span>backward</span></div>\n"
		            "<div class=\"scroll\"><table class=\"num times\"><tr><th>op</th>"
		            "<th>forward</th><th>backward</th><th>share</th><th></th><th>result</th>"
		            "<th>moved</th><th>of bandwidth</th></tr>\n",
		            out);
		for (int i = 0; i < count; i++)
			print_op(out, t, &op[i], most > 0 ? most : 1);
		print_total(out, t, op, count);
		(void)fputs("</table></div>\n</section>\n", out);
	}
	free(op);
}
