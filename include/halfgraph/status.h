/** @file
 * The outcome of a call. 0 is success, below 0 an error, above 0 information. The text here is
 * general; the precise message (which call, which argument, found, expected) is hg_context_error(),
 * or the `message` argument of data.h.
 *
 * On an error a function changes nothing, unless its comment says otherwise, and the pointer for
 * its result is set to NULL. HG_ERR_INTERNAL may come from any call and is a bug in HalfGraph. */
#ifndef HALFGRAPH_STATUS_H
#define HALFGRAPH_STATUS_H

#include "halfgraph/export.h"

HG_EXTERN_C_BEGIN

/** Every outcome: name, value, text. */
#define HG_STATUS_LIST(X)                                                                   \
	X(HG_OK, 0, "success")                                                                  \
	X(HG_ERR_ARG, -1, "an argument is invalid")                                             \
	X(HG_ERR_SHAPE, -2, "shapes do not fit together")                                       \
	X(HG_ERR_DTYPE, -3, "data types do not fit together")                                   \
	X(HG_ERR_RANGE, -4, "a value does not fit its type, or overflow cannot be ruled out")   \
	X(HG_ERR_NOMEM, -5, "out of memory")                                                    \
	X(HG_ERR_DEVICE, -6, "the device reported an error")                                    \
	X(HG_ERR_UNSUPPORTED, -7, "not supported by this build or device")                      \
	X(HG_ERR_STATE, -8, "called in the wrong state or order")                               \
	X(HG_ERR_IO, -9, "a file could not be read or written")                                 \
	X(HG_ERR_FORMAT, -10, "file contents are not what the format asks for")                 \
	X(HG_ERR_INTERNAL, -11, "an internal invariant does not hold: a bug in HalfGraph")      \
	X(HG_INFO_SKIPPED, 1, "the optimiser step was skipped")                                 \
	X(HG_INFO_STOPPED, 2, "stopped early on request")                                       \
	X(HG_INFO_DIFFERS, 3, "done, but settings differ: the run will not have the same bits") \
	X(HG_INFO_SUSPECT, 4, "done, and something in the input looks like a mistake")

/** The outcome of a call; HG_STATUS_LIST has the values. */
typedef enum hg_status {
/** One enumerator of HG_STATUS_LIST; defined here only. */
#define HG_STATUS_ENUM(name, value, text) name = value,
	HG_STATUS_LIST(HG_STATUS_ENUM)
#undef HG_STATUS_ENUM
} hg_status;

/** The name of a status. Safe from any thread.
 * @param status  a status.
 * @return "HG_ERR_SHAPE", for example; "HG_UNKNOWN" for a value not in the list. Never NULL. */
HG_API const char *hg_status_name(hg_status status);

/** The text of a status. Safe from any thread.
 * @param status  a status.
 * @return the text of the list; "unknown status" for a value not in the list. Never NULL. */
HG_API const char *hg_status_text(hg_status status);

HG_EXTERN_C_END
#endif
