/* The classes and functions that a pickle may name, and what becomes of a call of them. This table
 * is the whole of what can be named, and none of it is run: an object keeps what it would be made
 * from, for pickle_array.c. */
#include <string.h>

#include "import/pickle_machine.h"

static const struct {
	const char *module, *name, *full;
} known[] = {
    [HG__CLASS_CSR_MATRIX] = {"scipy.sparse.csr", "csr_matrix", "scipy.sparse.csr.csr_matrix"},
    [HG__CLASS_NDARRAY] = {"numpy", "ndarray", "numpy.ndarray"},
    [HG__CLASS_DTYPE] = {"numpy", "dtype", "numpy.dtype"},
    [HG__CLASS_DEFAULTDICT] = {"collections", "defaultdict", "collections.defaultdict"},
    [HG__CLASS_LIST] = {"__builtin__", "list", "__builtin__.list"},
    [HG__CLASS_OBJECT] = {"__builtin__", "object", "__builtin__.object"},
    [HG__CLASS_MAKE_ARRAY] = {"numpy.core.multiarray", "_reconstruct",
                              "numpy.core.multiarray._reconstruct"},
    [HG__CLASS_MAKE_OBJECT] = {"copy_reg", "_reconstructor", "copy_reg._reconstructor"},
};

const char *hg__pickle_what(const struct hg__pickle_value *v)
{
	static const char *const kinds[] = {
	    [HG__PICKLE_NONE] = "None",        [HG__PICKLE_BOOL] = "a bool",
	    [HG__PICKLE_INTEGER] = "an int",   [HG__PICKLE_TEXT] = "a string",
	    [HG__PICKLE_TUPLE] = "a tuple",    [HG__PICKLE_LIST] = "a list",
	    [HG__PICKLE_DICT] = "a dictionary"};
	return v->kind == HG__PICKLE_CLASS || v->kind == HG__PICKLE_OBJECT ? known[v->class].full
	                                                                   : kinds[v->kind];
}

static int is_text(const unsigned char *text, int64_t length, const char *wanted)
{
	return (size_t)length == strlen(wanted) && memcmp(text, wanted, (size_t)length) == 0;
}

hg_status hg__pickle_global(struct hg__pickle *p)
{
	unsigned char *module, *name;
	int64_t module_length, name_length;
	HG__TRY(hg__pickle_line(p, &module, &module_length));
	HG__TRY(hg__pickle_line(p, &name, &name_length));
	for (int k = 0; k < HG__CLASS_NONE; k++)
		if (is_text(module, module_length, known[k].module) &&
		    is_text(name, name_length, known[k].name))
			return hg__pickle_push(p, (struct hg__pickle_value){.kind = HG__PICKLE_CLASS,
			                                                    .class = (enum hg__pickle_class)k});
	return hg__pickle_fail(
	    p, p->opcode,
	    "the pickle names %.*s.%.*s, which is refused: expected only arrays, CSR "
	    "matrices and dictionaries of lists; nothing was executed",
	    (int)(module_length < 60 ? module_length : 60), (const char *)module,
	    (int)(name_length < 60 ? name_length : 60), (const char *)name);
}

static enum hg__pickle_class class_of(const struct hg__pickle *p, hg__ref ref)
{
	return ref >= 0 && p->value[ref].kind == HG__PICKLE_CLASS ? p->value[ref].class
	                                                          : HG__CLASS_NONE;
}

static hg_status push_object(struct hg__pickle *p, enum hg__pickle_class class, hg__ref arguments)
{
	return hg__pickle_push(p, (struct hg__pickle_value){.kind = HG__PICKLE_OBJECT,
	                                                    .class = class,
	                                                    .as.object = {arguments, -1}});
}

static hg_status no_call(const struct hg__pickle *p, hg__ref callable)
{
	return hg__pickle_fail(p, p->opcode, "a call of %s with these arguments is refused",
	                       hg__pickle_what(&p->value[callable]));
}

/* A call of a function with a tuple of arguments. */
hg_status hg__pickle_reduce(struct hg__pickle *p)
{
	hg__ref arguments, callable;
	HG__TRY(hg__pickle_pop(p, &arguments));
	HG__TRY(hg__pickle_pop(p, &callable));
	if (p->value[arguments].kind != HG__PICKLE_TUPLE)
		return no_call(p, callable);
	const enum hg__pickle_class first = class_of(p, hg__pickle_item(p, arguments, 0));
	switch (class_of(p, callable)) {
	case HG__CLASS_MAKE_ARRAY: /* (ndarray, shape, type), which the state replaces */
		return first == HG__CLASS_NDARRAY ? push_object(p, first, arguments) : no_call(p, callable);
	case HG__CLASS_MAKE_OBJECT: /* (class, base, None) */
		return first == HG__CLASS_CSR_MATRIX ? push_object(p, first, arguments)
		                                     : no_call(p, callable);
	case HG__CLASS_DTYPE: /* ("f4", 0, 1) */
		return push_object(p, HG__CLASS_DTYPE, arguments);
	case HG__CLASS_DEFAULTDICT: /* (list,) */
		if (p->value[arguments].as.items.count > 0 && first != HG__CLASS_LIST)
			return no_call(p, callable);
		return hg__pickle_push(
		    p, (struct hg__pickle_value){.kind = HG__PICKLE_DICT, .as.items = {-1, -1, 0}});
	default:
		return no_call(p, callable);
	}
}

/* A new object of a class. */
hg_status hg__pickle_newobj(struct hg__pickle *p)
{
	hg__ref arguments, class;
	HG__TRY(hg__pickle_pop(p, &arguments));
	HG__TRY(hg__pickle_pop(p, &class));
	return class_of(p, class) == HG__CLASS_CSR_MATRIX
	           ? push_object(p, HG__CLASS_CSR_MATRIX, arguments)
	           : no_call(p, class);
}

/* The state of the object on top of the stack. */
hg_status hg__pickle_build(struct hg__pickle *p)
{
	hg__ref state, object;
	HG__TRY(hg__pickle_pop(p, &state));
	HG__TRY(hg__pickle_pop(p, &object));
	struct hg__pickle_value *v = &p->value[object];
	if (v->kind != HG__PICKLE_OBJECT || v->as.object.state >= 0)
		return hg__pickle_fail(p, p->opcode, "a state for %s, expected an object without one",
		                       hg__pickle_what(v));
	v->as.object.state = state;
	return hg__pickle_push_ref(p, object);
}
