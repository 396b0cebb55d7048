/* The opcodes of protocols 0 to 2 that arrays, matrices and dictionaries of lists need. The others
 * are refused by name. */
#include <inttypes.h>

#include "import/pickle_machine.h"

/* An unsigned number of `width` bytes, little-endian. */
static hg_status take_number(struct hg__pickle *p, int width, int64_t *value)
{
	const unsigned char *bytes;
	HG__TRY(hg__pickle_take(p, width, &bytes));
	uint64_t bits = 0;
	for (int k = 0; k < width; k++)
		bits |= (uint64_t)bytes[k] << 8 * k;
	*value = (int64_t)bits;
	return HG_OK;
}

static hg_status push_integer(struct hg__pickle *p, enum hg__pickle_kind kind, int64_t integer)
{
	return hg__pickle_push(p, (struct hg__pickle_value){.kind = kind, .as.integer = integer});
}

static hg_status collect_marked(struct hg__pickle *p, enum hg__pickle_kind kind)
{
	int64_t first;
	HG__TRY(hg__pickle_pop_mark(p, &first));
	return hg__pickle_collect(p, first, kind);
}

static hg_status append_marked(struct hg__pickle *p, enum hg__pickle_kind kind)
{
	int64_t first;
	HG__TRY(hg__pickle_pop_mark(p, &first));
	return hg__pickle_append_above(p, first, kind);
}

/* A number of the memo as a line of text. */
static hg_status take_line_number(struct hg__pickle *p, int64_t *number)
{
	hg__ref ref;
	HG__TRY(hg__pickle_integer_line(p));
	HG__TRY(hg__pickle_pop(p, &ref));
	*number = p->value[ref].as.integer;
	return HG_OK;
}

/* ---- opcodes ---- */

static hg_status op_proto(struct hg__pickle *p)
{
	int64_t version;
	HG__TRY(take_number(p, 1, &version));
	return version <= 2
	           ? HG_OK
	           : hg__pickle_fail(p, p->opcode, "a pickle of protocol %" PRId64 ", expected 0 to 2",
	                             version);
}

static hg_status op_mark(struct hg__pickle *p)
{
	if (p->marks == HG__PICKLE_DEPTH)
		return hg__pickle_fail(p, p->opcode, "containers in containers, deeper than %d",
		                       HG__PICKLE_DEPTH);
	p->mark[p->marks++] = p->height;
	return HG_OK;
}

static hg_status op_none(struct hg__pickle *p)
{
	return push_integer(p, HG__PICKLE_NONE, 0);
}
static hg_status op_true(struct hg__pickle *p)
{
	return push_integer(p, HG__PICKLE_BOOL, 1);
}
static hg_status op_false(struct hg__pickle *p)
{
	return push_integer(p, HG__PICKLE_BOOL, 0);
}

static hg_status push_number(struct hg__pickle *p, int width)
{
	int64_t value;
	HG__TRY(take_number(p, width, &value));
	return push_integer(p, HG__PICKLE_INTEGER, width == 4 ? (int32_t)(uint32_t)value : value);
}
static hg_status op_binint(struct hg__pickle *p)
{
	return push_number(p, 4);
}
static hg_status op_binint1(struct hg__pickle *p)
{
	return push_number(p, 1);
}
static hg_status op_binint2(struct hg__pickle *p)
{
	return push_number(p, 2);
}

/* An integer of up to 255 bytes, of which 8 can be read. */
static hg_status op_long1(struct hg__pickle *p)
{
	int64_t width, value = 0;
	HG__TRY(take_number(p, 1, &width));
	if (width > 8)
		return hg__pickle_fail(p, p->opcode, "an integer of %" PRId64 " bytes, expected at most 8",
		                       width);
	HG__TRY(take_number(p, (int)width, &value));
	if (width > 0 && width < 8 && value >> (8 * width - 1))
		value -= (int64_t)1 << 8 * width;
	return push_integer(p, HG__PICKLE_INTEGER, value);
}

static hg_status push_text(struct hg__pickle *p, int width)
{
	const unsigned char *bytes;
	int64_t length;
	HG__TRY(take_number(p, width, &length));
	HG__TRY(hg__pickle_take(p, length, &bytes));
	return hg__pickle_push(
	    p, (struct hg__pickle_value){.kind = HG__PICKLE_TEXT, .as.text = {bytes, length}});
}
static hg_status op_binstring(struct hg__pickle *p)
{
	return push_text(p, 4);
}
static hg_status op_short_binstring(struct hg__pickle *p)
{
	return push_text(p, 1);
}

