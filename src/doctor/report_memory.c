#include "doctor/report_memory.h"

#include <stdarg.h>
#include <string.h>

#include "core/text.h"

/* A list of blocks, the newest first. Each block is this header and the bytes after it. */
struct hg__report_memory {
	struct hg__report_memory *next;
	size_t bytes, used; /* after this header */
};

/* The report of a model of two layers without a finding fits into one block. */
#define BLOCK_BYTES ((size_t)64 << 10)
#define ALIGN 16u

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

hg_status hg__report_alloc(hg_context *ctx, struct hg__report_memory **memory, size_t count,
                           size_t size, void **piece)
{
	const size_t head = aligned(sizeof(struct hg__report_memory)), bytes = aligned(count * size);
	struct hg__report_memory *block = *memory;
	if (!block || block->bytes - block->used < bytes) {
		const size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
		void *made = NULL;
		HG__TRY(hg__host_alloc(ctx, head + room, 1, "doctor: report", &made));
		block = made;
		block->next = *memory;
		block->bytes = room;
		*memory = block;
	}
	*piece = (char *)block + head + block->used;
	block->used += bytes;
	return HG_OK;
}

hg_status hg__report_text(hg_context *ctx, struct hg__report_memory **memory, const char **text,
                          const char *format, ...)
{
	char buffer[2048];
	va_list args;
	va_start(args, format);
	const int length = hg__vprint(buffer, sizeof buffer, format, args);
	va_end(args);
	void *piece = NULL;
	const size_t bytes = length < 0                       ? 1
	                     : (size_t)length < sizeof buffer ? (size_t)length + 1
	                                                      : sizeof buffer;
	buffer[bytes - 1] = 0;
	HG__TRY(hg__report_alloc(ctx, memory, bytes, 1, &piece));
	*text = memcpy(piece, buffer, bytes);
	return HG_OK;
}

void hg__report_memory_free(hg_context *ctx, struct hg__report_memory **memory)
{
	while (*memory) {
		struct hg__report_memory *block = *memory;
		*memory = block->next;
		hg__host_free(ctx, block, aligned(sizeof *block) + block->bytes);
	}
}
