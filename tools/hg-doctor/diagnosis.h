#ifndef HG_DOCTOR_DIAGNOSIS_H
#define HG_DOCTOR_DIAGNOSIS_H

#include "findings.h"
#include "history.h"
#include "names.h"
#include "options.h"

/* Everything that the reports contain. */
struct diagnosis {
	const struct options *options;
	const hg_dataset *dataset;
	hg_train_config config;
	char device_name[96];
	int64_t nodes, edges; /* of the graph as used for training */
	int sparse;
	hg_rows_advice rows; /* how the features were prepared */
	struct history history;
	const hg_doctor_report *report; /* of the last replayed step; NULL: none was replayed */
	/* why the last step was bad, as the end of a sentence; NULL: it was not */
	const char *bad;
	hg_finding *finding; /* [findings] the findings that count, the first to happen first */
	int findings;
	hg_remedy control; /* the run from its checkpoint again, with nothing changed */
	int64_t replayed;  /* number of replayed steps */
	/* The smallest headroom measured, in bits; NaN: no tensor is f16. */
	double headroom;
	char headroom_at[96];
	int64_t headroom_step;
	int interrupted;
};

/* "healthy", "findings", "unexplained" (a bad step without a finding), or "interrupted". */
const char *diagnosis_verdict(const struct diagnosis *d);
/* "Healthy", or what went wrong first and what to do, in buffer [SENTENCE_SIZE]. */
const char *diagnosis_headline(const struct diagnosis *d, char *buffer);
/* The same as one sentence for people, in buffer [SENTENCE_SIZE]. */
void diagnosis_sentence(const struct diagnosis *d, char *buffer);

void diagnosis_print(FILE *out, const struct diagnosis *d);
/* Write JSON lines. out NULL: nothing is written. Returns 0, or -1 if writing failed. */
int diagnosis_json_step(FILE *out, const struct history *history);
int diagnosis_json(FILE *out, const struct diagnosis *d);
/* Write the HTML page. Errors of the file show when it is closed. */
void diagnosis_html(FILE *out, const struct diagnosis *d);

#endif
