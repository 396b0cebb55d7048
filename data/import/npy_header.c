/* Parse the header of an .npy file: the text of a Python dictionary with the keys descr,
 * fortran_order and shape, in any order. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "import/npy.h"

struct cursor {
	const char *at;
	struct npy *a;
};

static hg_status bad_header(const struct npy *a, const char *what)
{
	return hg__data_fail(a->message, HG_ERR_FORMAT, "%s: %s", a->where, what);
}

static void skip_space(struct cursor *c)
{
	while (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')
		c->at++;
}

static int accept(struct cursor *c, char symbol)
{
	skip_space(c);
	if (*c->at != symbol)
		return 0;
	c->at++;
	return 1;
}

/* Parse 'text' or "text" of at most size - 1 bytes. */
static int parse_text(struct cursor *c, char *text, size_t size)
{
	skip_space(c);
	const char quote = *c->at;
	if (quote != '\'' && quote != '"')
		return 0;
	const char *begin = c->at + 1, *end = strchr(begin, quote);
	if (!end || (size_t)(end - begin) >= size)
		return 0;
	memcpy(text, begin, (size_t)(end - begin));
	text[end - begin] = 0;
	c->at = end + 1;
	return 1;
}

/* Parse '<U19': byte order, kind, code points. */
static hg_status parse_text_type(struct npy *a, const char *text)
{
	const uint16_t probe = 1;
	const char native = *(const unsigned char *)&probe ? '<' : '>';
	char *rest = NULL;
	const long points =
	    text[1] == 'U' && isdigit((unsigned char)text[2]) ? strtol(text + 2, &rest, 10) : -1;
	if (points < 1 || points > HG__NPY_TEXT || *rest || !strchr("<>=", text[0]))
		return hg__data_fail(a->message, HG_ERR_FORMAT,
		                     "%s: dtype %s is not supported; texts of 1 to %d characters are",
		                     a->where, text, HG__NPY_TEXT);
	a->type = (struct hg__element){'U', 4 * (int)points, text[0] != '=' && text[0] != native};
	return HG_OK;
}

/* Parse '<f4': byte order, kind, bytes. */
static hg_status parse_descr(struct cursor *c)
{
	char text[64] = "";
	struct npy *a = c->a;
	skip_space(c);
	if (*c->at == '[')
		return bad_header(a, "records (a structured dtype) are not supported");
	if (!parse_text(c, text, sizeof text) || strlen(text) < 2 || !strchr("<>|=", text[0]))
		return bad_header(a, "the dtype in its header cannot be read");
	a->pickled = text[1] == 'O';
	if (a->pickled)
		return bad_header(a, "holds pickled Python objects, which are refused and never executed");
	if (a->texts)
		return parse_text_type(a, text);
	if (!hg__element_parse(text, &a->type))
		return hg__data_fail(
		    a->message, HG_ERR_FORMAT,
		    "%s: dtype %s is not supported; integers, floats of 2, 4, 8 bytes and booleans are",
		    a->where, text);
	return HG_OK;
}

static hg_status parse_order(struct cursor *c)
{
	skip_space(c);
	const int yes = strncmp(c->at, "True", 4) == 0, no = strncmp(c->at, "False", 5) == 0;
	if (!yes && !no)
		return bad_header(c->a, "fortran_order in its header is neither True nor False");
	c->a->fortran = yes;
	c->at += yes ? 4 : 5;
	return HG_OK;
}

/* Parse (), (3,) or (3, 4). */
static hg_status parse_shape(struct cursor *c)
{
	struct npy *a = c->a;
	a->rank = 0;
	a->elements = 1;
	if (!accept(c, '('))
		return bad_header(a, "the shape in its header cannot be read");
	while (!accept(c, ')')) {
		int64_t dim = 0;
		skip_space(c);
		if (!isdigit((unsigned char)*c->at) || a->rank == 2)
			return bad_header(a, a->rank == 2 ? "has more than 2 dimensions"
			                                  : "the shape in its header cannot be read");
		for (; isdigit((unsigned char)*c->at); c->at++)
			if (__builtin_mul_overflow(dim, (int64_t)10, &dim) ||
			    __builtin_add_overflow(dim, (int64_t)(*c->at - '0'), &dim))
				return bad_header(a, "its shape is impossibly large");
		a->dim[a->rank++] = dim;
		if (__builtin_mul_overflow(a->elements, dim, &a->elements))
			return bad_header(a, "its shape is impossibly large");
		if (*c->at == 'L') /* an integer literal of Python 2 */
			c->at++;
		if (!accept(c, ',') && *c->at != ')')
			return bad_header(a, "the shape in its header cannot be read");
	}
	return HG_OK;
}

hg_status hg__npy_parse(const char *text, struct npy *a)
{
	static const struct {
		const char *key;
		hg_status (*parse)(struct cursor *);
	} entries[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};
	struct cursor c = {text, a};
	unsigned seen = 0;
	if (!accept(&c, '{'))
		return bad_header(a, "its header is not a dictionary");
	while (!accept(&c, '}')) {
		char key[32] = "";
		size_t k = 0;
		if (!parse_text(&c, key, sizeof key) || !accept(&c, ':'))
			return bad_header(a, "its header cannot be read");
		while (k < 3 && strcmp(entries[k].key, key) != 0)
			k++;
		if (k == 3 || (seen & 1u << k))
			return hg__data_fail(a->message, HG_ERR_FORMAT,
			                     "%s: header key %s is unknown or repeated", a->where, key);
		seen |= 1u << k;
		HG__TRY(entries[k].parse(&c));
		if (!accept(&c, ',') && *c.at != '}')
			return bad_header(a, "its header cannot be read");
	}
	return seen == 7 ? HG_OK : bad_header(a, "its header lacks descr, fortran_order or shape");
}
