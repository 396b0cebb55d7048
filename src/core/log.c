/* The messages of a context: the text of a failure, and lines for the log function. */
#include <stdarg.h>
#include <string.h>

#include "core/context.h"
#include "core/text.h"

hg_status hg__fail(hg_context *ctx, hg_status status, const char *format, ...)
{
	if (!ctx)
		return status;
	char text[HG__MESSAGE]; /* An argument may point into the old message. */
	va_list args;
	va_start(args, format);
	hg__vprint_line(text, sizeof text, format, args);
	va_end(args);
	memcpy(ctx->message, text, sizeof text);
	hg__log(ctx, HG_LOG_DEBUG, "%s: %s", hg_status_name(status), text);
	return status;
}

static int log_is_enabled(const hg_context *ctx, hg_log_level level)
{
	return ctx && ctx->log && level <= ctx->log_level;
}

static void send_log_line(hg_context *ctx, hg_log_level level, const char *format, va_list args)
    HG_PRINTF(3, 0);
static void send_log_line(hg_context *ctx, hg_log_level level, const char *format, va_list args)
{
	char text[2 * HG__MESSAGE];
	hg__vprint_line(text, sizeof text, format, args);
	ctx->log(ctx->log_user, level, text);
}

void hg__log(hg_context *ctx, hg_log_level level, const char *format, ...)
{
	if (!log_is_enabled(ctx, level))
		return;
	va_list args;
	va_start(args, format);
	send_log_line(ctx, level, format, args);
	va_end(args);
}

void hg__log_once(hg_context *ctx, unsigned key, hg_log_level level, const char *format, ...)
{
	const uint64_t bit = (uint64_t)1 << key;
	if (!log_is_enabled(ctx, level) || (ctx->logged & bit))
		return;
	ctx->logged |= bit;
	va_list args;
	va_start(args, format);
	send_log_line(ctx, level, format, args);
	va_end(args);
}
