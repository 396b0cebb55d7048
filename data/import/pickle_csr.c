/* scipy's CSR matrices in pickles. The state is a dictionary with _shape, indptr, indices and data;
 * its other entries are caches. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/pickle_array.h"

/* An integer of _shape. */
static hg_status read_extent(const struct hg__pickle *p, hg__ref shape, int64_t k, int64_t *extent)
{
	const hg__ref ref = shape >= 0 && p->value[shape].kind == HG__PICKLE_TUPLE &&
	                            p->value[shape].as.items.count == 2
	                        ? hg__pickle_item(p, shape, k)
	                        : -1;
	if (ref < 0 || p->value[ref].kind != HG__PICKLE_INTEGER || p->value[ref].as.integer < 0 ||
	    p->value[ref].as.integer > INT32_MAX)
		return hg__pickle_fail(p, p->value[shape >= 0 ? shape : p->root].at,
		                       "_shape, expected two integers from 0 to 2147483647");
	*extent = p->value[ref].as.integer;
	return HG_OK;
}

static hg_status open_vector(const struct hg__pickle *p, hg__ref state, const char *key,
                             int64_t expected, struct hg__pickle_array *a)
{
	const hg__ref ref = hg__pickle_get(p, state, key);
	HG__TRY(hg__pickle_array(p, ref, key, 1, a));
	return a->elements == expected
	           ? HG_OK
	           : hg__pickle_fail(p, p->value[ref].at,
	                             "%s has %" PRId64 " elements, expected %" PRId64, key, a->elements,
	                             expected);
}

/* An integer in [0, high]. */
static hg_status read_index(const struct hg__pickle_array *a, int64_t k, int64_t high, int64_t *to)
{
	const unsigned char *at = a->bytes + k * a->type.size;
	*to = hg__element_integer(a->type, at);
	if (a->type.kind != 'i' && a->type.kind != 'u')
		return hg__pickle_fail(a->pickle, at - a->pickle->bytes, "%s: expected integers", a->what);
	if (*to >= 0 && *to <= high)
		return HG_OK;
	char digits[24];
	return hg__pickle_fail(a->pickle, at - a->pickle->bytes,
	                       "%s: value %s at %" PRId64 " is not in [0, %" PRId64 "]", a->what,
	                       hg__data_digits(*to, a->type.kind == 'u', digits), k, high);
}

static hg_status read_pointers(const struct hg__pickle *p, hg__ref state, struct hg__sparse *m)
{
	struct hg__pickle_array a;
	HG__TRY(open_vector(p, state, "indptr", m->rows + 1, &a));
	HG__TRY(hg__data_alloc(m->rows + 1, sizeof *m->rowptr, "row pointers", (void **)&m->rowptr,
	                       p->message));
	for (int64_t i = 0; i <= m->rows; i++)
		HG__TRY(read_index(&a, i, INT32_MAX, &m->rowptr[i]));
	m->m = m->rowptr[m->rows];
	return hg__data_check_pointers(p->path, "indptr", m->rowptr, m->rows, p->message);
}

static hg_status read_columns(const struct hg__pickle *p, hg__ref state, struct hg__sparse *m)
{
	struct hg__pickle_array a;
	HG__TRY(open_vector(p, state, "indices", m->m, &a));
	HG__TRY(hg__data_alloc(m->m, sizeof *m->col, "column indices", (void **)&m->col, p->message));
	for (int64_t e = 0; e < m->m; e++) {
		int64_t column = 0;
		HG__TRY(read_index(&a, e, m->cols - 1, &column));
		m->col[e] = (int32_t)column;
	}
	return HG_OK;
}

static hg_status read_values(const struct hg__pickle *p, hg__ref state, struct hg__sparse *m)
{
	struct hg__pickle_array a;
	HG__TRY(open_vector(p, state, "data", m->m, &a));
	HG__TRY(hg__data_alloc(m->m, sizeof *m->value, "features", (void **)&m->value, p->message));
	for (int64_t e = 0; e < m->m; e++) {
		const double x = hg__pickle_array_real(&a, e, 0);
		if (!(fabs(x) <= (double)FLT_MAX))
			return hg__pickle_fail(p, hg__pickle_array_at(&a, e, 0),
			                       "data: value %g at %" PRId64
			                       ", expected a finite number that float32 can hold",
			                       x, e);
		m->value[e] = (float)x;
	}
	return HG_OK;
}

hg_status hg__pickle_csr(const struct hg__pickle *p, struct hg__sparse *m)
{
	const struct hg__pickle_value *root = &p->value[p->root];
	*m = (struct hg__sparse){0};
	if (root->kind != HG__PICKLE_OBJECT || root->class != HG__CLASS_CSR_MATRIX)
		return hg__pickle_fail(p, root->at, "found %s, expected a scipy.sparse.csr.csr_matrix",
		                       hg__pickle_what(root));
	const hg__ref state = root->as.object.state;
	if (state < 0 || p->value[state].kind != HG__PICKLE_DICT)
		return hg__pickle_fail(p, root->at, "a csr_matrix without its arrays");
	const hg__ref shape = hg__pickle_get(p, state, "_shape");
	HG__TRY(read_extent(p, shape, 0, &m->rows));
	HG__TRY(read_extent(p, shape, 1, &m->cols));
	HG__TRY(read_pointers(p, state, m));
	HG__TRY(read_columns(p, state, m));
	HG__TRY(read_values(p, state, m));
	return hg__sparse_sort(m, p->message);
}
