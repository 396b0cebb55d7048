#include "doctor/page.h"

#include <stdarg.h>
#include <string.h>

#include "core/text.h"

struct hg__page {
	struct hg__page *next;
	size_t bytes, used; /* behind this head */
};

/* A report of a usual step, two layers and no finding, fits one page. */
#define PAGE_BYTES ((size_t)64 << 10)
#define ALIGN 16u

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

hg_status hg__page_take(hg_context *ctx, struct hg__page **pages, size_t count, size_t size,
                        void **memory)
{
	const size_t head = aligned(sizeof(struct hg__page)), bytes = aligned(count * size);
	struct hg__page *page = *pages;
	if (!page || page->bytes - page->used < bytes) {
		const size_t room = bytes > PAGE_BYTES ? bytes : PAGE_BYTES;
		void *made = NULL;
		HG__TRY(hg__host_alloc(ctx, head + room, 1, "doctor: report", &made));
		page = made;
		page->next = *pages;
		page->bytes = room;
		*pages = page;
	}
	*memory = (char *)page + head + page->used;
	page->used += bytes;
	return HG_OK;
}

hg_status hg__page_text(hg_context *ctx, struct hg__page **pages, const char **text,
                        const char *format, ...)
{
	char line[2048];
	va_list args;
	va_start(args, format);
	const int length = hg__vprint(line, sizeof line, format, args);
	va_end(args);
	void *memory = NULL;
	const size_t bytes = length < 0                     ? 1
	                     : (size_t)length < sizeof line ? (size_t)length + 1
	                                                    : sizeof line;
	line[bytes - 1] = 0;
	HG__TRY(hg__page_take(ctx, pages, bytes, 1, &memory));
	*text = memcpy(memory, line, bytes);
	return HG_OK;
}

void hg__page_free(hg_context *ctx, struct hg__page **pages)
{
	while (*pages) {
		struct hg__page *page = *pages;
		*pages = page->next;
		hg__host_free(ctx, page, aligned(sizeof *page) + page->bytes);
	}
}
