#include "doctor/exam.h"

hg_status hg__exam_remedies(struct hg__exam *exam, struct hg__found *found)
{
	(void)exam;
	(void)found;
	return HG_OK;
}
