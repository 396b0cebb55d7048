#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/c_locale.h"
#include "core/printable.h"
#include "internal.h"

void hg__data_say(char *line, const char *format, va_list args)
{
	char text[2 * HG_DATA_MESSAGE];
	struct hg__c_locale point = hg__c_locale_begin();
	vsnprintf(text, sizeof text, format, args);
	hg__c_locale_end(&point);
	(void)hg__printable(line, HG_DATA_MESSAGE, text);
}

hg_status hg__data_fail(char *message, hg_status status, const char *format, ...)
{
	if (!message)
		return status;
	va_list args;
	va_start(args, format);
	hg__data_say(message, format, args);
	va_end(args);
	return status;
}

const char *hg__data_digits(int64_t bits, int is_unsigned, char text[24])
{
	if (is_unsigned)
		snprintf(text, 24, "%" PRIu64, (uint64_t)bits);
	else
		snprintf(text, 24, "%" PRId64, bits);
	return text;
}

static int bytes_of(int64_t count, size_t size, size_t *bytes)
{
	/* a size of 0: rows of no columns, or no rows of so many columns that their bytes overflow */
	if (count < 0 || (size > 0 && (uint64_t)count > (uint64_t)PTRDIFF_MAX / size))
		return 0;
	*bytes = count > 0 && size > 0 ? (size_t)count * size : 1;
	return 1;
}

static hg_status no_memory(int64_t count, size_t size, const char *what, char *message)
{
	return hg__data_fail(message, HG_ERR_NOMEM,
	                     "out of memory: %s needs %" PRId64 " elements of %zu bytes", what, count,
	                     size);
}

hg_status hg__data_alloc(int64_t count, size_t size, const char *what, void **memory, char *message)
{
	size_t bytes = 0;
	*memory = bytes_of(count, size, &bytes) ? malloc(bytes) : NULL;
	return *memory ? HG_OK : no_memory(count, size, what, message);
}

hg_status hg__data_grow(void **memory, int64_t count, size_t size, const char *what, char *message)
{
	size_t bytes = 0;
	void *grown = bytes_of(count, size, &bytes) ? realloc(*memory, bytes) : NULL;
	if (!grown)
		return no_memory(count, size, what, message);
	*memory = grown;
	return HG_OK;
}

hg_status hg__data_copy_text(const char *text, char **copy, char *message)
{
	const size_t length = strlen(text);
	void *memory = NULL;
	HG__TRY(hg__data_alloc((int64_t)length + 1, 1, "a name", &memory, message));
	*copy = memcpy(memory, text, length + 1);
	return HG_OK;
}

hg_status hg__data_step(const hg_progress *progress, const char *what, int64_t done, int64_t total,
                        char *message)
{
	if (progress && progress->step && progress->step(progress->user, what, done, total))
		return hg__data_fail(message, HG_ERR_STATE, "stopped on request while %s", what);
	return HG_OK;
}
