/* Threads beside other programs. An epoch has dozens of parallel regions, and at the end of each
 * all threads wait for the
 * last: what holds up one of them for a moment holds up all. */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Threads of OpenMP wait at full speed for the next parallel region, and so take from other work,
 * and from the very
 * thread they wait for, the core that it needs. Better is to look for about as long as falling
 * asleep and waking up take
 * (300 looks are 5 to 15 us), and then to sleep. libgomp reads how to wait when the program is
 * loaded, before main, so the
 * program is loaded once more, with that said; LLVM's OpenMP knows the policy alone. Where this
 * fails the tool works all
 * the same. */
static void wait_asleep(char **argv)
{
	if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
		return;
	if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "300", 1) == 0)
		(void)execv("/proc/self/exe", argv);
}

/* What sleeps must also wake up in time. A thread that asks for its share of a core in shorter
 * slices than others have
 * (1.4 ms on 2 cores, more on more) gets no more of it, but sooner: Linux takes a slice from 6.12
 * on and takes no notice
 * before. GCN on Cora, 2 threads
 * beside 2 busy programs, 10 runs of each in turn: 4.1 ms an epoch with slices of 1 ms and 6.5
 * without, the medians (alone
 * 2.1 at the least). Threads that are made later have it from this one. */
#if defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
static void wake_soon(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attributes = {.size = sizeof attributes};
	const uint32_t usual = 0; /* SCHED_OTHER */
	if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
	    attributes.policy != usual)
		return;
	attributes.runtime = 1000000;
	(void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}
#else
static void wake_soon(void)
{
}
#endif

void tool_threads(char **argv)
{
	wait_asleep(argv);
	wake_soon();
}
