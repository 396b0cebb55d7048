#ifndef HG_AUTOGRAD_TAPE_H
#define HG_AUTOGRAD_TAPE_H

#include "autograd/observe.h"
#include "autograd/op.h"
#include "autograd/param.h"
#include "autograd/plan.h"
#include "autograd/program.h"
#include "autograd/recording.h"

HG_EXTERN_C_BEGIN

/* The inside of a tape: four concepts, each with a header of its own.
 *
 *     recording.h    what the user recorded, as values and entries. tape.c adds the leaves;
 *                    record.c, types.c and promotion.c record op nodes; fuse.c joins chains of
 *                    nodes into one
 *     plan.h         what of the recording runs, when, and where in the arena each buffer lies:
 *                    plan.c and arena.c
 *     program.h      calls that run again and again, and their memory: tasks.c and graphs.c make
 *                    them from the recording and the plan, operands.c says where operands lie,
 *                    and run.c runs them
 *     observe.h      who inspects the tensors of a step, and which buffers stay for that:
 *                    observe.c and the files named like it
 *
 * A function takes the narrowest of these that it needs. life.c makes and frees a tape. compile.c
 * calls, in this order: fuse.c, live.c, regions.c, plan.c, gradient_range.c, place.c with arena.c,
 * and tasks.c. What needs the whole tape is declared here: promote.c decides what happens to a node
 * that overflowed; memory.c adds up the device memory of a run; keep.c copies a tape; print.c and
 * explain.c show it. */

enum hg__stage { HG__RECORDING = 0, HG__COMPILED = 1, HG__FORWARDED = 2 };

struct hg_tape {
	hg_context *ctx;
	hg_params *params;
	hg_mode mode;
	enum hg__stage stage;
	struct hg__recording recording;
	struct hg__tape_plan plan;
	struct hg__program program;
	struct hg__observing observing;
};

/* life.c: whether a GAT should record scores, softmax, dropout and sum as separate ops in place of
 * hg_attention: if the context keeps ops separate, or if the policy sums in f16, which attention
 * does not offer. */
int hg__tape_separates(const hg_tape *tape);

/* compile.c: sets node->counted of a loss. */
HG_NODISCARD hg_status hg__tape_count(hg_tape *tape, struct hg__node *node);

/* promote.c: on every tape that is recorded from now on, a node that overflowed, with the nodes
 * fused into it, is stored x 2^-*shift. If no shift is possible (*shift 0) it runs in f32. *news 0:
 * that was decided before. hg__tape_first_bad runs a forward pass and finds the first node that
 * makes a non-finite number; -1: there is none. */
HG_NODISCARD hg_status hg__tape_promote(hg_tape *tape, int32_t entry, int *shift, int *news);
HG_NODISCARD hg_status hg__tape_first_bad(hg_tape *tape, int32_t *entry);

/* memory.c: the device memory that a run of the tape takes, as hg_plan_info lists it. */
void hg__tape_memory(const hg_tape *tape, hg_plan_info *info);
/* memory.c: bytes of the arena; 0 where another tape owns it. */
size_t hg__tape_own_bytes(const hg_tape *tape);
/* memory.c: bytes that compiling still has to allocate: the arena, the workspace and what libraries
 * will take. */
size_t hg__tape_needs(const hg_tape *tape);
/* memory.c: HG_ERR_NOMEM if there is no room for hg__tape_needs and `graphs` bytes of graph
 * caches. */
HG_NODISCARD hg_status hg__tape_room(hg_tape *tape, size_t graphs);
/* memory.c: HG_ERR_NOMEM; the message names the largest tensors. free_bytes SIZE_MAX: unknown. */
hg_status hg__tape_no_memory(hg_tape *tape, size_t needed, size_t free_bytes);

/* keep.c: a compiled copy of the tape in which every value and every gradient has memory of its
 * own, so that all of them can be read after a run. `from` is compiled and outlives the copy, which
 * uses its names and scopes. */
HG_NODISCARD hg_status hg__tape_copy_kept(const hg_tape *from, hg_tape **copy);

/* explain.c: the verdict on the gradient of a value. */
hg_verdict hg__gradient_verdict(const hg_tape *tape, int32_t value);
/* explain.c: bound on |gradient|, or on the largest half on the way to it, at a loss scale;
 * INFINITY: it may overflow. */
double hg__bound_of_gradient(const hg_tape *tape, int32_t value, double scale);
/* print.c */
const char *hg__accumulate_name(hg_accumulate accumulate);

HG_EXTERN_C_END
#endif
