#ifndef HG_DOCTOR_WORDS_H
#define HG_DOCTOR_WORDS_H

#include "halfgraph/doctor.h"

HG_EXTERN_C_BEGIN

/* What the sentence and the headline of a finding have in common. */

/* A text that grows piece by piece. */
struct hg__words {
	char *text;
	size_t size, length; /* length: of the whole text, also of the end that did not fit */
};
void hg__say(struct hg__words *words, const char *format, ...) HG_PRINTF(2, 3);

/* Of the limit that the element crossed: "fp16" or "fp32". */
const char *hg__limit_type(const hg_finding *f);
/* The name of the element's row, without a place function: "node 5". */
void hg__name_row(const hg_finding *f, char *name, size_t size);
/* Is the finding about a label that is not a class? */
int hg__is_label_finding(const hg_finding *f);

HG_EXTERN_C_END
#endif
