#include "pickles.h"

#include <stdlib.h>
#include <string.h>

const struct small_planetoid planetoid_toy = {
    .x = {2, 3, 3, {0, 1, 3}, {0, 1, 2}, {1, 1, 0.5f}},
    .tx = {2, 3, 2, {0, 1, 2}, {2, 0}, {6, 4}},
    .allx = {4, 3, 5, {0, 1, 3, 4, 5}, {0, 1, 2, 1, 0}, {1, 1, 0.5f, 2, 3}},
    .y = {2, 2, {1, 0, 0, 1}},
    .ty = {2, 2, {0, 1, 1, 0}},
    .ally = {4, 2, {1, 0, 0, 1, 1, 0, 0, 1}},
    .graph = "0: 1 2 1\n1: 0\n2: 0 2\n3: 4\n4: 3 6\n5:\n6: 4\n",
    .test = "6\n4\n",
};

const char *const planetoid_members[PLANETOID_MEMBERS] = {"x",  "tx",   "allx",  "y",
                                                          "ty", "ally", "graph", "test.index"};

void pickle_add(struct pickle *out, const void *bytes, size_t count)
{
	if (count > sizeof out->bytes - out->count)
		abort();
	if (count > 0)
		memcpy(out->bytes + out->count, bytes, count);
	out->count += count;
}

void pickle_text(struct pickle *out, const char *text)
{
	pickle_add(out, text, strlen(text));
}

static void add_i32(struct pickle *out, char opcode, int32_t value)
{
	const uint32_t bits = (uint32_t)value;
	const unsigned char bytes[5] = {(unsigned char)opcode, bits & 255, bits >> 8 & 255,
	                                bits >> 16 & 255, (unsigned char)(bits >> 24)};
	pickle_add(out, bytes, sizeof bytes);
}

static void add_integer(struct pickle *out, int32_t value)
{
	add_i32(out, 'J', value);
}

static void add_string(struct pickle *out, const char *text)
{
	const unsigned char head[2] = {'U', (unsigned char)strlen(text)};
	pickle_add(out, head, sizeof head);
	pickle_text(out, text);
}

/* numbers of 4 bytes; cols 0: a vector */
static void add_array(struct pickle *out, const char *dtype, int rows, int cols,
                      const void *numbers)
{
	const size_t count = 4 * (size_t)rows * (size_t)(cols ? cols : 1);
	pickle_text(out, "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n");
	pickle_add(out, "K\0\x85U\1b\x87R(K\1", 11);
	add_integer(out, rows);
	if (cols)
		add_integer(out, cols);
	pickle_text(out, cols ? "\x86" : "\x85");
	pickle_text(out, "cnumpy\ndtype\n");
	add_string(out, dtype);
	pickle_add(out, "K\0K\1\x87R(K\3U\1<NNN", 15);
	add_integer(out, -1);
	add_integer(out, -1);
	pickle_add(out, "K\0tb\x89", 5);
	add_i32(out, 'T', (int32_t)count);
	pickle_add(out, numbers, count);
	pickle_text(out, "tb");
}

static void add_csr(struct pickle *out, const struct small_csr *m, const int32_t *indptr)
{
	pickle_text(out, "\x80\2cscipy.sparse.csr\ncsr_matrix\nq\1)\x81}(");
	add_string(out, "format");
	add_string(out, "csr");
	add_string(out, "_shape");
	add_integer(out, m->rows);
	add_integer(out, m->cols);
	pickle_text(out, "\x86");
	add_string(out, "indptr");
	add_array(out, "i4", m->rows + 1, 0, indptr);
	add_string(out, "indices");
	add_array(out, "i4", m->stored, 0, m->indices);
	add_string(out, "data");
	add_array(out, "f4", m->stored, 0, m->data);
	pickle_text(out, "ub.");
}

void pickle_csr(struct pickle *out, const struct small_csr *m)
{
	add_csr(out, m, m->indptr);
}

void pickle_empty_csr(struct pickle *out, int rows, int cols, const int32_t *indptr)
{
	add_csr(out, &(struct small_csr){.rows = rows, .cols = cols}, indptr);
}

void pickle_array_of(struct pickle *out, int rows, int classes, const int32_t *labels)
{
	pickle_text(out, "\x80\2");
	add_array(out, "i4", rows, classes, labels);
	pickle_text(out, ".");
}

void pickle_labels(struct pickle *out, const struct small_labels *m)
{
	pickle_array_of(out, m->rows, m->classes, m->at);
}

void pickle_graph(struct pickle *out, const char *lists)
{
	pickle_text(out, "\x80\2"
	                 "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85Rq\1(");
	while (*lists) {
		char *at;
		add_integer(out, (int32_t)strtol(lists, &at, 10));
		pickle_text(out, "](");
		for (at++; *at == ' ';)
			add_integer(out, (int32_t)strtol(at, &at, 10));
		pickle_text(out, "e");
		lists = at + 1;
	}
	pickle_text(out, "u.");
}

void planetoid_member(const struct small_planetoid *set, int k, struct pickle *out)
{
	const struct small_csr *const features[] = {&set->x, &set->tx, &set->allx};
	const struct small_labels *const labels[] = {&set->y, &set->ty, &set->ally};
	out->count = 0;
	if (k < 3)
		pickle_csr(out, features[k]);
	else if (k < 6)
		pickle_labels(out, labels[k - 3]);
	else if (k == 6)
		pickle_graph(out, set->graph);
	else
		pickle_text(out, set->test);
}
