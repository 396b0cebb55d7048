#include "autograd/op.h"

static const struct hg__op *const list[] = {
#define HG_OP(name) &hg__op_##name,
#include "autograd/ops.def"
#undef HG_OP
};

const struct hg__op *const *hg__op_list(size_t *count)
{
	*count = sizeof list / sizeof list[0];
	return list;
}
