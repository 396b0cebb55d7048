#ifndef HG_AUTOGRAD_PROFILE_H
#define HG_AUTOGRAD_PROFILE_H

#include "autograd/tape.h"
#include "halfgraph/profile.h"

HG_EXTERN_C_BEGIN

/* A line with its texts. Names that are longer than their room are cut. */
struct hg__profile_line {
	hg_profile_line line;
	char name[HG_NARROWING_NAME], op[HG_NARROWING_NAME], layer[64];
};

struct hg_profile {
	hg_context *ctx;
	hg_profile_info info;
	struct hg__profile_line *line; /* [info.lines] */
};

/* profile_bytes.c: sets bytes_read and bytes_written of a task: each matrix counts once, also where
 * two operands are the same. */
void hg__profile_bytes(const hg_tape *tape, const struct hg__task *task, int backward,
                       hg_profile_line *line);

/* profile_copy.c: two pieces of device memory, between which a kernel of the library copies. */
struct hg__profile_copy {
	struct hg__mat from, to;
	struct hg__buffer memory;
};
/* Allocates both and measures how many bytes a second a copy reads and writes. */
HG_NODISCARD hg_status hg__profile_copy_open(hg_context *ctx, struct hg__profile_copy *copy,
                                             double *bandwidth);
/* Queues copies that keep the device busy for about this many seconds. */
HG_NODISCARD hg_status hg__profile_copy_queue(hg_context *ctx, const struct hg__profile_copy *copy,
                                              double seconds, double bandwidth);

HG_EXTERN_C_END
#endif
