/* Print a finding for people: what happened and what to do, the remedies, then one fact per
 * line. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "findings.h"
#include "names.h"

#define WIDTH 100 /* columns */
#define FACT 16   /* the column at which the text of a fact begins */

/* Print the words of a sentence, broken at WIDTH; continuation lines begin at `indent`. */
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

/* If the line is too long, the remedy goes to a line of its own in one piece. */
static void print_headline(FILE *out, const char *text, int indent)
{
	const char *doing = strstr(text, ": --") ? strstr(text, ": --") : text;
	while (doing > text && *doing != '.')
		doing--;
	if (doing == text || indent + (int)strlen(text) <= WIDTH) {
		print_wrapped(out, text, indent, indent);
		return;
	}
	char what[SENTENCE_SIZE];
	(void)snprintf(what, sizeof what, "%.*s", (int)(doing - text) + 1, text);
	print_wrapped(out, what, indent, indent);
	(void)fprintf(out, "%*s", indent + 2, "");
	print_wrapped(out, doing + 2, indent + 2, indent + 2);
}

static void print_fact(FILE *out, const char *name, const char *text)
{
	(void)fprintf(out, "  %-*s", FACT - 2, name);
	print_wrapped(out, text, FACT, FACT);
}

/* A fact whose text is composed piece by piece. */
struct fact {
	char text[768];
	size_t length;
};

static void add_text(struct fact *fact, const char *format, ...) HG_PRINTF(2, 3);
static void add_text(struct fact *fact, const char *format, ...)
{
	const size_t room = sizeof fact->text - fact->length;
	va_list args;
	va_start(args, format);
	const int more = vsnprintf(fact->text + fact->length, room, format, args);
	va_end(args);
	fact->length += more < 0 ? 0 : (size_t)more < room ? (size_t)more : room - 1;
}

/* ---- what to do ---- */

/* "trains: loss 2.1 to 0.3". */
static void add_outcome(struct fact *fact, const hg_remedy *r)
{
	char first[NAME_SIZE], last[NAME_SIZE];
	if (!r->tried)
		add_text(fact, *r->failure ? "not tried: %s" : "not tried", r->failure);
	else if (r->worked)
		add_text(fact, "trains: loss %s to %s", name_rounded(r->loss_first, first),
		         name_rounded(r->loss_last, last));
	else
		add_text(fact, "does not help: %s", *r->failure ? r->failure : "the fault is still there");
}

static int longest_option(const hg_finding *f)
{
	int most = 0;
	for (int i = 0; i < f->remedies; i++)
		most = (int)strlen(f->remedy[i].option) > most ? (int)strlen(f->remedy[i].option) : most;
	return most;
}

/* The outcome stands beside the option, or below it if the line would be too long. */
static void print_remedy(FILE *out, const hg_remedy *r, int options)
{
	struct fact outcome = {0};
	if (*r->option) {
		add_outcome(&outcome, r);
		const int fits = FACT + options + 3 + (int)outcome.length <= WIDTH;
		(void)fprintf(out, "%-*s", fits ? options + 3 : 0, r->option);
		if (!fits)
			(void)fprintf(out, "\n%*s", FACT + 4, "");
		print_wrapped(out, outcome.text, FACT + 4, FACT + 4);
	} else
		(void)fprintf(out, "%s\n", *r->call ? r->call : "by hand");
	(void)fprintf(out, "%*s", FACT + 4, "");
	print_wrapped(out, r->why, FACT + 4, FACT + 4);
}

static void print_remedies(FILE *out, const hg_finding *f)
{
	for (int i = 0; i < f->remedies; i++) {
		(void)fprintf(out, "  %-*s", FACT - 2, i ? "" : "what to do");
		print_remedy(out, &f->remedy[i], longest_option(f));
	}
}

int finding_same_remedies(const hg_finding *f, const hg_finding *before)
{
	int same = before && f->remedies && f->remedies == before->remedies;
	for (int i = 0; same && i < f->remedies; i++) {
		const hg_remedy *a = &f->remedy[i], *b = &before->remedy[i];
		same = strcmp(a->option, b->option) == 0 && strcmp(a->call, b->call) == 0 &&
		       a->worked == b->worked && strcmp(a->why, b->why) == 0;
	}
	return same;
}

/* ---- where and what ---- */

