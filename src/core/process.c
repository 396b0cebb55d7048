#define _DEFAULT_SOURCE /* getpid */
#include "core/process.h"

#include <unistd.h>

#include "core/rounding.h"

/* The process in which this thread has begun its first team; 0: it has begun none. It must live as
 * long as libgomp's
 * pool, which is the thread's as well, and a context made in the child knows nothing of those of
 * the parent. */
static _Thread_local long team_process;
/* Threads of its pool that are known to round to nearest; of a pool's as well. */
static _Thread_local int team_rounds;

static int ready_team(int wanted)
{
	if (team_rounds < wanted)
		hg__rounding_team(wanted);
	team_rounds = team_rounds < wanted ? wanted : team_rounds;
	return wanted;
}

long hg__process(void)
{
	return (long)getpid();
}

int hg__threads(hg_context *ctx, int wanted)
{
	if (wanted < 2)
		return 1;
	const long process = hg__process();
	if (!team_process)
		team_process = process;
	if (team_process == process)
		return ready_team(wanted);
	hg__log_once(ctx, HG__LOG_FORKED, HG_LOG_WARN,
	             "context: process %ld is a fork of %ld, where this thread has used OpenMP: it "
	             "computes in 1 thread, not %d; "
	             "a thread that is made behind the fork has all of them",
	             process, team_process, wanted);
	return 1;
}

hg_status hg__same_process(hg_context *ctx)
{
	const long process = hg__process();
	if (ctx->process == process)
		return HG_OK;
	return hg__fail(ctx, HG_ERR_STATE,
	                "context: process %ld is a fork of %ld, which made this context on %s, and a "
	                "GPU does not survive a fork: "
	                "make contexts behind the fork alone, or start the child with exec",
	                process, ctx->process, ctx->device_name);
}
