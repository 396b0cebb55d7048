#ifndef HG_DOCTOR_REMEDY_H
#define HG_DOCTOR_REMEDY_H

#include "doctor/exam.h"

HG_EXTERN_C_BEGIN

/* A call as a program writes it: longer than the longest of remedy_calls.c with a number. */
#define HG__CALL 96

/* remedy_calls.c: an option, as hg-train has it, in C; "" where there is none. train: of a run
 * of train.h; else of a tape of one's own. */
void hg__remedy_call(const char *option, int train, char call[HG__CALL]);

/* remedy_ops.c: another op in the place of the one at fault, for who writes tapes; *why NULL:
 * there is none. */
void hg__remedy_op(const struct hg__exam *exam, const struct hg__found *found, const char **call,
                   const char **why);

HG_EXTERN_C_END
#endif
