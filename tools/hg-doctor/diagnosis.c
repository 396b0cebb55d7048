#include "diagnosis.h"

const char *diagnosis_verdict(const struct diagnosis *d)
{
	return d->findings      ? "findings"
	       : d->bad         ? "unexplained"
	       : d->interrupted ? "interrupted"
	                        : "healthy";
}

const char *diagnosis_headline(const struct diagnosis *d, char *buffer)
{
	if (d->findings)
		return name_headline(d->dataset, &d->finding[0], buffer);
	(void)snprintf(buffer, SENTENCE_SIZE, "%s",
	               d->bad           ? "A bad step without a known cause"
	               : d->interrupted ? "Interrupted"
	                                : "Healthy");
	return buffer;
}

void diagnosis_sentence(const struct diagnosis *d, char *buffer)
{
	const struct history *c = &d->history;
	if (d->findings)
		(void)name_sentence(d->dataset, &d->finding[0], buffer);
	else if (d->bad)
		(void)snprintf(buffer, SENTENCE_SIZE, "Step %lld is bad: %s; its replay %s.",
		               (long long)(c->first + c->count - 1), d->bad,
		               d->report ? "shows nothing" : "was interrupted");
	else if (c->skipped)
		(void)snprintf(buffer, SENTENCE_SIZE,
		               "Nothing was wrong in %lld step%s; %lld %s skipped on the way, and the run "
		               "recovered by itself.",
		               (long long)c->count, c->count == 1 ? "" : "s", (long long)c->skipped,
		               c->skipped == 1 ? "was" : "were");
	else if (!c->count)
		(void)snprintf(buffer, SENTENCE_SIZE, "No step was made.");
	else
		(void)snprintf(buffer, SENTENCE_SIZE, "Nothing was wrong in %lld step%s.",
		               (long long)c->count, c->count == 1 ? "" : "s");
}
