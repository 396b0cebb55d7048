#include "halfgraph/doctor.h"

static const struct {
	const char *name, *text;
} causes[HG_CAUSE_COUNT] = {
    [HG_CAUSE_INPUT] = {"input", "input already bad"},
    [HG_CAUSE_ACCUMULATION] =
        {"accumulation", "overflow in accumulation: the running sum in fp16, not the sum itself"},
    [HG_CAUSE_STORE] = {"store", "forward overflow at the store: the result itself is too large"},
    [HG_CAUSE_LOSS_SCALE] = {"loss-scale", "backward overflow caused by the loss scale"},
    [HG_CAUSE_EXPLOSION] = {"explosion", "real gradient explosion: overflow at loss scale 1, too"},
    [HG_CAUSE_UNDERFLOW] = {"underflow", "underflow to zero"},
    [HG_CAUSE_SWAMPING] = {"swamping", "swamping: an fp16 sum too large for its terms to count"},
    [HG_CAUSE_ZERO] = {"zero", "division, logarithm or root of zero"},
    [HG_CAUSE_OPTIMISER] = {"optimiser", "the optimiser: good gradients, bad weights"},
};

const char *hg_cause_name(hg_cause cause)
{
	return (size_t)cause < HG_CAUSE_COUNT ? causes[cause].name : "unknown";
}

const char *hg_cause_text(hg_cause cause)
{
	return (size_t)cause < HG_CAUSE_COUNT ? causes[cause].text : "unknown cause";
}
