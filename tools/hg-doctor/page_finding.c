/* One finding: the remedies, the location and the values, the sum that it comes from, and how it
 * spread. */
#include <math.h>
#include <string.h>

#include "page.h"

/* ---- remedies ---- */

static const char *remedy_class(const hg_remedy *r)
{
	return !r->tried ? "plain" : r->worked ? "good" : "bad";
}

static const char *remedy_word(const hg_remedy *r)
{
	if (r->tried)
		return r->worked ? "it trains" : "does not help";
	return *r->option ? "not tried" : *r->call ? "in C" : "by hand";
}

static void print_outcome(FILE *out, const hg_remedy *r)
{
	(void)fputs(" <span class=\"soft small\">", out);
	if (r->worked) {
		(void)fputs("loss ", out);
		page_number(out, r->loss_first);
		(void)fputs(" &#8594; ", out);
		page_number(out, r->loss_last);
	} else
		page_text(out, r->failure);
	(void)fputs("</span>", out);
}

static void print_remedy(FILE *out, const hg_remedy *r)
{
	const char *what = *r->option ? r->option : r->call;
	(void)fprintf(out, "<div class=\"remedy\"><span class=\"badge %s\">%s</span><div>",
	              remedy_class(r), remedy_word(r));
	if (*what) {
		(void)fputs("<code class=\"option\">", out);
		page_text(out, what);
		(void)fputs("</code>", out);
	}
	if (r->tried || *r->failure)
		print_outcome(out, r);
	(void)fputs("</div><div class=\"soft\">", out);
	page_text(out, r->why);
	(void)fputs("</div></div>\n", out);
}

static void print_remedies(FILE *out, const hg_finding *f, const hg_finding *before)
{
	if (f->remedies)
		(void)fputs("<h3>What to change</h3>\n", out);
	if (finding_same_remedies(f, before))
		(void)fputs("<p class=\"soft\">The same as above.</p>\n", out);
	else
		for (int i = 0; i < f->remedies; i++)
			print_remedy(out, &f->remedy[i]);
}

/* ---- facts ---- */

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

static void print_op(FILE *out, const hg_finding *f)
{
	const int glossed = *f->op_words && strcmp(f->op, f->op_words) != 0;
	if (!*f->op)
		return;
	(void)fputs("<dt>op</dt><dd><b>", out);
	page_text(out, f->op);
	(void)fputs("</b>", out);
	if (glossed) {
		(void)fputs(", ", out);
		page_text(out, f->op_words);
	}
	if (*f->layer) {
		(void)fputs(", in ", out);
		page_text(out, f->layer);
	}
	if (f->node >= 0)
		(void)fputs(f->backward ? ", backward" : ", forward", out);
	(void)fputs(f->evaluation ? ", in the evaluation after the step</dd>\n" : "</dd>\n", out);
}

static void print_facts(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char text[512], element[NAME_SIZE];
	(void)fputs("<dl>\n", out);
	print_fact(out, "cause", hg_cause_text(f->cause));
	print_op(out, f);
	print_fact(out, "element", name_element(d->dataset, f, element));
	print_number(out, "stored", f->got, "");
	print_number(out, "true value", f->wide,
	             f->node < 0 ? "" : " <span class=\"soft\">from the same operands in fp64</span>");
	(void)snprintf(text, sizeof text, "%lld of %lld elements of %s", (long long)f->bad,
	               (long long)f->count, f->tensor);
	print_fact(out, "same fault", text);
	if (f->backward)
		print_number(out, "loss scale", f->scale, "");
	if (*f->grown) {
		(void)snprintf(text, sizeof text, "%s is %.3g times as large as when the run began",
		               f->grown, f->grown_by);
		print_fact(out, "has grown", text);
	}
	(void)snprintf(text, sizeof text, "%lld", (long long)f->step);
	print_fact(out, "step", text);
	(void)fputs("</dl>\n", out);
}

/* ---- how it spread ---- */

static int is_weight(const hg_chain_link *link)
{
	return link->node < 0 && link->backward;
}

static void print_link(FILE *out, const hg_chain_link *link, int origin)
{
	(void)fprintf(out, "<li><span%s>", origin ? " class=\"origin\"" : "");
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

static void print_links(FILE *out, const hg_finding *f, int from, int to)
{
	(void)fprintf(out, "<ol class=\"chain%s\">\n", from ? " on" : "");
	for (int i = from; i < to; i++)
		print_link(out, &f->chain[i], i == 0);
	(void)fputs("</ol>\n", out);
}

/* Only the beginning of a long chain is unfolded. */
enum { UNFOLDED = 6 };

static void print_weights(FILE *out, const hg_finding *f, int ops)
{
	(void)fputs("<p class=\"soft small reach\">It reaches the gradients of ", out);
	for (int i = ops; i < f->links; i++) {
		(void)fputs(i == ops ? "" : ", ", out);
		page_text(out, f->chain[i].name);
	}
	(void)fputs(".</p>\n", out);
}

/* The ops of the chain, in the order of the step, then the weights. */
static void print_chain(FILE *out, const hg_finding *f)
{
	int ops = 0;
	while (ops < f->links && !is_weight(&f->chain[ops]))
		ops++;
	const int unfolded = ops > UNFOLDED + 2 ? UNFOLDED : ops;
	(void)fputs("<h3>How it spread</h3>\n", out);
	print_links(out, f, 0, unfolded);
	if (unfolded < ops) {
		(void)fprintf(out, "<details><summary>and %d more</summary>\n", ops - unfolded);
		print_links(out, f, unfolded, ops);
		(void)fputs("</details>\n", out);
	}
	if (ops < f->links)
		print_weights(out, f, ops);
}

void page_finding(FILE *out, const struct diagnosis *d, const hg_finding *f)
{
	char headline[SENTENCE_SIZE], sentence[SENTENCE_SIZE];
	const int first = f == d->finding;
	(void)fputs("<section class=\"fault\">\n<h2>", out);
	page_text(out, first ? "What went wrong first" : name_headline(d->dataset, f, headline));
	(void)fputs("</h2>\n", out);
	if (!first) {
		(void)fputs("<p>", out);
		page_text(out, name_sentence(d->dataset, f, sentence));
		(void)fputs("</p>\n", out);
	}
	print_remedies(out, f, first ? NULL : f - 1);
	(void)fprintf(out, "<div class=\"%s\"><div>\n", f->tops ? "two" : "one");
	print_facts(out, d, f);
	(void)fputs("</div>\n", out);
	if (f->tops) {
		(void)fputs("<div>\n", out);
		page_terms(out, d, f);
		(void)fputs("</div>\n", out);
	}
	(void)fputs("</div>\n", out);
	page_flow(out, d, f);
	page_curve(out, f);
	if (f->links > 1)
		print_chain(out, f);
	(void)fputs("</section>\n", out);
}
