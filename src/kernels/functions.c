#include "kernels/functions.h"

#include <math.h>

#define HG_FUNCTION(name, reads, zero, zero_back, value, gradient, bound, slope) \
	static double name##_most(double m, double p)                                \
	{                                                                            \
		(void)m, (void)p;                                                        \
		return bound;                                                            \
	}                                                                            \
	static double name##_steepest(double m, double p)                            \
	{                                                                            \
		(void)m, (void)p;                                                        \
		return slope;                                                            \
	}
#include "kernels/functions.def"

enum { READS_Y, READS_X };

const struct hg__function hg__functions[HG__ACT_COUNT] = {
#define HG_FUNCTION(name, reads, ...) {#name, READS_##reads, name##_most, name##_steepest},
#include "kernels/functions.def"
};
