#ifndef HG_NN_SAVED_H
#define HG_NN_SAVED_H

#include "autograd/observe.h"
#include "nn/optim/optim.h"

HG_EXTERN_C_BEGIN

/* Copies of what training changes outside of its tapes' arenas. The table of the parts is in
 * saved.c: a part that gets a row there is in every copy that has a use for it. */

/* What a copy is for, which decides the parts in it. */
enum hg__saved_use {
	HG__SAVED_BEST = 1,    /* the weights of the best epoch */
	HG__SAVED_FORWARD = 2, /* a forward pass that must leave nothing changed */
	HG__SAVED_GROUP = 4,   /* steps with their evaluations that may have to be repeated */
	HG__SAVED_REPLAY = 8   /* a doctor's replay, after which every bit is as before */
};

/* Where the parts live. Parts whose owner is NULL are not there. */
struct hg__live {
	hg_params *params;
	hg_optim *optim;
	const struct hg__saved *best;  /* of an HG__SAVED_BEST */
	struct hg__board *board;       /* device memory */
	const struct hg__watch *watch; /* NULL: steps are not observed */
};

/* A copy: one block, in which each piece begins where an allocation of its own could. All zero: not
 * made yet. */
struct hg__saved {
	enum hg__saved_use use;
	struct hg__live live;
	struct hg__buffer block;
};

/* A piece of device memory. bytes 0: there is none. */
struct hg__live_piece {
	void *data;
	size_t bytes;
};
/* Calls `visit` for each piece of the parts of a use, with its offset in the block, until it fails.
 * Pieces without bytes are left out. */
typedef hg_status (*hg__piece_fn)(void *user, struct hg__live_piece piece, size_t offset);
HG_NODISCARD hg_status hg__live_visit(const struct hg__live *live, enum hg__saved_use use,
                                      hg__piece_fn visit, void *user);

/* Allocates the block, on the device or (on_host) on the host. `what` names it in error texts. The
 * content is undefined until hg__saved_take. */
HG_NODISCARD hg_status hg__saved_init(struct hg__saved *saved, const struct hg__live *live,
                                      enum hg__saved_use use, int on_host, const char *what);
void hg__saved_fini(struct hg__saved *saved);
/* Copies the live parts into the block. */
HG_NODISCARD hg_status hg__saved_take(const struct hg__saved *saved);
/* Copies the block back. Working copies that are not in it are narrowed from their masters. */
HG_NODISCARD hg_status hg__saved_restore(const struct hg__saved *saved);
/* The copy of master number `index`. */
void *hg__saved_master(const struct hg__saved *saved, int64_t index);

/* Makes a parameter's working copy from its master, rounded as a step rounds it. */
HG_NODISCARD hg_status hg__param_narrow(const hg_param *param);

HG_EXTERN_C_END
#endif
