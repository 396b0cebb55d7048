#ifndef HG_TESTS_FAULTS_COMPARE_H
#define HG_TESTS_FAULTS_COMPARE_H

#include "faults/fault.h"

/* Compares the doctor's first finding with the fault that was planted and with what its planter
 * expects. */
struct mismatch {
	int count;
	char text[512]; /* what differs: found and expected */
};
struct mismatch compare(const hg_doctor_report *report, const struct fault *f,
                        const struct expected *expected);

/* Checks compare() itself: it must find a mismatch when anything else is expected. */
void check_compare(const hg_doctor_report *report, const struct fault *f,
                   const struct expected *expected);

#endif