static void print_place(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	char element[NAME_SIZE];
	struct fact op = {0}, where = {0};
	if (*f->op) {
		add_text(&op, "%s", f->op);
		if (*f->op_words && strcmp(f->op, f->op_words) != 0)
			add_text(&op, ": %s", f->op_words);
		if (*f->layer)
			add_text(&op, ", in %s", f->layer);
		if (f->node >= 0)
			add_text(&op, ", %s, op %d of the step", f->backward ? "backward" : "forward",
			         (int)f->node);
		if (f->evaluation)
			add_text(&op, ", in the evaluation after the step");
		print_fact(out, "op", op.text);
	}
	add_text(&where, "%s; %lld of %lld elements of %s have this fault", name_element(d, f, element),
	         (long long)f->bad, (long long)f->count, f->tensor);
	if (f->columns)
		add_text(&where, "; in %lld columns most was rounded to 0", (long long)f->columns);
	print_fact(out, "element", where.text);
}

static const char *type_name(double limit)
{
	return limit > 0x1p127 ? "fp32" : "fp16";
}

/* The limit that the number had to stay below or above. */
static void print_limit(FILE *out, const hg_finding *f)
{
	struct fact fact = {0};
	if (!isfinite(f->limit) || !(f->limit > 0) || f->cause == HG_CAUSE_ZERO)
		return;
	if (f->cause == HG_CAUSE_SWAMPING)
		add_text(&fact, "%.8g: terms below it do not change the fp16 sum", f->limit);
	else if (f->cause == HG_CAUSE_UNDERFLOW)
		add_text(&fact, "%.8g: the smallest number in fp16", f->limit);
	else if (f->limit < 65504)
		add_text(&fact, "%.8g classes", f->limit);
	else
		add_text(&fact, "%.8g: the largest number in %s",
		         f->limit > 0x1p127 ? 0x1.fffffep127 : f->limit * 65504 / 65520,
		         type_name(f->limit));
	print_fact(out, "limit", fact.text);
}

static void print_numbers(FILE *out, const hg_finding *f)
{
	char number[NAME_SIZE];
	struct fact wide = {0};
	print_fact(out, "stored", name_number(f->got, number));
	add_text(&wide, "%s%s", name_number(f->wide, number),
	         f->node < 0 ? "" : ", from the same operands in fp64");
	print_fact(out, "true value", wide.text);
	print_limit(out, f);
	if (f->backward)
		print_fact(out, "loss scale", name_number(f->scale, number));
	if (*f->grown) {
		struct fact grown = {0};
		add_text(&grown, "%s is %.3g times as large as when the run began", f->grown, f->grown_by);
		print_fact(out, "has grown", grown.text);
	}
}

/* ---- operands ---- */

static void print_term(FILE *out, const char *name, const hg_dataset *d, const hg_finding *f,
                       const hg_term *t)
{
	char name_text[NAME_SIZE], value[NAME_SIZE], factor[NAME_SIZE], operand[NAME_SIZE];
	(void)snprintf(value, sizeof value, "%.6g", t->value == 0 ? 0.0 : t->value);
	(void)snprintf(factor, sizeof factor, "%.6g", t->factor);
	(void)snprintf(operand, sizeof operand, "%.6g", t->operand == 0 ? 0.0 : t->operand);
	(void)fprintf(out, "  %-*s%12s = %s x %s   %s", FACT - 2, name, value, factor, operand,
	              name_term(d, f, t, name_text));
}

/* What attention makes of the edge of term i. */
static void print_score(FILE *out, const hg_finding *f, int i)
{
	if (f->attended && f->edge[i].row >= 0)
		(void)fprintf(out, "   score %.6g, weight %.6g", f->edge[i].score, f->edge[i].weight);
	(void)fputc('\n', out);
}

/* "5024 terms; in fp16 the sum was 65504 before term 3806 was added (not yet multiplied by
 * 0.000199045)". */
static void print_sum(FILE *out, const hg_dataset *d, const hg_finding *f)
{
	struct fact sum = {0};
	if (!f->terms)
		return;
	add_text(&sum, "%lld terms", (long long)f->terms);
	if (f->ignored)
		add_text(&sum, ", of which %lld were ignored in fp16; after term %lld the sum was %.8g",
		         (long long)f->ignored, (long long)f->partial_at, f->partial);
	else if (f->partial_at > 0)
		add_text(&sum, "; in fp16 the sum was %.8g before term %lld was added", f->partial,
		         (long long)f->partial_at);
	if (f->partial_at > 0 && f->partial_factor != 1.0)
		add_text(&sum, " (not yet multiplied by %.6g)", f->partial_factor);
	print_fact(out, "sum", sum.text);
	for (int i = 0; i < f->tops; i++) {
		print_term(out, i ? "" : "largest", d, f, &f->top[i]);
		print_score(out, f, i);
	}
	if (f->terms > f->tops && f->tops)
		(void)fprintf(out, "%*sand %lld more\n", FACT, "", (long long)(f->terms - f->tops));
}

