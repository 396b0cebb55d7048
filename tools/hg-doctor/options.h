#ifndef HG_DOCTOR_OPTIONS_H
#define HG_DOCTOR_OPTIONS_H

#include "about.h"
#include "tool.h"
#include "training.h"

/* The exit codes of hg-doctor are those of all tools: a finding is not a failure of the tool. */
enum doctor_code {
	DOCTOR_HEALTHY = TOOL_DONE,
	DOCTOR_FAILED = TOOL_FAILED,
	DOCTOR_BAD_INPUT = TOOL_BAD_INPUT,
	DOCTOR_FINDINGS = TOOL_BAD_RUN,
	DOCTOR_INTERRUPTED = TOOL_INTERRUPTED
};

struct options {
	struct training training;
	const char *checkpoint, *json, *html;
	int no_try, help, version; /* no_try: 1 stands for "off" in "on|off" */
};

/* Returns 0, or -1 with one line that names the option in `message`. */
int options_parse(struct options *o, int argc, char **argv, char *message, size_t size);
/* What --help and the man page say. */
struct tool_about options_about(void);

#endif
