/* One finding: where, what, the sum it comes from, what helps, and how it spread. */
#include <math.h>
#include <string.h>

#include "page.h"

static void print_fact(FILE *out, const char *name, const char *text)
{
	(void)fprintf(out, "<dt>%s</dt><dd>", name);
	page_text(out, text);
	(void)fputs("</dd>\n", out);
}

static void print_number(FILE *out, const char *name, double x, const char *rest)
{
	char text[NAME_SIZE];
	(void)fprintf(out, "<dt>%s</dt><dd><b>", name);
	page_text(out, name_number(x, text));
	(void)fprintf(out, "</b>%s</dd>\n", rest);
}

static void print_facts(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char text[512], element[NAME_SIZE];
	(void)fputs("<dl>\n", out);
	print_fact(out, "cause", hg_cause_text(f->cause));
	if (*f->op) {
		(void)snprintf(text, sizeof text, "%s%s%s%s", f->op, *f->layer ? " in " : "", f->layer, f->node < 0 ? "" : f->backward ? ", backward" : ", forward");
		print_fact(out, "op", text);
	}
	print_fact(out, "element", name_element(d->dataset, f, element));
	print_number(out, "stored", f->got, "");
	print_number(out, "true value", f->wide, f->node < 0 ? "" : " <span class=\"soft\">of the same operands in f64</span>");
	if (isfinite(f->limit) && f->limit > 0)
		print_number(out, "limit", f->limit, "");
	(void)snprintf(text, sizeof text, "%lld of %lld elements of %s", (long long)f->bad, (long long)f->count, f->tensor);
	print_fact(out, "same fault", text);
	(void)snprintf(text, sizeof text, "%lld, loss scale %.8g", (long long)f->step, f->scale);
	print_fact(out, "step", text);
	(void)fputs("</dl>\n", out);
}

static void print_remedy(FILE *out, const hg_remedy *r)
{
	const char *class = !r->tried   ? "plain"
	                    : r->worked ? "good"
	                                : "bad",
	           *word = !*r->option ? "by hand"
	                   : !r->tried ? "not tried"
	                   : r->worked ? "it trains"
	                               : "no help";
	(void)fprintf(out, "<div class=\"remedy\"><span class=\"badge %s\">%s</span><div>", class, word);
	if (*r->option) {
		(void)fputs("<code class=\"option\">", out);
		page_text(out, r->option);
		(void)fputs("</code>", out);
	}
	if (r->tried) {
		(void)fputs(" <span class=\"soft small\">loss ", out);
		page_number(out, r->loss_first);
		(void)fputs(" &#8594; ", out);
		page_number(out, r->loss_last);
		(void)fputs("</span>", out);
	}
	(void)fputs("</div><div class=\"soft\">", out);
	page_text(out, r->why);
	(void)fputs("</div></div>\n", out);
}

static void print_link(FILE *out, const hg_finding *f, const hg_chain_link *link)
{
	(void)fprintf(out, "<li><span%s>", link == f->chain ? " class=\"origin\"" : "");
	page_text(out, link->name);
	if (link->bad) {
		(void)fputs("<i>", out);
		page_count(out, link->bad);
		(void)fputs(" of ", out);
		page_count(out, link->count);
		(void)fputs("</i>", out);
	}
	(void)fputs("</span></li>\n", out);
}

/* Ops in the order of the step, and at last the weights. */
static void print_chain(FILE *out, const hg_finding *f)
{
	int weights = 0;
	(void)fputs("<h3>How it spread</h3>\n<ol class=\"chain\">\n", out);
	for (int i = 0; i < f->links; i++) {
		if (f->chain[i].node >= 0 || !f->chain[i].backward)
			print_link(out, f, &f->chain[i]);
		else
			weights++;
	}
	(void)fputs("</ol>\n", out);
	if (!weights)
		return;
	(void)fputs("<p class=\"soft small reach\">It reaches the gradients of ", out);
	for (int i = f->links - weights; i < f->links; i++) {
		(void)fputs(i > f->links - weights ? ", " : "", out);
		page_text(out, f->chain[i].op);
	}
	(void)fputs(".</p>\n", out);
}

void page_finding(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	(void)fputs("<section class=\"fault\">\n<h2>", out);
	page_text(out, f == d->finding ? "What went wrong first" : name_headline(d->dataset, f, headline));
	(void)fputs("</h2>\n", out);
	if (f != d->finding) {
		(void)fputs("<p>", out);
		page_text(out, name_sentence(d->dataset, f, sentence));
		(void)fputs("</p>\n", out);
	}
	(void)fputs("<div class=\"two\"><div>\n", out);
	print_facts(out, d, f);
	page_running(out, f);
	(void)fputs("</div>\n<div>\n", out);
	page_neighbourhood(out, d, f);
	(void)fputs("</div></div>\n", out);
	if (f->remedies)
		(void)fputs("<h3>What to change</h3>\n", out);
	for (int i = 0; i < f->remedies; i++)
		print_remedy(out, &f->remedy[i]);
	if (f->links)
		print_chain(out, f);
	(void)fputs("</section>\n", out);
}
