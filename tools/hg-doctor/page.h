#ifndef HG_DOCTOR_PAGE_H
#define HG_DOCTOR_PAGE_H

#include "diagnosis.h"

/* The parts of the page. Each prints a section of its own, or nothing if there is nothing to show.
 * The page uses inline SVG and CSS and no script; all text that is not fixed goes through
 * page_text. At a width of 390 pixels nothing is cut off: boxes stack, and pictures that would be
 * too small are drawn a second time for that width (classes only-wide, only-narrow). */

/* Text, also inside a quoted attribute: & < > " ' are escaped; control characters and bytes that
 * are not UTF-8 become "\xHH". */
void page_text(FILE *out, const char *text);
/* "1.5", "65504", "inf"; about four digits. */
void page_number(FILE *out, double x);
/* A count with thin spaces between thousands. */
void page_count(FILE *out, int64_t n);
/* "fp16", the name that PyTorch users know. */
const char *page_type(hg_dtype dtype);
/* The class of a headroom: "bad" below 1 bit, "warn" below 3, else "good"; "" for NaN. */
const char *page_headroom_class(double bits);

extern const char *const page_style[]; /* lines, then NULL */
void page_finding(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_terms(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_flow(FILE *out, const struct diagnosis *d, const hg_finding *f);
void page_curve(FILE *out, const hg_finding *f);
void page_history(FILE *out, const struct diagnosis *d);
void page_tensors(FILE *out, const struct diagnosis *d);
void page_tape(FILE *out, const struct diagnosis *d);

#endif
