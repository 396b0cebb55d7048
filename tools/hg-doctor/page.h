#ifndef HG_DOCTOR_PAGE_H
#define HG_DOCTOR_PAGE_H

#include "diagnosis.h"
#include "html.h"

/* The sections of the doctor's page. Each prints a section of its own, or nothing if there is
 * nothing to show. */
void page_finding(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_terms(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_flow(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_curve(FILE *out, const hg_finding *f);
void page_history(FILE *out, const struct diagnosis *d);
void page_tensors(FILE *out, const struct diagnosis *d);
void page_tape(FILE *out, const struct diagnosis *d);

#endif
