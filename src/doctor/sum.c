#include "doctor/sum_of.h"

/* exact = sum of factor * operand, in f64: 53 bits hold each product of two floats, and a sum of a
 * million of them to 2^-33 of its mass. */

enum { OUT = -1 };
static const struct {
	const struct hg__op *op;
	int operand;
	hg__sum_fn sum;
} sums[] = {
    {&hg__op_spmm, OUT, hg__sum_spmm},
    {&hg__op_spmm, 0, hg__sum_spmm_dx},
    {&hg__op_spmm, 1, hg__sum_spmm_dw},
    {&hg__op_spmm_epilogue, OUT, hg__sum_spmm},
    {&hg__op_spmm_epilogue, 0, hg__sum_spmm_dx},
    {&hg__op_spmm_epilogue, 1, hg__sum_spmm_dw},
    {&hg__op_sddmm_dot, OUT, hg__sum_sddmm_dot},
    {&hg__op_sddmm_dot, 0, hg__sum_sddmm_dot_da},
    {&hg__op_sddmm_dot, 1, hg__sum_sddmm_dot_db},
    {&hg__op_sddmm_add, 0, hg__sum_sddmm_add_da},
    {&hg__op_sddmm_add, 1, hg__sum_sddmm_add_db},
    {&hg__op_linear, OUT, hg__sum_linear},
    {&hg__op_linear, 0, hg__sum_linear_dx},
    {&hg__op_linear, 1, hg__sum_linear_dw},
    {&hg__op_linear, 2, hg__sum_of_rows},
    {&hg__op_bias_add, 1, hg__sum_of_rows},
    {&hg__op_head_dot, OUT, hg__sum_head_dot},
    {&hg__op_head_dot, 1, hg__sum_head_dot_da},
    {&hg__op_head_dot, 2, hg__sum_head_dot_db},
    {&hg__op_readout, OUT, hg__sum_readout},
    {&hg__op_row_sum, OUT, hg__sum_along_row},
    {&hg__op_row_mean, OUT, hg__sum_along_row},
};
#define SUMS (sizeof sums / sizeof *sums)

hg_status hg__sum_open(const struct hg__call *call, int operand, int64_t row, int64_t col,
                       struct hg__sum *sum)
{
	const struct hg__asked asked = {call, row, col};
	hg_status status = HG_OK;
	*sum = (struct hg__sum){.ctx = call->ctx, .accumulate = HG_ACC_F32, .after = 1.0f};
	for (size_t i = 0; i < SUMS; i++)
		if (sums[i].op == call->node->op && sums[i].operand == operand)
			status = sums[i].sum(&asked, sum);
	if (status < 0) {
		hg__sum_close(sum);
		return status;
	}
	hg__sum_total(sum);
	return HG_OK;
}
