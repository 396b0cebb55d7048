#ifndef HG_DOCTOR_PAGE_H
#define HG_DOCTOR_PAGE_H

#include "diagnosis.h"

/* The parts of the page. Each prints a section of its own, or nothing where there is nothing to
 * show. Inline SVG and CSS, no script; every text that is not ours goes through page_text. At
 * 390 pixels nothing is cut off: boxes stack, and what would be too small to read is drawn once
 * more for that width (classes only-wide, only-narrow). */

/* Text, and text inside a quoted attribute: & < > " ' escaped, control characters and what is no
 * UTF-8 as "\xHH". */
void page_text(FILE *out, const char *text);
/* "1.5", "65504", "inf"; about four digits. */
void page_number(FILE *out, double x);
/* A count with thin spaces between thousands. */
void page_count(FILE *out, int64_t n);
/* "fp16", as PyTorch's users say. */
const char *page_type(hg_dtype dtype);
/* Class of a headroom: "bad" below 1 bit, "warn" below 3, else "good"; "" where it is NaN. */
const char *page_headroom_class(double bits);

extern const char *const page_style[]; /* lines, and NULL */
void page_finding(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_terms(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_flow(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_curve(FILE *out, const hg_finding *f);
void page_course(FILE *out, const struct diagnosis *d);
void page_tensors(FILE *out, const struct diagnosis *d);
void page_tape(FILE *out, const struct diagnosis *d);

#endif
