#include "kernels/cpu/isa.h"

const struct hg__kernels HG__CPU(table) = {
#define HG_KERNEL(name, args) HG__CPU(name),
#include "kernels/kernels.def"
#undef HG_KERNEL
};
