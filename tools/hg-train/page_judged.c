/* Predictions of the trained model beside the truth. */
#include "page.h"

void page_judged(FILE *out, const struct results *r)
{
	const struct judged *j = &r->judged;
	if (!j->known)
		return;
	(void)fprintf(out,
	              "<section>\n<h2>Predictions of the %s set</h2>\n<p class=\"soft\">With the "
	              "weights of the best epoch%s: ",
	              j->set, page_first_of(r));
	page_count(out, j->counted);
	(void)fprintf(out, " row%s.</p>\n", j->counted == 1 ? "" : "s");
	if (r->report[0].nonfinite_logits)
		(void)fprintf(
		    out,
		    "<p><span class=\"badge bad\">not reliable</span> %lld logits of all rows are "
		    "not numbers. The metric counts such rows as wrong; below they are of the "
		    "class with the largest number.</p>\n",
		    (long long)r->report[0].nonfinite_logits);
	if (j->loss == HG_LOSS_CROSS_ENTROPY)
		page_classes(out, j);
	else if (j->loss == HG_LOSS_BCE)
		page_labels(out, j);
	else
		page_targets(out, j);
	(void)fputs("</section>\n", out);
}

void page_observed(FILE *out, const struct results *r)
{
	const struct observed *o = &r->observed;
	if (o->count)
		page_tensor_section(out, o->tensor, o->count, o->step, o->loss_scale,
		                    *r->headroom_at && r->headroom <= 0 ? r->headroom_at : NULL);
}