static void print_operands(FILE *out, const hg_finding *f)
{
	for (int i = 0; i < f->operands; i++) {
		char name[NAME_SIZE], number[NAME_SIZE];
		struct fact fact = {0};
		add_text(&fact, "%s   %s", name_number(f->operand[i].value, number),
		         name_operand(f, &f->operand[i], name));
		print_fact(out, i ? "" : "made of", fact.text);
	}
}

/* ---- how it spread ---- */

/* Of a long chain the beginning and the end are shown; of many weights the first ones. */
enum { HEAD = 3, SHOWN = 5, WEIGHTS = 4 };

static int is_weight(const hg_chain_link *link)
{
	return link->node < 0 && link->backward;
}

/* "conv0/spmm (1 of 32000)", or without the numbers where nothing is infinite. It is never
 * broken. */
static void print_link(FILE *out, const char *before, const hg_chain_link *link, const char *after,
                       int *column)
{
	struct fact fact = {0};
	add_text(&fact, "%s%s", before, link->name);
	if (link->bad)
		add_text(&fact, " (%lld of %lld)", (long long)link->bad, (long long)link->count);
	add_text(&fact, "%s", after);
	if (*column + 1 + (int)fact.length > WIDTH) {
		(void)fprintf(out, "\n%*s", FACT - 1, "");
		*column = FACT - 1;
	}
	*column += fprintf(out, " %s", fact.text);
}

static void print_note(FILE *out, const char *text, int *column)
{
	if (*column + 1 + (int)strlen(text) > WIDTH) {
		(void)fprintf(out, "\n%*s", FACT - 1, "");
		*column = FACT - 1;
	}
	*column += fprintf(out, " %s", text);
}

/* The ops of the chain, in the order of the step. */
static void print_ops(FILE *out, const hg_finding *f, int ops, int *column)
{
	char note[64];
	const int folded = ops > SHOWN ? ops - HEAD - 1 : 0;
	for (int i = 0; i < ops; i++) {
		if (folded && i == HEAD) {
			(void)snprintf(note, sizeof note, "-> %d more", folded);
			print_note(out, note, column);
			i += folded - 1;
		} else
			print_link(out, i ? "-> " : "", &f->chain[i], "", column);
	}
}

/* The chain ends with the weights. */
static void print_chain(FILE *out, const hg_finding *f)
{
	int column = FACT - 1, ops = 0;
	char note[64];
	while (ops < f->links && !is_weight(&f->chain[ops]))
		ops++;
	const int weights = f->links - ops, shown = weights > WEIGHTS + 1 ? WEIGHTS : weights;
	if (f->links < 2)
		return;
	(void)fprintf(out, "  %-*s", FACT - 3, "spread");
	print_ops(out, f, ops, &column);
	if (weights)
		print_note(out, "-> the weights", &column);
	for (int i = 0; i < shown; i++)
		print_link(out, i && i + 1 == weights ? "and " : "", &f->chain[ops + i],
		           i + 2 < weights && i + 1 < shown ? "," : "", &column);
	if (weights > shown) {
		(void)snprintf(note, sizeof note, "and %d more", weights - shown);
		print_note(out, note, &column);
	}
	(void)fputc('\n', out);
}

void finding_print(FILE *out, const hg_dataset *d, const hg_finding *f, const hg_finding *before)
{
	char text[SENTENCE_SIZE];
	if (before)
		(void)fputs("Then: ", out);
	print_headline(out, name_headline(d, f, text), before ? 6 : 0);
	(void)fputs("\n", out);
	if (finding_same_remedies(f, before))
		print_fact(out, "what to do", "the same as above");
	else
		print_remedies(out, f);
	(void)fputs("\n  ", out);
	print_wrapped(out, name_sentence(d, f, text), 2, 2);
	(void)fputc('\n', out);
	print_fact(out, "cause", hg_cause_text(f->cause));
	print_place(out, d, f);
	print_numbers(out, f);
	print_sum(out, d, f);
	print_operands(out, f);
	print_chain(out, f);
}
