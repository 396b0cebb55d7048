/* numpy arrays in pickles. An array is made empty and then built from the state
 *
 *     (version, shape, dtype, is Fortran order, the bytes of its elements),
 *
 * and a dtype is made as dtype("f4", 0, 1) and then built from (version, byte order, ...). */
#include "import/pickle_array.h"

#include <inttypes.h>
#include <string.h>

static const struct hg__pickle_value *value(const struct hg__pickle *p, hg__ref ref)
{
	return &p->value[ref];
}

/* Is there a value of this kind? */
static int is(const struct hg__pickle *p, hg__ref ref, enum hg__pickle_kind kind)
{
	return ref >= 0 && value(p, ref)->kind == kind;
}

static int is_object(const struct hg__pickle *p, hg__ref ref, enum hg__pickle_class class)
{
	return is(p, ref, HG__PICKLE_OBJECT) && value(p, ref)->class == class;
}

/* The item `index` of the tuple `ref`; -1 where `ref` is no tuple or too short. */
static hg__ref item(const struct hg__pickle *p, hg__ref ref, int64_t index)
{
	return is(p, ref, HG__PICKLE_TUPLE) ? hg__pickle_item(p, ref, index) : -1;
}

static hg_status bad_array(const struct hg__pickle_array *a, hg__ref ref, const char *why)
{
	return hg__pickle_fail(a->pickle, value(a->pickle, ref)->at, "%s: %s", a->what, why);
}

/* The dtype is its name, "f4", behind its byte order, "<". */
static hg_status read_type(struct hg__pickle_array *a, hg__ref array, hg__ref type)
{
	const struct hg__pickle *p = a->pickle;
	char text[4] = "";
	if (!is_object(p, type, HG__CLASS_DTYPE))
		return bad_array(a, array, "its dtype is missing");
	const hg__ref name = item(p, value(p, type)->as.object.arguments, 0),
	              order = item(p, value(p, type)->as.object.state, 1);
	if (is(p, name, HG__PICKLE_TEXT) && value(p, name)->as.text.length == 2 &&
	    is(p, order, HG__PICKLE_TEXT) && value(p, order)->as.text.length == 1) {
		text[0] = (char)*value(p, order)->as.text.bytes;
		memcpy(text + 1, value(p, name)->as.text.bytes, 2);
	}
	return hg__element_parse(text, &a->type)
	           ? HG_OK
	           : bad_array(a, type,
	                       "its dtype is not supported; integers, floats of 2, 4, 8 bytes "
	                       "and booleans are");
}

static hg_status read_shape(struct hg__pickle_array *a, hg__ref array, hg__ref shape, int rank)
{
	const struct hg__pickle *p = a->pickle;
	const int64_t found = is(p, shape, HG__PICKLE_TUPLE) ? value(p, shape)->as.items.count : -1;
	if (found != rank)
		return hg__pickle_fail(p, value(p, array)->at,
		                       "%s: has %" PRId64 " dimensions, expected %d", a->what, found, rank);
	a->elements = 1;
	a->dim[1] = 1;
	for (int k = 0; k < rank; k++) {
		const hg__ref dim = item(p, shape, k);
		if (!is(p, dim, HG__PICKLE_INTEGER) || value(p, dim)->as.integer < 0 ||
		    __builtin_mul_overflow(a->elements, value(p, dim)->as.integer, &a->elements))
			return bad_array(a, array, "its shape is impossible");
		a->dim[k] = value(p, dim)->as.integer;
	}
	return HG_OK;
}

hg_status hg__pickle_array(const struct hg__pickle *p, hg__ref ref, const char *what, int rank,
                           struct hg__pickle_array *a)
{
	*a = (struct hg__pickle_array){.pickle = p, .what = what};
	if (ref < 0)
		return hg__pickle_fail(p, value(p, p->root)->at, "%s is missing", what);
	if (!is_object(p, ref, HG__CLASS_NDARRAY))
		return hg__pickle_fail(p, value(p, ref)->at, "%s is %s, expected a numpy.ndarray", what,
		                       hg__pickle_what(value(p, ref)));
	const hg__ref state = value(p, ref)->as.object.state, order = item(p, state, 3),
	              bytes = item(p, state, 4);
	if (!is(p, order, HG__PICKLE_BOOL) || !is(p, bytes, HG__PICKLE_TEXT))
		return bad_array(a, ref, "its state is not that of an array of numbers");
	HG__TRY(read_type(a, ref, item(p, state, 2)));
	HG__TRY(read_shape(a, ref, item(p, state, 1), rank));
	a->fortran = rank == 2 && value(p, order)->as.integer;
	a->bytes = value(p, bytes)->as.text.bytes;
	int64_t expected = 0;
	if (__builtin_mul_overflow(a->elements, (int64_t)a->type.size, &expected) ||
	    expected != value(p, bytes)->as.text.length)
		return hg__pickle_fail(p, value(p, bytes)->at,
		                       "%s: %" PRId64 " bytes, expected %" PRId64 " elements of %d", what,
		                       value(p, bytes)->as.text.length, a->elements, a->type.size);
	return HG_OK;
}

static const unsigned char *element(const struct hg__pickle_array *a, int64_t row, int64_t column)
{
	const int64_t index = a->fortran ? column * a->dim[0] + row : row * a->dim[1] + column;
	return a->bytes + index * a->type.size;
}

int64_t hg__pickle_array_at(const struct hg__pickle_array *a, int64_t row, int64_t column)
{
	return element(a, row, column) - a->pickle->bytes;
}

double hg__pickle_array_real(const struct hg__pickle_array *a, int64_t row, int64_t column)
{
	return hg__element_real(a->type, element(a, row, column));
}
