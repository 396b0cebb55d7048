#ifndef HG_AUTOGRAD_OBSERVE_H
#define HG_AUTOGRAD_OBSERVE_H

#include "autograd/plan.h"
#include "autograd/recording.h"
#include "core/buffer.h"

HG_EXTERN_C_BEGIN

/* The observer of a tape that trains: which tensors of a step it inspects, when, and the calls that
 * do it. The tensors are
 *
 *     the results of the nodes, and the gradients of these results and of parameters and variables,
 *     once all contributions have been added
 *
 * A tensor can be inspected from the task that completes it until another buffer takes its place in
 * the arena. Where every tensor stays to the end, one inspection after the step's finite check sees
 * all of them, and it can also inspect every step that is not finite. Otherwise an inspection comes
 * wherever a tensor would be overwritten that has not been inspected, and it takes all tensors that
 * are complete; no plan needs fewer inspections. The calls are queued with every step, and the
 * device skips them in steps that are not due (struct hg__due). */

/* Rows of a probe's sample. */
#define HG__PROBE_ROWS 32

/* A spot: one tensor of a step that the observer inspects. */
struct hg__spot {
	int32_t entry; /* makes the value; -1: a leaf */
	int32_t value;
	int gradient;
	/* positions (plan.h): complete after position `ready`, not overwritten up to position `dies` */
	int32_t ready, dies;
	struct hg__mat mat;
	char name[80]; /* "conv2/spmm", or a leaf's own name */
};

/* One inspection: spots first .. first + count - 1 and their probes, after task number `after`.
 * Tasks of the forward pass come first, then those of the backward pass. */
struct hg__inspection {
	int64_t after, chunks; /* chunks: of the kernel's table */
	int32_t first, count, probe_first, probe_count;
};

struct hg__watch {
	hg_tape *tape;
	int64_t every;
	struct hg__spot *spot; /* [spots], in the order in which they become ready */
	int64_t spots, spot_capacity;
	struct hg__inspection *inspection; /* [inspections]; the last one closes the step */
	int64_t inspections, inspection_capacity;
	struct hg__probe *probe; /* [probes], in the order of the spots they record to */
	int64_t probes, probe_capacity;
	int64_t next; /* the next inspection, while the tape runs */
	/* struct hg__watched: the spots of each inspection, and one more row after them; struct
	 * hg__probe */
	struct hg__buffer table, probe_device;
	struct hg__buffer sample; /* HG__PROBE_ROWS for each probe */
	/* on the device, zero at first: ring, counts [spots], kept [HG__OBSERVED_STEPS, spots], most
	 * [spots] */
	struct hg__buffer state;
	const void *left;       /* where `state` was when its counts were left */
	struct hg__buffer copy; /* a copy of state on the host */
	int64_t now;            /* the number of the step at that time */
};

/* How much the arena may grow so that tensors stay for an observer: a little (place.c), not
 * at all, or as much as all of them need. */
enum hg__room { HG__ROOM_LITTLE = 0, HG__ROOM_NONE = 1, HG__ROOM_ALL = 2 };

/* Bytes by which a small arena may grow, too: then one inspection instead of two sees GCN and GAT
 * on Cora's shape, for 0.5 and 0.1 MiB. Each inspection is a kernel of every step, also where it
 * finds nothing to do, and such a step is a chain of kernels that take 3.4 us each (GAT: 27, H200).
 */
#define HG__ROOM_SPARE ((size_t)512 << 10)

/* What a tape knows of its observers. */
struct hg__observing {
	enum hg__room room; /* what hg_tape_observe asked for */
	size_t spare;       /* HG__ROOM_SPARE, or less in tests of small tapes */
	int stays;          /* some buffer stays for an observer longer than the step needs it */
	/* set while the step of this observer is queued; NULL: the pass is not observed */
	struct hg__watch *watch;
	size_t bytes; /* device memory of all observers of the tape */
};

/* observe.c: does the observer inspect the result of this entry? Is the backward of this entry the
 * last that contributes to the gradient of operand i, that is, of value hg__root_of? */
int hg__is_watched(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                   int64_t entry);
int hg__completes(const struct hg__recording *recording, const struct hg__tape_plan *plan,
                  int64_t entry, int i);

/* place.c: places all spans in the arena, once their lifetimes are known. Whether a step
 * will be observed is not known then, so tensors may stay for nothing. */
HG_NODISCARD hg_status hg__tape_place(hg_tape *tape);
/* The same, but no span stays longer than the step itself needs it. */
HG_NODISCARD hg_status hg__tape_tighten(hg_tape *tape);

/* observe.c: plans spots and inspections. observe_sums.c: plans probes, and how long their spots
 * can wait for an inspection. */
HG_NODISCARD hg_status hg__watch_plan(struct hg__watch *watch);
HG_NODISCARD hg_status hg__watch_sums(struct hg__watch *watch);

/* observe_run.c: the tape is compiled and trains; every > 0. */
HG_NODISCARD hg_status hg__watch_create(hg_tape *tape, int64_t every, struct hg__watch **watch);
void hg__watch_free(struct hg__watch *watch);

/* Counts that observers have left behind, one set for each list of tensors that some tape keeps in
 * memory. The tapes of a run in batches have up to three such lists: batches differ in their bins
 * (core/bins.h), and what lies between layers that a kernel computes in bins is not in memory. */
enum { HG__PASTS = 3 };
struct hg__watch_past {
	struct hg__left_counts {
		struct hg__buffer state; /* no bytes: none */
		int64_t spots;
		uint64_t names; /* a hash of their names */
		int64_t order;  /* when they were left */
	} left[HG__PASTS];
	int64_t leaves;
};
/* observe_past.c: takes the counts out of an observer whose tape is no longer in place, or is freed
 * next. If three sets have been left, the one that was left first is dropped. */
void hg__watch_leave(struct hg__watch *watch, struct hg__watch_past *past);
/* observe_past.c: gives an observer the counts that were left of the same tensors, if there are
 * some. */
void hg__watch_follow(struct hg__watch *watch, struct hg__watch_past *past);
/* observe_past.c: a captured step writes to the memory in which its observer counted before it left
 * its counts. Would hg__watch_follow give it that memory back? now: another observer, which leaves
 * its counts first; NULL: none does. */
int hg__watch_resumes(const struct hg__watch *watch, const struct hg__watch_past *past,
                      const struct hg__watch *now);
void hg__watch_past_fini(hg_context *ctx, struct hg__watch_past *past);

/* run.c: a pass begins with task 0; task number `task` has been queued. */
void hg__watch_begin(struct hg__watch *watch);
HG_NODISCARD hg_status hg__watch_after(struct hg__watch *watch, int64_t task);
/* Called when the step's finite check has been queued, but nothing that changes the number of the
 * step or the loss scale. */
HG_NODISCARD hg_status hg__watch_close(struct hg__watch *watch);

/* Copies all counts to the host. */
HG_NODISCARD hg_status hg__watch_fetch(struct hg__watch *watch);
const struct hg__observed_ring *hg__watch_ring(const struct hg__watch *watch);
const struct hg__observed *hg__watch_counts(const struct hg__watch *watch, int64_t place,
                                            int64_t spot);
/* The bits of the largest |x| that this spot ever had. */
uint32_t hg__watch_most(const struct hg__watch *watch, int64_t spot);

HG_EXTERN_C_END
#endif
