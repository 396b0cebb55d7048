#include "stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/c_locale.h"

hg_status hg__stream_new(const struct hg__atomic *file, struct hg__stream **stream)
{
	HG__TRY(hg__data_alloc(1, sizeof **stream, "a buffer", (void **)stream, file->message));
	(*stream)->file = file;
	(*stream)->status = HG_OK;
	(*stream)->bytes = 0;
	(*stream)->held = 0;
	return HG_OK;
}

static void flush(struct hg__stream *s)
{
	for (size_t done = 0; s->status == HG_OK && done < s->held;) {
		const ssize_t put = write(s->file->fd, s->buffer + done, s->held - done);
		if (put > 0)
			done += (size_t)put;
		else if (put == 0 || errno != EINTR)
			s->status = hg__atomic_fail(s->file->path, put == 0 ? ENOSPC : errno, s->file->message);
	}
	s->held = 0;
}

void hg__stream_put(struct hg__stream *s, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	s->bytes += (int64_t)count;
	while (count > 0 && s->status == HG_OK) {
		const size_t room = HG__STREAM_BYTES - s->held, some = count < room ? count : room;
		memcpy(s->buffer + s->held, at, some);
		s->held += some;
		at += some;
		count -= some;
		if (s->held == HG__STREAM_BYTES)
			flush(s);
	}
}

void hg__stream_text(struct hg__stream *s, const char *format, ...)
{
	char text[128];
	va_list args;
	va_start(args, format);
	struct hg__c_locale point = hg__c_locale_begin();
	const int length = vsnprintf(text, sizeof text, format, args);
	hg__c_locale_end(&point);
	va_end(args);
	if (length > 0)
		hg__stream_put(s, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

hg_status hg__stream_end(struct hg__stream *s)
{
	flush(s);
	return s->status;
}
