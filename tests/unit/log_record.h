#ifndef HG_TESTS_LOG_RECORD_H
#define HG_TESTS_LOG_RECORD_H

#include <stdio.h>
#include <string.h>

#include "harness.h"

/* A log function that records what a context logs. */
enum { LOG_RECORD_LINES = 16 };
struct log_record {
	int lines, warnings; /* all lines; those of level HG_LOG_WARN */
	char line[LOG_RECORD_LINES][256];
};

static inline void log_record_line(void *user, hg_log_level level, const char *message)
{
	struct log_record *log = user;
	if (log->lines < LOG_RECORD_LINES)
		(void)snprintf(log->line[log->lines], sizeof log->line[0], "%s", message);
	log->lines++;
	log->warnings += level == HG_LOG_WARN;
}

/* The first recorded line that contains `part`; NULL if there is none. */
static inline const char *log_record_find(const struct log_record *log, const char *part)
{
	for (int i = 0; i < log->lines && i < LOG_RECORD_LINES; i++)
		if (strstr(log->line[i], part))
			return log->line[i];
	return NULL;
}

/* A context of the test run that logs into an emptied record. */
static inline hg_context *log_record_context(struct log_record *log, hg_log_level level)
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	*log = (struct log_record){0};
	config.log = log_record_line;
	config.log_user = log;
	config.log_level = level;
	return test_context_with(config);
}

#endif
