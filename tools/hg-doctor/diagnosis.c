#include "diagnosis.h"

const char *diagnosis_verdict(const struct diagnosis *d)
{
	return d->findings ? "findings" : d->bad ? "unexplained" : d->interrupted ? "interrupted" : "healthy";
}

void diagnosis_sentence(const struct diagnosis *d, char *buffer)
{
	const struct course *c = &d->course;
	if (d->findings)
		(void)name_sentence(d->dataset, &d->finding[0], buffer);
	else if (d->bad)
		(void)snprintf(buffer, SENTENCE_SIZE, "Step %lld is bad: %s; its replay shows no cause.", (long long)(c->first + c->count - 1), d->bad);
	else if (d->interrupted)
		(void)snprintf(buffer, SENTENCE_SIZE, "Interrupted: nothing was wrong in %lld steps.", (long long)c->count);
	else
		(void)snprintf(buffer, SENTENCE_SIZE,
		               c->skipped ? "Healthy: nothing was wrong in %lld steps; %lld were skipped while the loss scale settled."
		                          : "Healthy: nothing was wrong in %lld steps.",
		               (long long)c->count, (long long)c->skipped);
}
