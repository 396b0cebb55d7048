#ifndef HG_TRAINING_FINDINGS_H
#define HG_TRAINING_FINDINGS_H

#include <stdio.h>

#include "halfgraph/data.h"
#include "halfgraph/doctor.h"

/* Print a finding for people: what happened and what to do in the first line, then the remedies,
 * the location, the operands, and how the fault spread. `before` is the finding printed before this
 * one, NULL for the first. */
void finding_print(FILE *out, const hg_dataset *d, const hg_finding *f, const hg_finding *before);
/* Do both findings have the same remedies with the same results? before NULL: 0. */
int finding_same_remedies(const hg_finding *f, const hg_finding *before);
/* Write a finding as one JSON line, "event":"finding". Returns 0, or -1 if writing failed. */
int finding_json(FILE *out, const hg_dataset *d, const hg_finding *f);
/* Write one tensor of the step as a JSON line, "event":"tensor". */
int tensor_json(FILE *out, int64_t step, const hg_doctor_tensor *t);

#endif