static hg_status op_empty_tuple(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height, HG__PICKLE_TUPLE);
}
static hg_status op_tuple1(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height - 1, HG__PICKLE_TUPLE);
}
static hg_status op_tuple2(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height - 2, HG__PICKLE_TUPLE);
}
static hg_status op_tuple3(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height - 3, HG__PICKLE_TUPLE);
}
static hg_status op_tuple(struct hg__pickle *p)
{
	return collect_marked(p, HG__PICKLE_TUPLE);
}
static hg_status op_empty_list(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height, HG__PICKLE_LIST);
}
static hg_status op_list(struct hg__pickle *p)
{
	return collect_marked(p, HG__PICKLE_LIST);
}
static hg_status op_append(struct hg__pickle *p)
{
	if (p->height - 1 < hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes a value from an empty stack");
	return hg__pickle_append_above(p, p->height - 1, HG__PICKLE_LIST);
}
static hg_status op_appends(struct hg__pickle *p)
{
	return append_marked(p, HG__PICKLE_LIST);
}
static hg_status op_empty_dict(struct hg__pickle *p)
{
	return hg__pickle_collect(p, p->height, HG__PICKLE_DICT);
}
static hg_status op_dict(struct hg__pickle *p)
{
	return collect_marked(p, HG__PICKLE_DICT);
}
static hg_status op_setitem(struct hg__pickle *p)
{
	if (p->height - 2 < hg__pickle_floor(p))
		return hg__pickle_fail(p, p->opcode, "takes a value from an empty stack");
	return hg__pickle_append_above(p, p->height - 2, HG__PICKLE_DICT);
}
static hg_status op_setitems(struct hg__pickle *p)
{
	return append_marked(p, HG__PICKLE_DICT);
}

static hg_status put_numbered(struct hg__pickle *p, int width)
{
	int64_t number;
	HG__TRY(width ? take_number(p, width, &number) : take_line_number(p, &number));
	return hg__pickle_memo_put(p, number);
}
static hg_status op_put(struct hg__pickle *p)
{
	return put_numbered(p, 0);
}
static hg_status op_binput(struct hg__pickle *p)
{
	return put_numbered(p, 1);
}
static hg_status op_long_binput(struct hg__pickle *p)
{
	return put_numbered(p, 4);
}

static hg_status get_numbered(struct hg__pickle *p, int width)
{
	int64_t number;
	HG__TRY(width ? take_number(p, width, &number) : take_line_number(p, &number));
	return hg__pickle_memo_get(p, number);
}
static hg_status op_get(struct hg__pickle *p)
{
	return get_numbered(p, 0);
}
static hg_status op_binget(struct hg__pickle *p)
{
	return get_numbered(p, 1);
}
static hg_status op_long_binget(struct hg__pickle *p)
{
	return get_numbered(p, 4);
}

/* One value must be left, and the file ends here. */
static hg_status op_stop(struct hg__pickle *p)
{
	if (p->marks || p->height != 1)
		return hg__pickle_fail(p, p->opcode, "ends with %" PRId64 " values, expected one",
		                       p->height);
	if (p->next != p->size)
		return hg__pickle_fail(p, p->next, "the pickle ends here, but the file goes on");
	p->root = p->stack[0];
	return HG_OK;
}

/* `run` NULL: refused. */
static const struct opcode {
	const char *name;
	hg_status (*run)(struct hg__pickle *);
} opcodes[256] = {
    [0x80] = {"PROTO", op_proto},
    ['.'] = {"STOP", op_stop},
    ['('] = {"MARK", op_mark},
    ['N'] = {"NONE", op_none},
    [0x88] = {"NEWTRUE", op_true},
    [0x89] = {"NEWFALSE", op_false},
    ['I'] = {"INT", hg__pickle_integer_line},
    ['L'] = {"LONG", hg__pickle_integer_line},
    ['J'] = {"BININT", op_binint},
    ['K'] = {"BININT1", op_binint1},
    ['M'] = {"BININT2", op_binint2},
    [0x8a] = {"LONG1", op_long1},
    ['S'] = {"STRING", hg__pickle_string_line},
    ['T'] = {"BINSTRING", op_binstring},
    ['U'] = {"SHORT_BINSTRING", op_short_binstring},
    [')'] = {"EMPTY_TUPLE", op_empty_tuple},
    ['t'] = {"TUPLE", op_tuple},
    [0x85] = {"TUPLE1", op_tuple1},
    [0x86] = {"TUPLE2", op_tuple2},
    [0x87] = {"TUPLE3", op_tuple3},
    [']'] = {"EMPTY_LIST", op_empty_list},
    ['l'] = {"LIST", op_list},
    ['a'] = {"APPEND", op_append},
    ['e'] = {"APPENDS", op_appends},
    ['}'] = {"EMPTY_DICT", op_empty_dict},
    ['d'] = {"DICT", op_dict},
    ['s'] = {"SETITEM", op_setitem},
    ['u'] = {"SETITEMS", op_setitems},
    ['p'] = {"PUT", op_put},
    ['q'] = {"BINPUT", op_binput},
    ['r'] = {"LONG_BINPUT", op_long_binput},
    ['g'] = {"GET", op_get},
    ['h'] = {"BINGET", op_binget},
    ['j'] = {"LONG_BINGET", op_long_binget},
    ['c'] = {"GLOBAL", hg__pickle_global},
    ['R'] = {"REDUCE", hg__pickle_reduce},
    [0x81] = {"NEWOBJ", hg__pickle_newobj},
    ['b'] = {"BUILD", hg__pickle_build},
    ['0'] = {"POP", NULL},
    ['1'] = {"POP_MARK", NULL},
    ['2'] = {"DUP", NULL},
    ['F'] = {"FLOAT", NULL},
    ['G'] = {"BINFLOAT", NULL},
    ['V'] = {"UNICODE", NULL},
    ['X'] = {"BINUNICODE", NULL},
    ['P'] = {"PERSID", NULL},
    ['Q'] = {"BINPERSID", NULL},
    ['i'] = {"INST", NULL},
    ['o'] = {"OBJ", NULL},
    [0x82] = {"EXT1", NULL},
    [0x83] = {"EXT2", NULL},
    [0x84] = {"EXT4", NULL},
    [0x8b] = {"LONG4", NULL},
};

hg_status hg__pickle_step(struct hg__pickle *p)
{
	p->opcode = p->next;
	if (p->next == p->size)
		return hg__pickle_fail(p, p->opcode,
		                       "truncated: the pickle goes on, but the file ends here");
	const unsigned char code = p->bytes[p->next++];
	const struct opcode *op = &opcodes[code];
	if (!op->name)
		return hg__pickle_fail(
		    p, p->opcode, "0x%02x, expected an opcode of a Python pickle of protocol 0 to 2", code);
	if (!op->run)
		return hg__pickle_fail(p, p->opcode, "opcode %s is refused: no Planetoid file needs it",
		                       op->name);
	return op->run(p);
}
