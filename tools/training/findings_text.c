/* A finding for people: a headline, a sentence, and one line a fact. */
#include <math.h>
#include <string.h>

#include "findings.h"
#include "names.h"

#define WIDTH 100 /* columns */
#define FACT 16   /* where a fact begins */

/* Words of a sentence, broken at WIDTH; what follows a break begins at `indent`. */
static void print_wrapped(FILE *out, const char *text, int column, int indent)
{
	while (*text) {
		const int length = (int)strcspn(text, " ");
		if (column + 1 + length > WIDTH && column > indent) {
			(void)fprintf(out, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(out, "%s%.*s", column > indent ? " " : "", length, text);
		text += length + (text[length] == ' ');
	}
	(void)fputc('\n', out);
}

static void print_fact(FILE *out, const char *name, const char *text)
{
	(void)fprintf(out, "  %-*s", FACT - 2, name);
	print_wrapped(out, text, FACT, FACT);
}

static void print_place(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	char text[512], element[NAME_SIZE];
	if (*f->op) {
		int length = snprintf(text, sizeof text, "%s%s%s", f->op, *f->layer ? " in " : "", f->layer);
		if (f->node >= 0)
			(void)snprintf(text + length, sizeof text - (size_t)length, ", %s, node %d of the tape", f->backward ? "backward" : "forward", (int)f->node);
		print_fact(out, "op", text);
	}
	(void)snprintf(text, sizeof text, "%s; %lld of %lld elements of %s have this fault", name_element(d, f, element), (long long)f->bad, (long long)f->count,
	               f->tensor);
	print_fact(out, "element", text);
}

static void print_numbers(FILE *out, const hg_finding *f)
{
	char text[NAME_SIZE + 64], number[NAME_SIZE];
	print_fact(out, "stored", name_number(f->got, number));
	(void)snprintf(text, sizeof text, "%s%s", name_number(f->wide, number), f->node < 0 ? "" : ", of the same operands in f64");
	print_fact(out, "true value", text);
	if (isfinite(f->limit) && f->limit > 0)
		print_fact(out, "limit", name_number(f->limit, number));
	print_fact(out, "loss scale", name_number(f->scale, number));
}

/* "5024 addends; in f16 it ended after 3806 of them, at 65504, before its factor 0.000199045". */
static void print_sum(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	char text[512], number[NAME_SIZE], who[NAME_SIZE];
	if (!f->terms)
		return;
	int length = snprintf(text, sizeof text, "%lld addends", (long long)f->terms);
	if (f->ignored)
		length += snprintf(text + length, sizeof text - (size_t)length, ", of which %lld changed nothing in f16", (long long)f->ignored);
	if (f->partial_at > 0)
		length += snprintf(text + length, sizeof text - (size_t)length, "; %s %lld of them, at %s", f->ignored ? "it stood, after" : "in f16 it ended after",
		                   (long long)f->partial_at, name_number(f->partial, number));
	if (f->partial_at > 0 && f->partial_factor != 1.0)
		(void)snprintf(text + length, sizeof text - (size_t)length, ", before its factor %s", name_number(f->partial_factor, number));
	print_fact(out, "sum", text);
	for (int i = 0; i < f->tops; i++) {
		const hg_term *t = &f->top[i];
		(void)fprintf(out, "  %-*s%12.6g = %.6g x %.6g   %s\n", FACT - 2, i ? "" : "largest", t->value, t->factor, t->operand, name_term(d, f, t, who));
	}
	if (f->terms > f->tops && f->tops)
		(void)fprintf(out, "%*sand %lld more\n", FACT, "", (long long)(f->terms - f->tops));
}

/* "conv0/spmm (1 of 32000) ->", or without the numbers where nothing is infinite. */
static void print_link(FILE *out, const hg_chain_link *link, const char *after, int *column)
{
	char name[NAME_SIZE], text[2 * NAME_SIZE];
	int length = snprintf(text, sizeof text, "%s", name_link(link, name));
	if (link->bad)
		length += snprintf(text + length, sizeof text - (size_t)length, " (%lld of %lld)", (long long)link->bad, (long long)link->count);
	length += snprintf(text + length, sizeof text - (size_t)length, "%s", after);
	if (*column + 1 + length > WIDTH) {
		(void)fprintf(out, "\n%*s", FACT - 1, "");
		*column = FACT - 1;
	}
	*column += fprintf(out, " %s", text);
}

static int is_weight(const hg_chain_link *link)
{
	return link->node < 0 && link->backward;
}

/* Ops in the order of the step, and at last the weights. */
static void print_chain(FILE *out, const hg_finding *f)
{
	int column = FACT - 1;
	if (f->links)
		(void)fprintf(out, "  %-*s", FACT - 3, "chain");
	for (int i = 0; i < f->links; i++) {
		const int more = i + 1 < f->links;
		print_link(out, &f->chain[i], !more ? "" : !is_weight(&f->chain[i + 1]) ? " ->" : is_weight(&f->chain[i]) ? "," : " -> the weights", &column);
	}
	if (f->links)
		(void)fputc('\n', out);
}

/* "tried, and it trains: loss 2.1 to 0.3". */
static const char *outcome(const hg_remedy *r, char *buffer, size_t size)
{
	char first[NAME_SIZE], last[NAME_SIZE];
	(void)snprintf(buffer, size, r->tried ? "tried, %s: loss %s to %s" : "not tried", r->worked ? "and it trains" : "and it does not help",
	               name_number(r->loss_first, first), name_number(r->loss_last, last));
	return buffer;
}

static void print_remedies(FILE *out, const hg_finding *f)
{
	for (int i = 0; i < f->remedies; i++) {
		const hg_remedy *r = &f->remedy[i];
		char text[3 * NAME_SIZE];
		(void)fprintf(out, "  %-*s%s%s%s\n%*s", FACT - 2, i ? "" : "remedies", r->option, *r->option ? "   " : "",
		              *r->option ? outcome(r, text, sizeof text) : "no option helps", FACT + 4, "");
		print_wrapped(out, r->why, FACT + 4, FACT + 4);
	}
}

void finding_print(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	char text[SENTENCE_SIZE];
	(void)fprintf(out, "%s\n\n  ", name_headline(f, text));
	print_wrapped(out, name_sentence(d, f, text), 2, 2);
	(void)fputc('\n', out);
	print_fact(out, "cause", hg_cause_text(f->cause));
	print_place(out, d, f);
	print_numbers(out, f);
	print_sum(out, d, f);
	print_chain(out, f);
	print_remedies(out, f);
}
