/* How OpenMP threads share the machine with other programs. An epoch has dozens of parallel
 * regions, and all threads wait for the last one at the end of each, so a delay of one thread
 * delays all of them. */
#define _GNU_SOURCE /* syscall */
#include "threads.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* OpenMP threads wait for the next parallel region by spinning. That takes time from other
 * programs, and even the core that the awaited thread needs. It is better to spin for about as long
 * as going to sleep and waking up take (300 spins are 5 to 15 us) and then to sleep. libgomp reads
 * how to wait when the program is loaded, before main, so the program sets the variables and
 * executes itself once more. LLVM's OpenMP knows only the policy. If this fails, the tool still
 * works. */
static void set_passive_waiting(char **argv)
{
	if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
		return;
	if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "300", 1) == 0)
		(void)execv("/proc/self/exe", argv);
}

/* A sleeping thread must also wake up in time. A thread that requests its share of a core in
 * shorter slices than others (1.4 ms on 2 cores, more on more cores) gets no larger share, but gets
 * it sooner. Linux accepts a slice from 6.12 on and ignores it before. GCN on Cora, 2 threads,
 * beside 2 busy programs, medians of 10 alternating runs: 4.1 ms per epoch with slices of 1 ms and
 * 6.5 ms without (alone at least 2.1 ms). Threads that are created later inherit the slice. */
#if defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
static void set_short_slices(void)
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
static void set_short_slices(void)
{
}
#endif

void tool_threads(char **argv)
{
	set_passive_waiting(argv);
	set_short_slices();
}
