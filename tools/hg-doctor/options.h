#ifndef HG_DOCTOR_OPTIONS_H
#define HG_DOCTOR_OPTIONS_H

#include "training.h"

/* Exit codes of hg-doctor: a finding is no failure of the tool. */
enum doctor_code { DOCTOR_HEALTHY = 0, DOCTOR_FAILED = 1, DOCTOR_FINDINGS = 2, DOCTOR_INTERRUPTED = 130 };

struct options {
	struct training training;
	const char *checkpoint, *json, *html;
	int64_t steps;
	int no_try, help, version; /* no_try: 1 of "on|off" */
};

/* 0, or -1 after writing one line that names the option into message. */
int options_parse(struct options *o, int argc, char **argv, char *message, size_t size);
void options_help(FILE *out);

#endif
