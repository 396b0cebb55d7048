#ifndef HALFGRAPH_PROGRESS_H
#define HALFGRAPH_PROGRESS_H

#include <stdint.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/* Told now and then during long work: what is being done, and how far (`done` of `total`; total 0:
 * unknown). A result other than 0 asks to stop: the call then fails with HG_ERR_STATE and cleans up
 * like any other failure. */
typedef struct hg_progress {
	int (*step)(void *user, const char *what, int64_t done, int64_t total);
	void *user;
} hg_progress;

HG_EXTERN_C_END
#endif
