#include <math.h>
#include <string.h>

#include "doctor/replay.h"
#include "precision/bound.h"

/* Lists of findings and of tensors. */

struct hg__found *hg__found_new(struct hg__replay *replay, int silent, hg_cause cause)
{
	if (replay->founds[silent] == replay->most)
		return NULL;
	struct hg__found *found = &replay->found[silent][replay->founds[silent]++];
	*found = (struct hg__found){.value = -1};
	found->finding = (hg_finding){.size = sizeof found->finding,
	                              .cause = cause,
	                              .step = replay->step.step,
	                              .node = -1,
	                              .op = "",
	                              .layer = "",
	                              .tensor = "",
	                              .row_is = HG_ROW_NODE,
	                              .edge_row = -1,
	                              .edge_col = -1,
	                              .evaluation = replay->evaluation,
	                              .head = -1,
	                              .head_of = "",
	                              .grown = "",
	                              .got = NAN,
	                              .wide = NAN,
	                              .largest = NAN,
	                              .limit = hg_dtype_get(HG_F16)->overflow,
	                              .bad = 1,
	                              .count = 1,
	                              .partial_factor = 1.0,
	                              .scale = (double)replay->step.scale.scale,
	                              .sentence = "",
	                              .op_words = ""};
	return found;
}

hg_status hg__found_at(struct hg__replay *replay, struct hg__found *found,
                       const struct hg__rows *rows, int64_t row, int64_t col)
{
	hg_finding *f = &found->finding;
	f->row_is = rows->kind;
	f->row = row;
	f->col = col;
	return rows->kind == HG_ROW_EDGE && rows->graph
	           ? hg__edge_ends(replay->ctx, rows->graph, row, &f->edge_row, &f->edge_col)
	           : HG_OK;
}

hg_status hg__note_tensor(struct hg__replay *replay, const hg_doctor_tensor *tensor,
                          const struct hg__look *look, int *place)
{
	if (!*place) {
		if (replay->tensors == replay->tensor_room)
			return hg__fail(replay->ctx, HG_ERR_INTERNAL,
			                "doctor: more tensors than a tape of %lld nodes has",
			                (long long)replay->tape->entries);
		*place = ++replay->tensors;
	}
	hg_doctor_tensor *t = &replay->tensor[*place - 1];
	*t = *tensor;
	t->zeros = look->zeros;
	t->subnormals = look->subnormals;
	t->nonfinite = look->nonfinite;
	t->amax = ldexp(look->amax, t->shift);
	t->headroom = look->nonfinite ? 0.0 : hg__headroom(t->dtype, look->amax);
	memcpy(t->bin, look->bin, sizeof t->bin);
	return HG_OK;
}
