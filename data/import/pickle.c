/* Open a pickle: read the file, and run its opcodes to the last.
 *
 * A value, a cell of a container and an entry of the memo are each made by at least one byte of the
 * file, and strings stay where they are, so memory is in proportion to the file whatever it says.
 */
#include "import/pickle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/bytes.h"
#include "import/pickle_machine.h"

/* Room for the bytes of a file at first; it doubles. */
#define FIRST_BYTES 65536

hg_status hg__pickle_fail(const struct hg__pickle *p, int64_t at, const char *format, ...)
{
	char text[HG_DATA_MESSAGE];
	va_list args;
	va_start(args, format);
	hg__data_say(text, format, args);
	va_end(args);
	return hg__data_fail(p->message, HG_ERR_FORMAT, "%s: at byte %" PRId64 ": %s", p->path, at,
	                     text);
}

hg_status hg__pickle_take(struct hg__pickle *p, int64_t count, const unsigned char **bytes)
{
	if (count < 0 || p->size - p->next < count)
		return hg__pickle_fail(p, p->opcode,
		                       "truncated: %" PRId64 " bytes follow, expected %" PRId64,
		                       p->size - p->next, count);
	*bytes = p->bytes + p->next;
	p->next += count;
	return HG_OK;
}

hg_status hg__pickle_line(struct hg__pickle *p, unsigned char **text, int64_t *length)
{
	const size_t left = (size_t)(p->size - p->next);
	const unsigned char *end = left ? memchr(p->bytes + p->next, '\n', left) : NULL;
	if (!end)
		return hg__pickle_fail(p, p->opcode, "truncated: a line of text that does not end");
	*text = p->bytes + p->next;
	*length = end - *text;
	p->next += *length + 1;
	return HG_OK;
}

/* Read the whole file. Its size is not known beforehand if it is compressed. */
static hg_status load(struct hg__pickle *p, const hg_progress *progress)
{
	struct hg__bytes file;
	int64_t room = 0;
	size_t got = 1;
	hg_status status = hg__bytes_open(&file, p->path, progress, p->message);
	while (status == HG_OK && got > 0) {
		if (room - p->size < 2) {
			room = room ? 2 * room : FIRST_BYTES;
			status =
			    hg__data_grow((void **)&p->bytes, room, 1, "the bytes of a pickle", p->message);
		}
		if (status == HG_OK)
			status = hg__bytes_read(&file, p->bytes + p->size, (size_t)(room - p->size - 1), &got);
		p->size += status == HG_OK ? (int64_t)got : 0;
	}
	hg__bytes_close(&file);
	if (status == HG_OK)
		p->bytes[p->size] = 0;
	return status;
}

hg_status hg__pickle_open(struct hg__pickle *p, const char *path, const hg_progress *progress,
                          char *message)
{
	*p = (struct hg__pickle){.path = path, .message = message, .root = -1};
	HG__TRY(load(p, progress));
	while (p->root < 0)
		HG__TRY(hg__pickle_step(p));
	return HG_OK;
}

void hg__pickle_close(struct hg__pickle *p)
{
	free(p->bytes);
	free(p->value);
	free(p->cell);
	free(p->stack);
	free(p->memo);
	*p = (struct hg__pickle){.root = -1};
}
