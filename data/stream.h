#ifndef HG_DATA_STREAM_H
#define HG_DATA_STREAM_H

#include "atomic.h"

/* Bytes on their way into a file that is written atomically, gathered in a buffer. The first
 * failure stays: later bytes are dropped, and hg__stream_end returns it. */
#define HG__STREAM_BYTES (1 << 16)
struct hg__stream {
	const struct hg__atomic *file;
	hg_status status;
	int64_t bytes; /* put so far */
	size_t held;
	unsigned char buffer[HG__STREAM_BYTES];
};

/* The caller frees the stream. */
HG_NODISCARD hg_status hg__stream_new(const struct hg__atomic *file, struct hg__stream **stream);
void hg__stream_put(struct hg__stream *stream, const void *bytes, size_t count);
/* Text with a decimal point in every locale; at most 127 bytes. */
void hg__stream_text(struct hg__stream *stream, const char *format, ...) HG_PRINTF(2, 3);
HG_NODISCARD hg_status hg__stream_end(struct hg__stream *stream);

#endif
