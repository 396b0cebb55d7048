#ifndef HG_DATA_FITNESS_REPORT_H
#define HG_DATA_FITNESS_REPORT_H

#include "halfgraph/fitness.h"
#include "internal.h"

/* A report while it is made. The public part is the first member, so that a pointer to it is one to
 * the whole. */
struct hg__report {
	hg_fitness open;
	hg_fitness_finding *finding; /* open.finding */
	int64_t room;                /* of `finding` */
	hg_fitness_column *column;   /* open.column */
	char *refusal[HG__PARTS];    /* what open.finding[].refusal points to */
	int refusals;
};

/* An examination of a dataset. */
struct hg__exam {
	const hg_dataset *d;
	const char *origin; /* what messages call it */
	struct hg__report *report;
	unsigned broken; /* a bit for each part of hg_dataset_check that does not hold */
	const hg_progress *progress;
	char *message;
};

static inline int hg__holds(const struct hg__exam *exam, enum hg__part part)
{
	return !(exam->broken >> part & 1u);
}

/* Append a finding. Texts that are NULL become "". */
HG_NODISCARD hg_status hg__report_add(const struct hg__exam *exam, hg_fitness_finding finding);
/* Append a finding with a message, which is copied. */
HG_NODISCARD hg_status hg__report_refusal(const struct hg__exam *exam, hg_fitness_kind kind,
                                          hg_severity severity, const char *sentence);

/* What is looked at, each in a file of its own. */
HG_NODISCARD hg_status hg__examine_columns(const struct hg__exam *exam);
HG_NODISCARD hg_status hg__examine_rows(const struct hg__exam *exam);
HG_NODISCARD hg_status hg__examine_labels(const struct hg__exam *exam);
HG_NODISCARD hg_status hg__examine_graph(const struct hg__exam *exam);

/* The third quartile of a normal distribution lies 0.6745 deviations above its mean, the first as
 * far below. */
#define QUARTILES_OF_NORMAL 1.349

/* The values of a column, or all weights. */
struct hg__values {
	const float *at;
	int64_t count, stride;
};
/* facts->low, high and noise from a sample of the values. `facts` has everything else. */
void hg__measure_noise(const struct hg__values *values, hg_fitness_column *facts);
/* facts->distinct and distinct_half from all values. */
HG_NODISCARD hg_status hg__count_distinct(const struct hg__values *values, hg_fitness_column *facts,
                                          char *message);

/* The values of the first columns of sparse features, column by column. */
struct hg__by_column {
	int64_t *begin; /* [columns + 1] */
	float *value;
};
HG_NODISCARD hg_status hg__sort_by_column(const hg_dataset *d, int64_t columns,
                                          struct hg__by_column *sorted, char *message);
void hg__by_column_free(struct hg__by_column *sorted);

#endif
