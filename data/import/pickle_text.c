/* The opcodes of protocol 0, which hold numbers and strings as lines of text. */
#include <string.h>

#include "import/pickle_machine.h"

/* "12", "-3L", or "00" and "01" for False and True. */
hg_status hg__pickle_integer_line(struct hg__pickle *p)
{
	unsigned char *text;
	int64_t length, value = 0;
	HG__TRY(hg__pickle_line(p, &text, &length));
	const int is_bool = length == 2 && text[0] == '0' && (text[1] == '0' || text[1] == '1');
	const int negative = length > 0 && text[0] == '-';
	const int64_t end = length > 0 && text[length - 1] == 'L' ? length - 1 : length;
	int bad = end == negative;
	for (int64_t k = negative; k < end; k++)
		bad |= text[k] < '0' || text[k] > '9' ||
		       __builtin_mul_overflow(value, (int64_t)10, &value) ||
		       __builtin_add_overflow(value, (int64_t)(text[k] - '0'), &value);
	if (bad)
		return hg__pickle_fail(p, p->opcode, "\"%.*s\", expected an integer of 64 bits",
		                       (int)(length < 60 ? length : 60), (const char *)text);
	return hg__pickle_push(
	    p, (struct hg__pickle_value){.kind = is_bool ? HG__PICKLE_BOOL : HG__PICKLE_INTEGER,
	                                 .as.integer = negative ? -value : value});
}

static int hex(unsigned char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replace an escape of Python's repr() by its byte. Returns the escape's length, or 0 for none. */
static int unescape(const unsigned char *text, int64_t left, unsigned char *byte)
{
	static const char names[] = "\\'\"nrt", bytes[] = "\\'\"\n\r\t";
	const char *name = left >= 2 && text[1] ? strchr(names, text[1]) : NULL;
	if (name) {
		*byte = (unsigned char)bytes[name - names];
		return 2;
	}
	if (left < 4 || text[1] != 'x' || hex(text[2]) < 0 || hex(text[3]) < 0)
		return 0;
	*byte = (unsigned char)(16 * hex(text[2]) + hex(text[3]));
	return 4;
}

/* 'text' or "text" with escapes. It is unescaped in place, where it needs no more room. */
hg_status hg__pickle_string_line(struct hg__pickle *p)
{
	unsigned char *text;
	int64_t length, to = 0;
	HG__TRY(hg__pickle_line(p, &text, &length));
	if (length < 2 || (text[0] != '\'' && text[0] != '"') || text[length - 1] != text[0])
		return hg__pickle_fail(p, p->opcode, "expected a string in quotes");
	unsigned char *bytes = text + 1;
	for (int64_t from = 0; from < length - 2;) {
		int used = 1;
		unsigned char byte = bytes[from];
		if (byte == '\\')
			used = unescape(bytes + from, length - 2 - from, &byte);
		if (!used)
			return hg__pickle_fail(p, p->opcode, "a string with an escape that is not known");
		bytes[to++] = byte;
		from += used;
	}
	return hg__pickle_push(
	    p, (struct hg__pickle_value){.kind = HG__PICKLE_TEXT, .as.text = {bytes, to}});
}
