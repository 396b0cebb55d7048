#define _POSIX_C_SOURCE 200809L
#include "tool.h"

#include "commandline.h"
#include "threads.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void tool_begin(char **argv)
{
	watch_block(); /* also across the second execution */
	tool_threads(argv);
	watch_install();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		/* open returns the lowest free descriptor, which is this one; the wrong direction makes
		 * every use of it fail */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGXFSZ, &ignore, NULL);
}

void tool_outlive_reader(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

int tool_finish(const char *tool, int code)
{
	const int failed_before = ferror(stdout); /* errno may since have changed */
	errno = 0;
	if (!fclose(stdout) && !failed_before)
		return code;
	fprintf(stderr, "%s: cannot write to standard output%s%s\n", tool, errno ? ": " : "",
	        errno ? strerror(errno) : "");
	return code ? code : TOOL_FAILED;
}

int tool_codes_list(const struct tool_codes *codes, char failed[TOOL_CODE_TEXT],
                    struct tool_row *row)
{
	int count = 0;
	(void)snprintf(failed, TOOL_CODE_TEXT,
	               "%sthe library or the machine failed, or an output could not be written to its "
	               "end (disk full)",
	               codes->failed ? codes->failed : "");
	row[count++] = (struct tool_row){"0", codes->done};
	row[count++] = (struct tool_row){"1", failed};
	row[count++] = (struct tool_row){"2", "bad usage, bad input, or an output that cannot be "
	                                      "written, found before the work begins"};
	if (codes->bad_run)
		row[count++] = (struct tool_row){"3", codes->bad_run};
	row[count++] = (struct tool_row){"130", codes->interrupted};
	return count;
}

void tool_codes_print(FILE *out, const struct tool_codes *codes)
{
	enum { WIDTH = 4 };
	struct tool_row row[TOOL_CODES];
	char failed[TOOL_CODE_TEXT];
	const int count = tool_codes_list(codes, failed, row);
	(void)fputs("\nexit code:\n", out);
	for (int k = 0; k < count; k++)
		tool_row_print(out, WIDTH, row[k].name, row[k].text);
}

int tool_code_of(hg_status status)
{
	return status == HG_ERR_INTERNAL || status == HG_ERR_NOMEM || status == HG_ERR_DEVICE ||
	               status == HG_ERR_STATE
	           ? TOOL_FAILED
	           : TOOL_BAD_INPUT;
}

double tool_seconds(void)
{
	struct timespec t = {0, 0};
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
