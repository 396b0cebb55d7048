/* Where the time of a step goes: for the page, and as a trace for Perfetto. */
#define _POSIX_C_SOURCE 200809L
#include "timing.h"

#include <stdlib.h>
#include <string.h>

#include "watch.h"

/* The fastest of some steps is reported. They take about this long together, and no more than the
 * user would notice at the end of a training. */
#define BUDGET_MS 300.0
#define RUNS_MOST 10

static int runs_of(double epoch_ms)
{
	const double runs = epoch_ms > 0 ? BUDGET_MS / epoch_ms : RUNS_MOST;
	return runs < 1 ? 1 : runs > RUNS_MOST ? RUNS_MOST : (int)runs;
}

static void keep_line(const hg_profile_line *from, struct timed_line *line)
{
	*line = (struct timed_line){.phase = from->phase,
	                            .us = from->us,
	                            .bytes = from->bytes_read + from->bytes_written,
	                            .written = from->bytes_written,
	                            .roofline = from->roofline,
	                            .rows = from->rows,
	                            .cols = from->cols,
	                            .dtype = from->dtype};
	(void)snprintf(line->name, sizeof line->name, "%s", from->name);
	(void)snprintf(line->op, sizeof line->op, "%s", from->op);
	(void)snprintf(line->layer, sizeof line->layer, "%s", from->layer);
}

static hg_status keep_lines(const hg_profile *profile, struct timing *t)
{
	hg_profile_info info = HG_PROFILE_INFO_INIT;
	hg_profile_line line = HG_PROFILE_LINE_INIT;
	hg_status status = hg_profile_get_info(profile, &info);
	t->line = calloc((size_t)info.lines + 1, sizeof *t->line);
	if (!t->line)
		return HG_ERR_NOMEM;
	for (int64_t k = 0; k < info.lines && status >= 0; k++) {
		status = hg_profile_get_line(profile, k, &line);
		keep_line(&line, &t->line[k]);
	}
	t->lines = info.lines;
	t->forward_us = info.forward_us;
	t->backward_us = info.backward_us;
	t->bandwidth = info.bandwidth;
	t->known = status >= 0;
	return status;
}

/* ---- the trace ---- */

static void print_line(void *user, const char *line)
{
	(void)fprintf(user, "%s\n", line);
}

/* The trace is built in memory, so that the file appears complete or not at all. */
static hg_status trace_write(const char *path, const hg_profile *profile, char *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	hg_status status = out ? hg_profile_trace(profile, print_line, out) : HG_ERR_NOMEM;
	const int incomplete = out && ferror(out);
	if (out && (fclose(out) || incomplete))
		status = HG_ERR_NOMEM;
	if (status >= 0) {
		watch_hold();
		status = hg_file_write(path, text, size, message);
		watch_release();
	}
	free(text);
	return status;
}

hg_status timing_take(const struct options *o, hg_train *train, double epoch_ms,
                      struct timing *timing, char *message)
{
	hg_profile_config config = HG_PROFILE_CONFIG_INIT;
	hg_profile *profile = NULL;
	*message = 0;
	if (!o->html && !o->trace)
		return HG_OK;
	config.runs = runs_of(epoch_ms);
	hg_status status = hg_train_profile(train, &config, &profile);
	if (status < 0)
		(void)snprintf(message, HG_DATA_MESSAGE, "%s",
		               hg_context_error(hg_params_context(hg_train_params(train))));
	if (status >= 0 && o->html)
		status = keep_lines(profile, timing);
	if (status >= 0 && o->trace)
		status = trace_write(o->trace, profile, message);
	if (status < 0 && !*message)
		(void)snprintf(message, HG_DATA_MESSAGE, "%s", hg_status_text(status));
	hg_profile_free(profile);
	return status;
}

void timing_free(struct timing *timing)
{
	free(timing->line);
	*timing = (struct timing){0};
}
