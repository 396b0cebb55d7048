/* Detects forks, so that OpenMP does not hang and a GPU's context fails with a message in the
 * child. */
#define _DEFAULT_SOURCE /* getpid */
#include "core/process.h"

#include <unistd.h>

#include "core/rounding.h"

/* The process in which this thread began its first team; 0 if it has begun none. It is thread-local
 * and not part of a context because it must live as long as libgomp's pool, which also belongs to
 * the thread. A context made in the child would know nothing of the parent's pool. */
static _Thread_local long team_process;
/* Number of threads of this thread's pool that are known to round to nearest. It lives as long as
 * the pool, for the same reason. */
static _Thread_local int team_rounds;

static int ready_team(int requested)
{
	if (team_rounds < requested)
		hg__rounding_team(requested);
	team_rounds = team_rounds < requested ? requested : team_rounds;
	return requested;
}

long hg__process(void)
{
	return (long)getpid();
}

int hg__threads(hg_context *ctx, int requested)
{
	if (requested < 2)
		return 1;
	const long process = hg__process();
	if (!team_process)
		team_process = process;
	if (team_process == process)
		return ready_team(requested);
	hg__log_once(ctx, HG__LOG_FORKED, HG_LOG_WARN,
	             "context: process %ld is a fork of %ld, where this thread has used OpenMP: this "
	             "thread computes with 1 thread instead of %d; a thread that is created after the "
	             "fork can use all of them",
	             process, team_process, requested);
	return 1;
}

hg_status hg__same_process(hg_context *ctx)
{
	const long process = hg__process();
	if (ctx->process == process)
		return HG_OK;
	return hg__fail(
	    ctx, HG_ERR_STATE,
	    "context: process %ld is a fork of %ld, which made this context on %s, and a "
	    "GPU does not survive a fork: create contexts only after the fork, or start the "
	    "child with exec",
	    process, ctx->process, ctx->device_name);
}
