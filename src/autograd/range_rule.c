/* What range rules share (range_rule.h). */
#include "autograd/range_rule.h"

#include <stdarg.h>

#include "core/text.h"
#include "precision/bound.h"

/* The longest sum that the op can make bounds the roundings on the longest path to a result, with 8
 * more for what it does besides. */
struct hg__rounding hg__preset_rounding(const struct hg__range *r)
{
	struct hg__rounding rounding = {.depth = 8.0, .sums.whole = INFINITY};
	int64_t longest = 0;
	if (r->node->op->traits & HG__ELEMENTWISE)
		return rounding;
	for (int i = 0; i < r->node->n_in; i++)
		longest = r->shape[i].cols > longest ? r->shape[i].cols : longest;
	longest = r->facts.max_row_degree > longest ? r->facts.max_row_degree : longest;
	longest = r->batch_max > longest ? r->batch_max : longest;
	rounding.depth += (double)longest;
	return rounding;
}

void hg__because(struct hg__derivation *how, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)hg__vprint(how->because, sizeof how->because, format, args);
	va_end(args);
}

double hg__shares_sum(double terms)
{
	return (1.0 + hg__gamma(terms + 8.0, hg_dtype_get(HG_F32)->u)) *
	           (1.0 + hg_dtype_get(HG_F16)->u) +
	       terms * 0x1p-25;
}

void hg__shares_back(const struct hg__range *r, struct hg__gradients *grad, double terms)
{
	const double s = hg__shares_sum(terms);
	hg__on_the_way(&grad->rounding, hg__bound_mul(1.0 + s, r->dout));
	grad->largest[0] = hg__bound_mul((1.0 + s) * (1.0 + s) / 8.0, r->dout);
}
