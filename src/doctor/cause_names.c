#include "halfgraph/doctor.h"

/* What stands before the colon of a text names the cause; the rest explains it. */
static const struct {
	const char *name, *text;
} causes[HG_CAUSE_COUNT] = {
    [HG_CAUSE_INPUT] = {"input", "bad input: it was bad before the step began"},
    [HG_CAUSE_ACCUMULATION] =
        {"accumulation",
         "overflow in accumulation: the running sum in fp16 overflows, not the sum itself"},
    [HG_CAUSE_STORE] = {"store", "forward overflow at the store: the result itself is too large"},
    [HG_CAUSE_LOSS_SCALE] = {"loss-scale", "backward overflow caused by the loss scale"},
    [HG_CAUSE_EXPLOSION] = {"explosion",
                            "exploding gradient: it overflows at loss scale 1 as well"},
    [HG_CAUSE_UNDERFLOW] = {"underflow", "underflow to zero"},
    [HG_CAUSE_SWAMPING] = {"swamping",
                           "swamping: an fp16 sum is too large for further terms to change it"},
    [HG_CAUSE_ZERO] = {"zero", "division, logarithm or root of zero"},
    [HG_CAUSE_OPTIMISER] = {"optimiser",
                            "the optimiser: its update makes bad weights of good gradients"},
};

const char *hg_cause_name(hg_cause cause)
{
	return (size_t)cause < HG_CAUSE_COUNT ? causes[cause].name : "unknown";
}

const char *hg_cause_text(hg_cause cause)
{
	return (size_t)cause < HG_CAUSE_COUNT ? causes[cause].text : "unknown cause";
}
