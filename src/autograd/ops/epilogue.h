#ifndef HG_AUTOGRAD_OPS_EPILOGUE_H
#define HG_AUTOGRAD_OPS_EPILOGUE_H

#include "autograd/opkit.h"

/* The ops that an epilogue is made of: at most one of each stage, stages in this order. X is operand 0 of each, b is operand 1 of bias_add. */
enum { EPILOGUE_BIAS, EPILOGUE_ACT, EPILOGUE_DROPOUT, EPILOGUE_STAGES };

static const struct epilogue_part {
	const struct hg__op *op;
	int stage, act; /* act: of struct hg__epilogue; the op's only constant is then its act_p */
} epilogue_parts[] = {
    {&hg__op_bias_add, EPILOGUE_BIAS, 0},         {&hg__op_relu, EPILOGUE_ACT, 1 + HG__ACT_RELU}, {&hg__op_leaky_relu, EPILOGUE_ACT, 1 + HG__ACT_LEAKY_RELU},
    {&hg__op_elu, EPILOGUE_ACT, 1 + HG__ACT_ELU}, {&hg__op_dropout, EPILOGUE_DROPOUT, 0},
};
#define EPILOGUE_PARTS ((int)(sizeof epilogue_parts / sizeof epilogue_parts[0]))

#endif
