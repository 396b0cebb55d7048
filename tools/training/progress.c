#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool.h"

/* Seconds between two updates: as fast as people read, and negligible beside a training step. */
#define INTERVAL 0.1

void progress_begin(struct progress *p, int64_t runs)
{
	*p = (struct progress){isatty(STDERR_FILENO), runs, 0, tool_seconds(), 0.0};
}

/* A line that is wider than the terminal would wrap and could not be overwritten. */
struct line {
	char text[256];
	size_t length, room;
};

static struct line line_begin(void)
{
	struct winsize size;
	struct line line = {.room = 80};
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		line.room = size.ws_col;
	/* the cursor takes the last column */
	line.room = line.room < sizeof line.text ? line.room - 1 : sizeof line.text - 1;
	return line;
}

HG_PRINTF(2, 3) static void line_add(struct line *line, const char *format, ...)
{
	char part[64];
	va_list args;
	va_start(args, format);
	const int length = vsnprintf(part, sizeof part, format, args);
	va_end(args);
	const size_t gap = line->length ? 2 : 0, size = length > 0 ? (size_t)length : 0;
	if (size >= sizeof part || line->length + gap + size > line->room)
		line->room = 0; /* nothing less important follows */
	else
		line->length +=
		    (size_t)snprintf(line->text + line->length, sizeof line->text - line->length, "%*s%s",
		                     (int)gap, "", part);
}

/* The most important parts come first; what does not fit is left out. */
void progress_show(struct progress *p, const hg_train_event *e)
{
	const double t = tool_seconds();
	if (!p->on || (t - p->shown < INTERVAL && e->epoch < e->epochs))
		return;
	p->shown = t;
	const double done = (double)p->run * e->epochs + e->epoch, all = (double)p->runs * e->epochs,
	             left = (t - p->begun) / done * (all - done);
	struct line line = line_begin();
	if (p->runs > 1)
		line_add(&line, "run %lld/%lld", (long long)p->run + 1, (long long)p->runs);
	line_add(&line, "epoch %d/%d", e->epoch, e->epochs);
	line_add(&line, left < 100 ? "ETA %.0f s" : "ETA %.0f min",
	         left < 100 ? left : ceil(left / 60));
	line_add(&line, "loss %.4f", e->loss);
	if (!isnan(e->val_accuracy))
		line_add(&line, "val %.1f %%", 100 * e->val_accuracy);
	else if (!isnan(e->val_metric))
		line_add(&line, "val %.4g", e->val_metric);
	if (!isnan(e->train_accuracy))
		line_add(&line, "train %.1f %%", 100 * e->train_accuracy);
	else if (!isnan(e->train_metric))
		line_add(&line, "train %.4g", e->train_metric);
	line_add(&line, "skipped %lld", (long long)e->step.skipped);
	line_add(&line, "scale %.8g", (double)e->step.loss_scale);
	fprintf(stderr, "\r%s\033[K", line.text);
	(void)fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
}
