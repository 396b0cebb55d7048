#ifndef HG_KERNELS_FUNCTIONS_H
#define HG_KERNELS_FUNCTIONS_H

#include "halfgraph/status.h"

HG_EXTERN_C_BEGIN

/* The element-wise functions by number: HG__ACT_relu ... in the order of functions.def. The first
 * HG__ACT_EPILOGUES can be the activation of an epilogue, and the first HG__ACT_SUM_EPILOGUES that
 * of the epilogue of an aggregation or of attention (epilogue.h). */
typedef enum hg__act {
#define HG_FUNCTION(name, ...) HG__ACT_##name,
#include "kernels/functions.def"
	HG__ACT_COUNT
} hg__act;
enum {
	HG__ACT_EPILOGUES = 0
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(...) +1
#include "kernels/functions.def"
	,
	HG__ACT_SUM_EPILOGUES = 0
#define HG_FUNCTION(...)
#define HG_EPILOGUE_FUNCTION(...)
#define HG_SUM_EPILOGUE_FUNCTION(...) +1
#include "kernels/functions.def"
};

/* What the host needs to know about a function: what its backward pass reads, and bounds on |f| and
 * |f'| for |x| <= m with the constant p. */
struct hg__function {
	const char *name;
	int reads_x; /* 0: it reads y */
	double (*most)(double m, double p);
	double (*steepest)(double m, double p);
};
extern const struct hg__function hg__functions[HG__ACT_COUNT];

/* The functions of two operands: HG__PAIR_mul ... in the order of pairs.def. */
typedef enum hg__pair {
#define HG_PAIR(name, value) HG__PAIR_##name,
#include "kernels/pairs.def"
	HG__PAIR_COUNT
} hg__pair;

HG_EXTERN_C_END
#endif
