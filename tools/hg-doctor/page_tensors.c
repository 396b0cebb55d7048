/* Every tensor of the step as a histogram over the range of fp16. */
#include "page.h"

void page_tensors(FILE *out, const struct diagnosis *d)
{
	const hg_doctor_report *r = d->report;
	if (r && r->tensors)
		page_tensor_section(out, r->tensor, r->tensors, r->step, r->loss_scale,
		                    d->findings ? d->finding[0].tensor : NULL);
}
