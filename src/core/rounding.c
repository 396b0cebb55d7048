#include "core/rounding.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __SSE2__
/* All of MXCSR but what has happened so far (bits 0 to 5): masks of exceptions, rounding, 0 for
 * numbers near 0 that come out or go in. */
static int is_usual(void)
{
	return (_mm_getcsr() & 0xFFC0u) == 0x1F80u;
}
#else
static int is_usual(void)
{
	return fegetround() == FE_TONEAREST;
}
#endif

void hg__rounding_begin(struct hg__rounding *rounding)
{
	rounding->differs = !is_usual();
	if (!rounding->differs)
		return;
	(void)fegetenv(&rounding->callers);
	(void)fesetenv(FE_DFL_ENV);
}

void hg__rounding_end(const struct hg__rounding *rounding)
{
	if (rounding->differs)
		(void)fesetenv(&rounding->callers);
}

void hg__rounding_team(int threads)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) /* hg__threads() has asked for them */
	if (omp_get_thread_num() > 0 && !is_usual())
		(void)fesetenv(FE_DFL_ENV);
#else
	(void)threads;
#endif
}
