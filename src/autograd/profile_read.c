/* What was timed, for programs and for the viewers of traces. */
#include "autograd/profile.h"

#include <stdio.h>
#include <string.h>

#include "core/printable.h"
#include "core/text.h"
#include "core/versioned.h"

void hg_profile_free(hg_profile *profile)
{
	if (!profile)
		return;
	hg_context *ctx = profile->ctx;
	hg__host_free(ctx, profile->line, (size_t)profile->info.lines * sizeof *profile->line);
	hg__host_free(ctx, profile, sizeof *profile);
}

const char *hg_profile_phase_name(hg_profile_phase phase)
{
	static const char *const name[] = {"forward", "backward", "again"};
	return phase >= HG_PHASE_FORWARD && phase <= HG_PHASE_AGAIN ? name[phase] : NULL;
}

hg_status hg_profile_get_info(const hg_profile *profile, hg_profile_info *info)
{
	if (!profile)
		return HG_ERR_ARG;
	if (!info)
		return hg__fail(profile->ctx, HG_ERR_ARG, "profile_get_info: info is NULL");
	return hg__struct_write(info, &profile->info, sizeof profile->info)
	           ? HG_OK
	           : hg__fail(profile->ctx, HG_ERR_ARG,
	                      "profile_get_info: info->size is not set: start from "
	                      "HG_PROFILE_INFO_INIT");
}

hg_status hg_profile_get_line(const hg_profile *profile, int64_t index, hg_profile_line *line)
{
	if (!profile)
		return HG_ERR_ARG;
	if (!line)
		return hg__fail(profile->ctx, HG_ERR_ARG, "profile_get_line: line is NULL");
	if (index < 0 || index >= profile->info.lines)
		return hg__fail(profile->ctx, HG_ERR_RANGE,
		                "profile_get_line: index is %lld, expected 0 to %lld", (long long)index,
		                (long long)profile->info.lines - 1);
	return hg__struct_write(line, &profile->line[index].line, sizeof *line)
	           ? HG_OK
	           : hg__fail(profile->ctx, HG_ERR_ARG,
	                      "profile_get_line: line->size is not set: start from "
	                      "HG_PROFILE_LINE_INIT");
}

/* ---- the trace ---- */

enum { TEXT = 4 * HG_NARROWING_NAME + 8, EVENT = 8 * TEXT };

/* A text between the quotes of a JSON string. Control characters and bytes that are not UTF-8 are
 * escaped visibly first, so what is left to escape is the quote and the backslash. */
static const char *quoted(const char *text, char buffer[2 * TEXT])
{
	char printable[TEXT];
	size_t end = 0;
	(void)hg__printable(printable, sizeof printable, text);
	for (const char *c = printable; *c; c++) {
		if (*c == '"' || *c == '\\')
			buffer[end++] = '\\';
		buffer[end++] = *c;
	}
	buffer[end] = 0;
	return buffer;
}

static void write_line(const hg_profile_line *line, hg_write_fn write, void *user)
{
	char event[EVENT], name[2 * TEXT], op[2 * TEXT];
	(void)hg__print(event, sizeof event,
	                ",{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,"
	                "\"dur\":%.3f,\"args\":{\"op\":\"%s\",\"node\":%d,\"rows\":%lld,\"cols\":%lld,"
	                "\"type\":\"%s\",\"bytes_read\":%.0f,\"bytes_written\":%.0f,"
	                "\"of_bandwidth\":%.4f}}",
	                quoted(line->name, name), hg_profile_phase_name(line->phase), line->begin_us,
	                line->us, quoted(line->op, op), (int)line->node, (long long)line->rows,
	                (long long)line->cols, hg_dtype_name(line->dtype), line->bytes_read,
	                line->bytes_written, line->roofline);
	write(user, event);
}

/* Lines of one layer that follow each other in one pass. Returns the line after them. */
static int64_t write_layer(const hg_profile *p, int64_t first, hg_write_fn write, void *user)
{
	char event[EVENT], name[2 * TEXT];
	const hg_profile_line *begin = &p->line[first].line;
	const int64_t f = p->info.forward_lines;
	int64_t last = first;
	while (last + 1 < p->info.lines && (last + 1 < f) == (first < f) &&
	       strcmp(p->line[last + 1].layer, begin->layer) == 0)
		last++;
	const hg_profile_line *end = &p->line[last].line;
	(void)hg__print(event, sizeof event,
	                ",{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":2,\"ts\":%.3f,"
	                "\"dur\":%.3f,\"args\":{\"lines\":%lld}}",
	                quoted(begin->layer, name), first < f ? "forward" : "backward", begin->begin_us,
	                end->begin_us + end->us - begin->begin_us, (long long)(last - first + 1));
	if (*begin->layer)
		write(user, event);
	return last + 1;
}

hg_status hg_profile_trace(const hg_profile *profile, hg_write_fn write, void *user)
{
	char event[EVENT], device[2 * TEXT];
	if (!profile)
		return HG_ERR_ARG;
	if (!write)
		return hg__fail(profile->ctx, HG_ERR_ARG, "profile_trace: write is NULL");
	write(user, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	(void)hg__print(event, sizeof event,
	                "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"%s\"}}",
	                quoted(profile->ctx->device_name, device));
	write(user, event);
	write(user, ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":"
	            "\"ops\"}}");
	write(user, ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":"
	            "\"layers\"}}");
	for (int64_t i = 0; i < profile->info.lines; i++)
		write_line(&profile->line[i].line, write, user);
	for (int64_t i = 0; i < profile->info.lines;)
		i = write_layer(profile, i, write, user);
	write(user, "]}");
	return HG_OK;
}
