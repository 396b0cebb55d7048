#include "names.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The graph of a batch that node i belongs to. */
static int64_t graph_of(const hg_dataset *d, int64_t i)
{
	int64_t low = 0, high = d->graphs; /* graph_ptr[low] <= i < graph_ptr[high] */
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		if (d->graph_ptr[middle] <= i)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void name_node(const hg_dataset *d, int64_t i, char *buffer)
{
	if (i < 0 || i >= d->nodes) {
		(void)snprintf(buffer, NAME_SIZE, "row %lld", (long long)i);
		return;
	}
	const int64_t id = hg_dataset_node(d, i);
	const int64_t graph = d->graph_ptr ? graph_of(d, i) : 0;
	const int64_t known = d->graph_ptr && !d->orig_id ? id - d->graph_ptr[graph] : id;
	int length = snprintf(buffer, NAME_SIZE, "node %lld", (long long)known);
	if (d->graph_ptr)
		length += snprintf(buffer + length, NAME_SIZE - (size_t)length, " of graph %lld",
		                   (long long)graph);
	if (known != i)
		(void)snprintf(buffer + length, NAME_SIZE - (size_t)length, " (row %lld)", (long long)i);
}

const char *name_row(const hg_dataset *d, hg_row_kind kind, int64_t row, char *buffer)
{
	static const char *const what[] = {
	    [HG_ROW_EDGE] = "edge", [HG_ROW_GRAPH] = "graph", [HG_ROW_WEIGHT] = "row"};
	if (kind == HG_ROW_NODE)
		name_node(d, row, buffer);
	else if (kind == HG_ROW_SCALAR)
		(void)snprintf(buffer, NAME_SIZE, "the scalar");
	else
		(void)snprintf(buffer, NAME_SIZE, "%s %lld", what[kind], (long long)row);
	return buffer;
}

static void name_edge(const hg_dataset *d, const hg_finding *f, char *buffer)
{
	char from[NAME_SIZE], to[NAME_SIZE];
	name_node(d, f->edge_col, from);
	name_node(d, f->edge_row, to);
	(void)snprintf(buffer, NAME_SIZE, "edge %.40s -> %.40s", from, to);
}

/* The row of the faulty element. */
static void name_fault_row(const hg_dataset *d, const hg_finding *f, char *buffer)
{
	if (f->row_is == HG_ROW_EDGE && f->edge_row >= 0)
		name_edge(d, f, buffer);
	else
		(void)name_row(d, f->row_is, f->row, buffer);
}

const char *name_element(const hg_dataset *d, const hg_finding *f, char *buffer)
{
	static const char *const column[] = {[HG_ROW_NODE] = "feature",
	                                     [HG_ROW_EDGE] = "head",
	                                     [HG_ROW_GRAPH] = "feature",
	                                     [HG_ROW_WEIGHT] = "column"};
	name_fault_row(d, f, buffer);
	const size_t length = strlen(buffer);
	if (f->row_is == HG_ROW_SCALAR)
		return buffer;
	if (f->head >= 0)
		(void)snprintf(buffer + length, NAME_SIZE - length, ", %s%shead %d", f->head_of,
		               *f->head_of ? " " : "", (int)f->head);
	const size_t with_head = strlen(buffer);
	if (f->head < 0 || (f->row_is == HG_ROW_NODE && !*f->head_of))
		(void)snprintf(buffer + with_head, NAME_SIZE - with_head, ", %s %lld", column[f->row_is],
		               (long long)f->col);
	return buffer;
}

const char *name_term(const hg_dataset *d, const hg_finding *f, const hg_term *term, char *buffer)
{
	static const char *const what[] = {[HG_TERM_OWN] = "the node itself",
	                                   [HG_TERM_BIAS] = "the bias",
	                                   [HG_TERM_BEFORE] = "the gradient before"};
	if (term->is != HG_TERM_ADDEND)
		(void)snprintf(buffer, NAME_SIZE, "%s", what[term->is]);
	else if (f->along_columns)
		(void)snprintf(buffer, NAME_SIZE, "column %lld", (long long)term->col);
	else if (f->over_edges)
		(void)snprintf(buffer, NAME_SIZE, "edge %lld", (long long)term->row);
	else
		(void)name_row(d, HG_ROW_NODE, term->row, buffer);
	return buffer;
}

const char *name_operand(const hg_finding *f, const hg_operand *operand, char *buffer)
{
	const int elsewhere = *operand->tensor && (operand->row != f->row || operand->col != f->col);
	int length = snprintf(buffer, NAME_SIZE, "%s", operand->role);
	if (*operand->tensor)
		length += snprintf(buffer + length, NAME_SIZE - (size_t)length, ": %.60s", operand->tensor);
	if (elsewhere && length < NAME_SIZE)
		(void)snprintf(buffer + length, NAME_SIZE - (size_t)length, " at row %lld, column %lld",
		               (long long)operand->row, (long long)operand->col);
	return buffer;
}

static void write_row_name(void *user, const hg_finding *f, char *name, size_t room)
{
	char all[NAME_SIZE];
	name_fault_row(user, f, all);
	(void)snprintf(name, room, "%s", all);
}

const char *name_headline(const hg_dataset *d, const hg_finding *f, char *buffer)
{
	(void)hg_finding_headline(f, write_row_name, (void *)(uintptr_t)d, buffer, SENTENCE_SIZE);
	return buffer;
}

const char *name_cause(hg_cause cause, char *buffer)
{
	const char *text = hg_cause_text(cause);
	(void)snprintf(buffer, NAME_SIZE, "%.*s", (int)strcspn(text, ":"), text);
	return buffer;
}

const char *name_sentence(const hg_dataset *d, const hg_finding *f, char *buffer)
{
	const int length =
	    hg_finding_sentence(f, write_row_name, (void *)(uintptr_t)d, buffer, SENTENCE_SIZE - 1);
	(void)snprintf(buffer + (length < SENTENCE_SIZE - 2 ? length : SENTENCE_SIZE - 2), 2, ".");
	*buffer = (char)toupper((unsigned char)*buffer);
	return buffer;
}

/* The sign of 0 is dropped, because it has no meaning for users. */
const char *name_number(double x, char *buffer)
{
	if (isnan(x))
		(void)snprintf(buffer, NAME_SIZE, "nan");
	else
		(void)snprintf(buffer, NAME_SIZE, "%.8g", x == 0 ? 0.0 : x);
	return buffer;
}

const char *name_rounded(double x, char *buffer)
{
	if (isfinite(x))
		(void)snprintf(buffer, NAME_SIZE, "%.4g", x == 0 ? 0.0 : x);
	else
		(void)name_number(x, buffer);
	return buffer;
}
