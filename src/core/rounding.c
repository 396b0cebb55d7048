/* The default floating-point mode for the calling thread and its OpenMP team. */
#include "core/rounding.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef __SSE2__
/* Compares MXCSR without the exception flags (bits 0 to 5): exception masks, rounding direction,
 * and the two modes that treat subnormal results and operands as 0. */
static int is_default_mode(void)
{
	return (_mm_getcsr() & 0xFFC0u) == 0x1F80u;
}
#else
static int is_default_mode(void)
{
	return fegetround() == FE_TONEAREST;
}
#endif

void hg__rounding_begin(struct hg__rounding *rounding)
{
	rounding->differs = !is_default_mode();
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
#pragma omp parallel num_threads(threads) /* the number comes from hg__threads() */
	if (omp_get_thread_num() > 0 && !is_default_mode())
		(void)fesetenv(FE_DFL_ENV);
#else
	(void)threads;
#endif
}
