#ifndef HG_DATA_H5_CHECKPOINT_H
#define HG_DATA_H5_CHECKPOINT_H

#include <stddef.h>

#include "h5/h5.h"
#include "halfgraph/state.h"

/* Names and tables that the reader and the writer of a checkpoint share (FORMAT.md). */
#define HG__CHECKPOINT_FORMAT "halfgraph-checkpoint"

/* A promoted node as text: 20 digits, two blanks, ":14", op and layer, each with its terminator. */
#define HG__PROMOTION_SIZE (26 + sizeof((hg_promotion){0}.op) + sizeof((hg_promotion){0}.layer))

/* The groups of the tensors: the master weights, then the moments. */
static const struct {
	const char *name, *where;
} hg__checkpoint_part[1 + HG_STATE_MOMENTS] = {
    {"params", "/params"}, {"moment1", "/moment1"}, {"moment2", "/moment2"}};

/* The integer attributes of /loss_scale; "scale" is a float and is handled separately. */
static const struct {
	const char *name;
	size_t offset, size;
} hg__checkpoint_scale[] = {
    {"growth_tracker", offsetof(hg_loss_scale, growth_tracker), sizeof(int32_t)},
    {"tolerance", offsetof(hg_loss_scale, tolerance), sizeof(int32_t)},
    {"steps", offsetof(hg_loss_scale, steps), sizeof(int64_t)},
    {"applied", offsetof(hg_loss_scale, applied), sizeof(int64_t)},
    {"skipped", offsetof(hg_loss_scale, skipped), sizeof(int64_t)}};
#define HG__CHECKPOINT_SCALES (sizeof hg__checkpoint_scale / sizeof hg__checkpoint_scale[0])

/* checkpoint_groups.c: the groups of parameters. Files of version 1.0 lack them, and so do models
 * to predict with. The group of a tensor is an attribute of its master, absent where it is 0. */
HG_NODISCARD hg_status hg__checkpoint_write_groups(const struct h5 *h5, const hg_state *state);
HG_NODISCARD hg_status hg__checkpoint_write_group_of(const struct h5 *h5, hid_t array,
                                                     const hg_state_tensor *tensor);
/* Before the tensors are read. */
HG_NODISCARD hg_status hg__checkpoint_read_groups(const struct h5 *h5, hg_state *state);
/* where: what messages call the array. */
HG_NODISCARD hg_status hg__checkpoint_read_group_of(const struct h5 *h5, hid_t array,
                                                    const char *where, int groups,
                                                    hg_state_tensor *tensor);

/* checkpoint_past.c: the best epoch, the history and the plateau, which files of version 1.0
 * lack. */
HG_NODISCARD hg_status hg__checkpoint_write_past(const struct h5 *h5, const hg_state *state);
/* The tensors have been read. */
HG_NODISCARD hg_status hg__checkpoint_read_past(const struct h5 *h5, hg_state *state);

/* checkpoint_read.c: reads a vector, as H5_F32 or H5_F64, into fresh memory. */
HG_NODISCARD hg_status hg__checkpoint_read_vector(const struct h5 *h5, hid_t group,
                                                  const char *name, const char *where,
                                                  enum h5_type type, void **values, int64_t *count);

#endif
