/* A picture for findings without a sum: the operands, the op, and the result. The boxes stand side
 * by side, or below each other where there is no room. */
#include <math.h>
#include <string.h>

#include "page.h"

static void print_box(FILE *out, const char *class, const char *above, const char *text,
                      const char *below)
{
	(void)fprintf(out, "<div class=\"%s\"><span>", class);
	page_text(out, above);
	(void)fputs("</span><b>", out);
	page_text(out, text);
	(void)fputs("</b><span>", out);
	page_text(out, below);
	(void)fputs("</span></div>\n", out);
}

static void print_arrow(FILE *out)
{
	(void)fputs("<div class=\"arrow\" aria-hidden=\"true\"></div>\n", out);
}

static void print_operands(FILE *out, const hg_finding *f)
{
	char number[NAME_SIZE];
	(void)fputs("<div class=\"inputs\">\n", out);
	for (int i = 0; i < f->operands; i++)
		print_box(out, "card", f->operand[i].role, name_number(f->operand[i].value, number),
		          f->operand[i].tensor);
	(void)fputs("</div>\n", out);
	print_arrow(out);
}

/* A number that is already there before the op computes anything, and that fp16 cannot hold. */
static void print_stored(FILE *out, const hg_finding *f)
{
	char number[NAME_SIZE];
	const char *from = f->cause == HG_CAUSE_OPTIMISER ? "after the update, in fp32"
	                   : f->row_is == HG_ROW_WEIGHT   ? "the weight, in fp32"
	                                                  : "as given";
	(void)fputs("<div class=\"inputs\">\n", out);
	print_box(out, "card", from, name_number(f->wide, number), f->tensor);
	(void)fputs("</div>\n", out);
	print_arrow(out);
	print_box(out, "op", f->cause == HG_CAUSE_OPTIMISER ? f->op : "", "stored as fp16", "");
	print_arrow(out);
}

void page_flow(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char number[NAME_SIZE], element[NAME_SIZE], wide[NAME_SIZE + 16] = "", name[NAME_SIZE];
	const int stored = f->node < 0 && isfinite(f->wide);
	if (f->terms > 1 || (!stored && f->node < 0))
		return;
	(void)fputs("<h3>What it was made of</h3>\n<div class=\"flow\">\n", out);
	if (stored)
		print_stored(out, f);
	else {
		if (f->operands)
			print_operands(out, f);
		print_box(out, "op", f->layer, f->op, strcmp(f->op, f->op_words) ? f->op_words : "");
		print_arrow(out);
		(void)snprintf(wide, sizeof wide, "true value %s", name_number(f->wide, name));
	}
	print_box(out, "result", name_element(d->dataset, f, element), name_number(f->got, number),
	          wide);
	(void)fputs("</div>\n", out);
}
