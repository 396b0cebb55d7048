#include <math.h>
#include <string.h>

#include "doctor/check.h"
#include "precision/bound.h"

hg_status hg__list_tensor(struct hg__replay *replay, const hg_doctor_tensor *tensor,
                          const struct hg__scan *seen, int *index)
{
	if (!*index) {
		if (replay->tensors == replay->tensor_room)
			return hg__fail(replay->ctx, HG_ERR_INTERNAL,
			                "doctor: more tensors than a tape of %lld nodes has",
			                (long long)replay->tape->recording.entries);
		*index = ++replay->tensors;
	}
	hg_doctor_tensor *t = &replay->tensor[*index - 1];
	*t = *tensor;
	t->zeros = seen->zeros;
	t->subnormals = seen->subnormals;
	t->nonfinite = seen->nonfinite;
	t->amax = ldexp(seen->amax, t->shift);
	t->headroom = seen->nonfinite ? 0.0 : hg__headroom(t->dtype, seen->amax);
	memcpy(t->bin, seen->bin, sizeof t->bin);
	return HG_OK;
}
