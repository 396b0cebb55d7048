#ifndef HG_AUTOGRAD_OBSERVE_H
#define HG_AUTOGRAD_OBSERVE_H

#include "autograd/tape.h"
#include "core/buffer.h"

HG_EXTERN_C_BEGIN

/* The observer of a tape that trains: which tensors a step makes, when they can be looked at, and
 * the calls that look. The tensors are
 *
 *     the results of its nodes, and the gradients of these and of its parameters and variables,
 *     once all contributions are in them
 *
 * A tensor can be looked at from the task that completes it until another takes its place in the
 * arena. Where everything stays to the end, one look after the step's finite check sees it all, and
 * every step that is not finite, too. Else there is a look wherever something would be lost that
 * has not been seen, and it takes all that is there: no fewer looks would do. The looks are queued
 * with every step; the device knows in which they have anything to do (struct hg__due). */

/* Rows of a sample. */
#define HG__PROBE_ROWS 32

struct hg__spot {
	int32_t entry; /* that makes the value; -1: a leaf */
	int32_t value;
	int gradient;
	/* positions (tape.h): complete after the one, in its place up to the other */
	int32_t ready, dies;
	struct hg__mat mat;
	char name[80]; /* "conv2/spmm", a leaf's own */
};

/* Spots first .. first+count-1, probes likewise, after task `after`: forward ones, then backward
 * ones. */
struct hg__watch_look {
	int64_t after, chunks; /* chunks: of the kernel's table */
	int32_t first, count, probe_first, probe_count;
};

struct hg__watch {
	hg_tape *tape;
	int64_t every;
	struct hg__spot *spot; /* [spots], as they become ready */
	int64_t spots, spot_capacity;
	struct hg__watch_look *look; /* [looks]; the last one closes the step */
	int64_t looks, look_capacity;
	struct hg__probe *probe; /* [probes], as their records' spots */
	int64_t probes, probe_capacity;
	int64_t next; /* look to come, while the tape runs */
	/* struct hg__watched, looks one after the other, a row more for each; struct hg__probe */
	struct hg__buffer table, probe_device;
	struct hg__buffer sample; /* HG__PROBE_ROWS for each probe */
	/* device, all zero at first: ring, counts [spots], kept [HG__OBSERVED_STEPS, spots], most
	 * [spots] */
	struct hg__buffer state;
	struct hg__buffer copy; /* of state, on the host */
	int64_t now;            /* the step's number then */
};

/* observe.c: is the result of this entry counted? Is its backward the last that contributes to the
 * gradient of operand i, which is that of the value root? */
int hg__is_watched(const hg_tape *tape, const struct hg__entry *entry);
int hg__completes(const hg_tape *tape, int64_t entry, int i);
static inline int32_t hg__root_of(const hg_tape *tape, int64_t entry, int i)
{
	return tape->value[tape->entry[entry].node.in[i]].root;
}

/* observe_stay.c: places in the arena for all spans, when it is known how long each is needed.
 * Whether somebody will look is not known then. */
HG_NODISCARD hg_status hg__tape_place(hg_tape *tape);
/* The same, and nothing stays longer than the step itself needs it. */
HG_NODISCARD hg_status hg__tape_tighten(hg_tape *tape);

/* observe.c: spots and looks; observe_sums.c: probes, and how long their spots can wait for a
 * look. */
HG_NODISCARD hg_status hg__watch_plan(struct hg__watch *watch);
HG_NODISCARD hg_status hg__watch_sums(struct hg__watch *watch);

/* The last position at which what is in a span is there; no span: memory of its own. */
static inline int32_t hg__last_of(const hg_tape *tape, int32_t span)
{
	return span >= 0 ? tape->span[span].last : INT32_MAX;
}

/* observe_run.c. Of a compiled tape that trains; every > 0. */
HG_NODISCARD hg_status hg__watch_create(hg_tape *tape, int64_t every, struct hg__watch **watch);
void hg__watch_free(struct hg__watch *watch);

/* run.c: task 0 comes next; task `task` has been queued. */
void hg__watch_begin(struct hg__watch *watch);
HG_NODISCARD hg_status hg__watch_after(struct hg__watch *watch, int64_t task);
/* When the finite check of the step has been queued, and nothing that changes its number or its
 * loss scale. */
HG_NODISCARD hg_status hg__watch_close(struct hg__watch *watch);

/* Everything that has been counted, on the host. */
HG_NODISCARD hg_status hg__watch_fetch(struct hg__watch *watch);
const struct hg__observed_ring *hg__watch_ring(const struct hg__watch *watch);
const struct hg__observed *hg__watch_counts(const struct hg__watch *watch, int64_t place,
                                            int64_t spot);
/* Bits of the largest |x| that spot ever had. */
uint32_t hg__watch_most(const struct hg__watch *watch, int64_t spot);

HG_EXTERN_C_END
#endif
