#ifndef HG_AUTOGRAD_PLAN_H
#define HG_AUTOGRAD_PLAN_H

#include "autograd/recording.h"
#include "autograd/region.h"

HG_EXTERN_C_BEGIN

/* The plan of a tape: what of the recording runs, when, and where its buffers lie in one arena. It
 * follows from the recording and from what is asked for, and holds no address of device memory.
 * plan.c makes it, and place.c and arena.c place the buffers.
 *
 * Time is counted in positions. With F nodes that run, numbered 0 .. F-1 in recording order:
 *
 *     i          forward of node i
 *     F          between forward and backward
 *     2F - i     backward of node i
 *     2F + 1     after the run, when the caller reads the values it kept
 *
 * The nodes of a region (region.h) have the positions at which its kernels run: forward that of its
 * first node, backward that of the first that has a gradient. */

/* A buffer of the arena. It is in use from position first to position last, both included. */
enum hg__use {
	HG__USE_VALUE = 0,
	HG__USE_GRAD = 1,
	HG__USE_PART = 2 /* a contribution to a gradient, before it is added */
};
struct hg__span {
	enum hg__use use;
	int32_t value, first, last;
	hg_dtype dtype;
	size_t bytes, offset; /* both multiples of HG__ALIGN */
	/* arena.c: the last position at which it, or what replaces it, is in use; and the most bytes
	 * that are in use at one position up to there */
	int32_t until_free;
	size_t busiest;
	/* a gradient that may take the place of this other span, whose last position is the one before:
	 * both then lie at the same offset, unless the other one stays for an observer; -1: none */
	int32_t replaces;
	/* place.c: the step needs the buffer up to position `until`. An observer can read it
	 * from `ready` on (-1: it is not observed), and it stays up to `last` for the observer's
	 * sake. */
	int32_t until, ready;
};

/* What the plan says of a value of the recording. */
struct hg__planned_value {
	int alive; /* a node that runs reads it, or the caller does */
	/* depends: on a parameter or variable; reaches: the loss; through differentiable operands */
	int depends, reaches;
	int grad; /* depends and reaches: a gradient is computed */
	/* Entries around batch norms (norms.c); -1: none. `normalised`: the value is the result of a
	 * norm, and this entry, which alone reads it, computes it from what the norm reads, so it is
	 * not stored. `through`: the entry of the norm that alone reads the value. The node that makes
	 * the value computes its gradient from that of the norm's result, so it is not stored. */
	int32_t normalised, through;
	/* made and read inside a region: neither it nor its gradient is ever stored */
	int inside;
	/* made and read inside a region, and read by other nodes: its gradient in memory is the part
	 * that these contribute */
	int partial;
	int32_t parts;                                       /* contributions to the gradient */
	int32_t span, grad_span;                             /* -1: not in the arena */
	struct hg__known_gradient gradient[HG__ASSUMPTIONS]; /* gradient_range.c */
};

/* What the plan says of an entry of the recording. */
struct hg__planned_entry {
	int alive, back;       /* runs forward; has a backward */
	int32_t position;      /* of its forward; i in the list of positions above */
	int32_t position_back; /* of its backward */
	int32_t region;        /* the number of its region; -1: none */
	/* Of batch norms (norms.c). `statistics`: the entry of the norm whose statistics the forward
	 * of this entry computes; -1: none. The others are of a norm: which of its numbers others
	 * compute. */
	int32_t statistics;
	int has_statistics, has_sums;
	int is_first[HG__MAX_IN]; /* operand i gets its first contribution to its gradient here */
	/* bit i: the op itself adds its contribution to the gradient of operand i */
	unsigned adds;
	/* the span in which operand i is recomputed for backward; -1: it is kept, or not needed */
	int32_t recompute[HG__MAX_IN];
	/* the span of a contribution that must be added to the gradient of operand i; -1: the op writes
	 * straight into the gradient */
	int32_t part_span[HG__MAX_IN];
};

struct hg__tape_plan {
	/* what to plan for: the value that is asked for, whether there is a backward pass, and whether
	 * every value and gradient gets memory of its own (keep.c) */
	int32_t output;
	int trains, keeps;
	/* one for each value and entry of the recording; entry NULL: it is not planned yet, or it has
	 * no entry */
	struct hg__planned_value *value;
	struct hg__planned_entry *entry;
	int64_t values, entries;
	struct hg__region *region;
	int64_t regions, region_capacity;
	int32_t running;    /* nodes that run: F above */
	int64_t recomputes; /* operands that the backward pass recomputes */
	struct hg__span *span;
	int64_t spans, span_capacity;
	size_t arena_bytes;
	const char *largest_name; /* of the largest buffer of the arena */
	size_t largest_bytes;
};

static inline int hg__is_planned(const struct hg__tape_plan *plan)
{
	return plan->entry != NULL;
}
/* Does this entry run? Before the tape is planned none is known to. */
static inline int hg__is_alive(const struct hg__tape_plan *plan, int64_t entry)
{
	return hg__is_planned(plan) && plan->entry[entry].alive;
}

/* The region of an entry; NULL: it has none. */
static inline const struct hg__region *hg__region_of(const struct hg__tape_plan *plan,
                                                     int64_t entry)
{
	const int32_t region = plan->entry[entry].region;
	return region >= 0 ? &plan->region[region] : NULL;
}

/* The position of the backward of an entry, and the one after the run. */
static inline int32_t hg__position_back(const struct hg__tape_plan *plan, int64_t entry)
{
	return plan->entry[entry].position_back;
}
static inline int32_t hg__position_end(const struct hg__tape_plan *plan)
{
	return 2 * plan->running + 1;
}

/* The last position at which a span still holds its tensor. No span: the tensor has memory of its
 * own, or is not stored at all. */
static inline int32_t hg__last_of(const struct hg__tape_plan *plan, int32_t span)
{
	return span >= 0 ? plan->span[span].last : INT32_MAX;
}

/* regions.c: finds the regions of a tape that trains. Called before the plan is made. */
HG_NODISCARD hg_status hg__tape_regions(hg_tape *tape);
/* regions.c: sets the positions of the nodes in regions, and which values are inside. */
void hg__place_regions(const struct hg__recording *recording, struct hg__tape_plan *plan);
/* norms.c: finds what other nodes compute of a batch norm: statistics, result, sums, and the
 * gradient of what it reads. */
void hg__place_norms(const hg_context *ctx, const struct hg__recording *recording,
                     struct hg__tape_plan *plan);
/* plan.c: which nodes run, which values get a gradient, and how long each buffer lives. */
HG_NODISCARD hg_status hg__plan_lifetimes(hg_context *ctx, const struct hg__recording *recording,
                                          struct hg__tape_plan *plan);
void hg__tape_plan_free(hg_context *ctx, struct hg__tape_plan *plan);
/* arena.c: gives each span an offset so that no two spans that are in use at the same time overlap,
 * and sets the size of the arena. */
HG_NODISCARD hg_status hg__arena_place(hg_context *ctx, struct hg__tape_plan *plan);

HG_EXTERN_C_END
#endif
