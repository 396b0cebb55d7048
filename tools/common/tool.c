#define _POSIX_C_SOURCE 200809L
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Threads of OpenMP wait at full speed for the next parallel region, and so take from other work, and from the very
 * thread they wait for, the core that it needs. Better is to look for about as long as falling asleep and waking up take
 * (300 looks are 5 to 15 us), and then to sleep. libgomp reads how to wait when the program is loaded, before main, so the
 * program is loaded once more, with that said; LLVM's OpenMP knows the policy alone. Where this fails the tool works all
 * the same. */
static void wait_asleep(char **argv)
{
	if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || getenv("KMP_BLOCKTIME"))
		return;
	if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0 && setenv("GOMP_SPINCOUNT", "300", 1) == 0)
		(void)execv("/proc/self/exe", argv);
}

void tool_begin(char **argv)
{
	wait_asleep(argv);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) /* open gives the lowest free number, which is this one; the wrong direction makes its use fail */
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGXFSZ, &ignore, NULL);
}

int tool_finish(const char *tool, int code)
{
	const int failed_before = ferror(stdout); /* by then errno belongs to something else */
	errno = 0;
	if (!fclose(stdout) && !failed_before)
		return code;
	fprintf(stderr, "%s: cannot write to standard output%s%s\n", tool, errno ? ": " : "", errno ? strerror(errno) : "");
	return code ? code : TOOL_FAILED;
}

int tool_code_of(hg_status status)
{
	return status == HG_ERR_INTERNAL || status == HG_ERR_NOMEM || status == HG_ERR_DEVICE || status == HG_ERR_STATE ? TOOL_FAILED : TOOL_BAD_INPUT;
}

double tool_seconds(void)
{
	struct timespec t = {0, 0};
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
