/* The reader of pickles by itself: the machine that runs opcodes, and what Planetoid's reader asks
 * of its result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "import/pickle_array.h"

static void need(int good, const char *what, const char *message)
{
	if (good)
		return;
	fprintf(stderr, "%s: \"%s\"\n", what, message);
	abort();
}

/* Every item is a value of the pickle, and the numbers of items are as said. */
static void walk(const struct hg__pickle *p)
{
	for (int64_t k = 0; k < p->values; k++) {
		const struct hg__pickle_value *v = &p->value[k];
		int64_t items = 0;
		if (v->kind == HG__PICKLE_TEXT)
			need(v->as.text.length == 0 ||
			         (v->as.text.bytes >= p->bytes &&
			          v->as.text.bytes + v->as.text.length <= p->bytes + p->size),
			     "a text that is not in the file", "");
		if (v->kind != HG__PICKLE_TUPLE && v->kind != HG__PICKLE_LIST && v->kind != HG__PICKLE_DICT)
			continue;
		for (int32_t cell = v->as.items.first; cell >= 0; cell = p->cell[cell].next) {
			const hg__ref ref = p->cell[cell].value;
			need(cell < p->cells && ref >= 0 && ref < p->values && items++ < v->as.items.count,
			     "a container with other items than it says", "");
		}
		need(items == v->as.items.count, "a container with fewer items than it says", "");
	}
}

static void take_arrays(const struct hg__pickle *p, char *message)
{
	for (int rank = 1; rank <= 2; rank++) {
		struct hg__pickle_array a;
		*message = 0;
		const hg_status status = hg__pickle_array(p, p->root, "array", rank, &a);
		need(status == HG_OK || *message, "array", message);
		for (int64_t i = 0; status == HG_OK && a.elements > 0 && i < a.dim[0]; i++)
			(void)hg__pickle_array_real(&a, i, a.dim[1] - 1);
	}
	struct hg__sparse m = {0};
	*message = 0;
	const hg_status status = hg__pickle_csr(p, &m);
	need(status == HG_OK || *message, "matrix", message);
	free(m.rowptr);
	free(m.col);
	free(m.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char message[HG_DATA_MESSAGE] = "";
	struct hg__pickle p;
	const hg_status status = hg__pickle_open(&p, fuzz_file(bytes, count), NULL, message);
	need((status == HG_OK) == !*message && !strchr(message, '\n'), "pickle", message);
	if (status == HG_OK) {
		walk(&p);
		if (p.value[p.root].kind == HG__PICKLE_DICT)
			(void)hg__pickle_get(&p, p.root, "x");
		take_arrays(&p, message);
	}
	hg__pickle_close(&p);
	return 0;
}
