/* Read a JSON object whose keys are numbers and whose values are lists of numbers. A general parser
 * would hold the whole object, at ten times the size of what comes of it. */
#include "import/json_lists.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES 65536

struct reader {
	struct hg__bytes *bytes;
	unsigned char *buffer;
	size_t at, end;
	int64_t before; /* bytes before the buffer */
};

static hg_status fail(const struct reader *r, const char *expected, int found)
{
	const int64_t byte = r->before + (int64_t)r->at;
	if (found < 0)
		return hg__data_fail(r->bytes->message, HG_ERR_FORMAT,
		                     "%s: ends at byte %" PRId64 ", expected %s", r->bytes->path, byte,
		                     expected);
	return hg__data_fail(r->bytes->message, HG_ERR_FORMAT,
	                     "%s: at byte %" PRId64 ": expected %s, found '%c'", r->bytes->path, byte,
	                     expected, found);
}

/* *c := the next byte, which is not taken; -1 at the end. */
static hg_status peek(struct reader *r, int *c)
{
	if (r->at == r->end) {
		r->before += (int64_t)r->end;
		r->at = r->end = 0;
		HG__TRY(hg__bytes_read(r->bytes, r->buffer, BUFFER_BYTES, &r->end));
	}
	*c = r->at < r->end ? r->buffer[r->at] : -1;
	return HG_OK;
}

/* *c := the next byte that is no white space, which is not taken. */
static hg_status skip_space(struct reader *r, int *c)
{
	HG__TRY(peek(r, c));
	while (*c == ' ' || *c == '\n' || *c == '\r' || *c == '\t') {
		r->at++;
		HG__TRY(peek(r, c));
	}
	return HG_OK;
}

static hg_status expect(struct reader *r, char symbol, const char *expected)
{
	int c = 0;
	HG__TRY(skip_space(r, &c));
	if (c != symbol)
		return fail(r, expected, c);
	r->at++;
	return HG_OK;
}

static hg_status read_whole(struct reader *r, const char *expected, int64_t *value)
{
	int c = 0, digits = 0;
	*value = 0;
	for (;; digits++) {
		HG__TRY(peek(r, &c));
		if (c < '0' || c > '9')
			break;
		if (__builtin_mul_overflow(*value, (int64_t)10, value) ||
		    __builtin_add_overflow(*value, (int64_t)(c - '0'), value))
			return fail(r, "a whole number of 64 bits", c);
		r->at++;
	}
	return digits && c != '.' && c != 'e' && c != 'E' ? HG_OK : fail(r, expected, c);
}

/* After a member of an object or list: a comma, or the end. */
static hg_status read_more(struct reader *r, char end, int *more)
{
	int c = 0;
	HG__TRY(skip_space(r, &c));
	if (c != ',' && c != end)
		return fail(r, end == ']' ? "a comma or ]" : "a comma or }", c);
	r->at++;
	*more = c == ',';
	return HG_OK;
}

static hg_status read_list(struct reader *r, int64_t key, hg__json_take take, void *user)
{
	int c = 0, more = 1;
	HG__TRY(expect(r, '[', "a list in ["));
	HG__TRY(take(user, key, -1));
	HG__TRY(skip_space(r, &c));
	if (c == ']') {
		r->at++;
		return HG_OK;
	}
	while (more) {
		int64_t value = 0;
		HG__TRY(skip_space(r, &c));
		HG__TRY(read_whole(r, "a whole number from 0", &value));
		HG__TRY(take(user, key, value));
		HG__TRY(read_more(r, ']', &more));
	}
	return HG_OK;
}

static hg_status read_object(struct reader *r, hg__json_take take, void *user)
{
	int c = 0, more = 1;
	HG__TRY(expect(r, '{', "an object in {"));
	HG__TRY(skip_space(r, &c));
	if (c == '}') {
		r->at++;
		more = 0;
	}
	while (more) {
		int64_t key = 0;
		HG__TRY(expect(r, '"', "the number of a node in quotes"));
		HG__TRY(read_whole(r, "the number of a node in quotes", &key));
		HG__TRY(peek(r, &c));
		if (c != '"')
			return fail(r, "the number of a node in quotes", c);
		r->at++;
		HG__TRY(expect(r, ':', "a colon"));
		HG__TRY(read_list(r, key, take, user));
		HG__TRY(read_more(r, '}', &more));
	}
	HG__TRY(skip_space(r, &c));
	return c < 0 ? HG_OK : fail(r, "the end of the file", c);
}

hg_status hg__json_lists(struct hg__bytes *bytes, hg__json_take take, void *user)
{
	struct reader r = {.bytes = bytes};
	HG__TRY(hg__data_alloc(BUFFER_BYTES, 1, "a buffer", (void **)&r.buffer, bytes->message));
	const hg_status status = read_object(&r, take, user);
	free(r.buffer);
	return status;
}
