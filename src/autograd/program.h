#ifndef HG_AUTOGRAD_PROGRAM_H
#define HG_AUTOGRAD_PROGRAM_H

#include "autograd/plan.h"
#include "autograd/recording.h"
#include "core/buffer.h"

HG_EXTERN_C_BEGIN

/* The program of a compiled tape: calls that run again and again without any further decision, and
 * the memory that they run in. tasks.c makes it from the recording and the plan, and run.c runs
 * it. */

/* A call that is ready to run. Where add[i].data is set, din[i] is a separate contribution: the
 * tape adds it to add[i] after the call, or copies it there if it is the first. */
struct hg__task {
	struct hg__call call;
	int32_t entry;
	/* in the backward pass: this call runs forward and recomputes an operand of the next one */
	int recompute;
	/* its region, which runs with this call: forward with that of the first node, backward with
	 * that of the first that has a gradient */
	const struct hg__region_call *region;
	/* nothing runs: another node of the region, or the nodes around a batch norm (norms.c), do the
	 * work */
	int idle;
	struct hg__mat add[HG__MAX_IN];
	int is_first[HG__MAX_IN];
};

/* The arguments of a region's kernels. */
struct hg__region_call {
	struct hg__small_layer layer[HG__SMALL_LAYERS];
	struct hg__small_layers_args forward;
	struct hg__small_layers_back_args backward;
};

/* Called after every node that ran, with the operands of its call. A tape with a hook computes the
 * same bits, but its steps are not captured. Not part of the public interface: tests and the doctor
 * use it. A failing status ends the run. */
struct hg__hook {
	hg_status (*after)(void *user, const hg_tape *tape, int32_t entry, int backward,
	                   const struct hg__call *call);
	void *user;
};

/* Called where the calls of a pass begin and end: with k = 0 to F around the F calls of the forward
 * pass, then with k = F + 1 to F + 1 + B around the B calls of the backward pass. It may queue, but
 * not wait. profile.c uses it. */
struct hg__laps {
	hg_status (*at)(void *user, int64_t k);
	void *user;
};

/* Where a value and its gradient lie in the arena; all zero: it has no place there. */
struct hg__view {
	struct hg_tensor value, grad;
};

/* A promise of a graph that is refilled, and the first entry that works on the graph. */
struct hg__promised {
	const uint64_t *broken; /* device memory (core/csr.h) */
	int32_t entry;
};

struct hg__program {
	struct hg__task *forward, *backward;
	int64_t forwards, forward_capacity, backwards, backward_capacity;
	struct hg__view *view; /* [views]: of each value of the tape */
	int64_t views;
	struct hg__promised *promise; /* of each graph that has one, on a tape that trains */
	int64_t promises, promise_capacity;
	struct hg__buffer arena;
	hg_tape *arena_owner; /* the tape that owns the arena; NULL: this one */
	/* memory of the caller that is the arena, and grows if it is too small; NULL: none */
	struct hg__buffer *lent;
	struct hg__region_call *region; /* of each region of the plan */
	int64_t regions;
	size_t workspace_bytes;
	int64_t store_guards; /* results that a guard compares as they are stored */
	const struct hg__hook *hook;
	const struct hg__laps *laps; /* NULL: nobody times the calls */
};

/* tasks.c: called before compiling. The tape runs in the arena of arena_owner, which is compiled,
 * if that arena is large enough. A run of one overwrites the values of the other, and the tape must
 * not run after arena_owner is freed. */
void hg__tape_borrow(hg_tape *tape, hg_tape *arena_owner);
/* tasks.c: called before compiling. The tape runs in `arena`, device memory or empty, which becomes
 * larger if the tape needs more. Only the tape that was compiled last may run; the memory outlives
 * it and is the caller's to free. */
void hg__tape_lend(hg_tape *tape, struct hg__buffer *arena);
/* run.c: from now on the tape queues its work on `ctx`: a branch of its own context, or that. */
void hg__tape_move(hg_tape *tape, hg_context *ctx);
/* tasks.c: prepares the graphs, allocates the arena, builds the calls and reserves the
 * workspace. */
HG_NODISCARD hg_status hg__tape_tasks(hg_tape *tape);
void hg__program_free(hg_context *ctx, struct hg__program *program);
/* operands.c: does a guard compare the result of this node as it is stored (kernels/overflow.h)? It
 * does where neither a proof nor the weights bound the result, on tapes that train and may be
 * recorded again. */
int hg__is_store_guarded(const hg_tape *tape, const struct hg__node *node);

/* region_call.c: sets the arguments of a region's kernels. first: the backward call of its first
 * node, of which the gradient of X is read. */
HG_NODISCARD hg_status hg__region_arguments(const hg_tape *tape, const struct hg__region *region,
                                            const struct hg__call *first,
                                            struct hg__region_call *call);
/* operands.c: a value's matrix, absent if the index is -1 or the value has no memory at this time;
 * its gradient; and a matrix of its shape in a span of the arena. */
struct hg__mat hg__mat_of(const hg_tape *tape, int32_t index);
struct hg__mat hg__grad_of(const hg_tape *tape, int32_t index);
struct hg__mat hg__in_arena(const hg_tape *tape, const struct hg__value *value, hg_dtype dtype,
                            int32_t span);
/* operands.c: the guard of the result of entry k. A copy of a tape that keeps everything (keep.c)
 * has none. */
struct hg__overflow_flag hg__store_guard(const hg_tape *tape, int64_t k);
/* graphs.c: gives the call of entry k what its node needs of its graph. */
HG_NODISCARD hg_status hg__set_graph(const struct hg__recording *recording,
                                     const struct hg__tape_plan *plan, int64_t k,
                                     struct hg__call *call);
/* graphs.c: bytes that the graphs will allocate for transposes that they do not have yet. */
HG_NODISCARD hg_status hg__graphs_missing(const struct hg__recording *recording,
                                          const struct hg__tape_plan *plan, size_t *bytes);
/* graphs.c: has the graphs build tiles, where these make sums faster and leave `needed` bytes. */
HG_NODISCARD hg_status hg__graphs_tile(const struct hg__recording *recording,
                                       const struct hg__tape_plan *plan, hg_mode mode,
                                       size_t needed);

/* graphs.c: lists the promises of the graphs on which `forward` works. */
HG_NODISCARD hg_status hg__graphs_promise(hg_context *ctx, struct hg__program *program);

/* run.c: NULL removes the hook. The hook is borrowed. */
void hg__tape_hook(hg_tape *tape, const struct hg__hook *hook);
/* run.c: clears the overflow flag of a forward pass that no step followed. */
HG_NODISCARD hg_status hg__overflow_clear(hg_params *params);
/* run.c: parts of a backward pass. hg__tape_back_begin comes before its first node; hg__add_parts
 * comes after each node and adds the contributions that were not written straight into a
 * gradient. */
HG_NODISCARD hg_status hg__tape_back_begin(const hg_tape *tape);
HG_NODISCARD hg_status hg__add_parts(hg_context *ctx, const struct hg__task *task);

HG_EXTERN_C_END
#endif
