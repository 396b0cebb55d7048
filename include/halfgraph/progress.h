/** @file
 * How long work reports its progress and is asked to stop. */
#ifndef HALFGRAPH_PROGRESS_H
#define HALFGRAPH_PROGRESS_H

#include <stdint.h>

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/** A watcher of long work, called now and then from the thread that made the call. */
typedef struct hg_progress {
	/** what: what is being done, valid during the call. done of total units are finished; total 0:
	 * the total is unknown. Returns 0 to go on; not 0 to stop: the call then fails with
	 * HG_ERR_STATE and cleans up as after any failure. */
	int (*step)(void *user, const char *what, int64_t done, int64_t total);
	void *user; /**< passed to step */
} hg_progress;

HG_EXTERN_C_END
#endif
