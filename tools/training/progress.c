#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tool.h"

/* Ten times a second: as fast as an eye reads, and nothing beside a training step. */
#define INTERVAL 0.1

void progress_begin(struct progress *p, int64_t runs)
{
	*p = (struct progress){isatty(STDERR_FILENO), runs, 0, tool_seconds(), 0.0};
}

static void print_left(double seconds)
{
	if (seconds < 100)
		fprintf(stderr, "ETA %.0f s", seconds);
	else
		fprintf(stderr, "ETA %.0f min", ceil(seconds / 60));
}

void progress_show(struct progress *p, const hg_train_event *e)
{
	const double t = tool_seconds();
	if (!p->on || (t - p->shown < INTERVAL && e->epoch < e->epochs))
		return;
	p->shown = t;
	const double done = (double)p->run * e->epochs + e->epoch, all = (double)p->runs * e->epochs;
	fputc('\r', stderr);
	if (p->runs > 1)
		fprintf(stderr, "run %lld/%lld  ", (long long)p->run + 1, (long long)p->runs);
	fprintf(stderr, "epoch %d/%d  loss %.4f", e->epoch, e->epochs, e->loss);
	if (!isnan(e->train_accuracy))
		fprintf(stderr, "  train %.1f %%", 100 * e->train_accuracy);
	if (!isnan(e->val_accuracy))
		fprintf(stderr, "  val %.1f %%", 100 * e->val_accuracy);
	fprintf(stderr, "  scale %.8g  skipped %lld  ", (double)e->step.loss_scale, (long long)e->step.skipped);
	print_left((t - p->begun) / done * (all - done));
	fputs("\033[K", stderr);
	(void)fflush(stderr);
}

void progress_end(struct progress *p)
{
	if (p->on)
		fputs("\r\033[K", stderr);
}
