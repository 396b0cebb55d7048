#ifndef HG_TRAINING_FINDINGS_H
#define HG_TRAINING_FINDINGS_H

#include <stdio.h>

#include "halfgraph/data.h"
#include "halfgraph/doctor.h"

/* What a doctor found, for people: what happened and what to do in the first line, then what
 * helps, where, of what, and how it spread. before: the finding that was printed before this
 * one, NULL for the first. */
void finding_print(FILE *out, const hg_dataset *d, const hg_finding *f, const hg_finding *before);
/* Have both the same options with the same results? before NULL: 0. */
int finding_same_remedies(const hg_finding *f, const hg_finding *before);
/* The same for programs: one line, "event":"finding". 0, or -1 if writing failed. */
int finding_json(FILE *out, const hg_dataset *d, const hg_finding *f);
/* One tensor of the step, "event":"tensor". */
int tensor_json(FILE *out, int64_t step, const hg_doctor_tensor *t);

#endif
