#ifndef HG_DOCTOR_REMEDY_H
#define HG_DOCTOR_REMEDY_H

#include "doctor/replay.h"

HG_EXTERN_C_BEGIN

/* A call as a program writes it: longer than the longest of remedy_calls.c with a number. */
#define HG__CALL 96

/* remedy_calls.c: an option, as hg-train has it, in C; "" where there is none. policy: the one in
 * force. train: of a run of train.h; else of a tape of one's own. */
void hg__remedy_call(const char *option, const hg_policy *policy, int train, char call[HG__CALL]);

/* remedy_ops.c: another op in the place of the one at fault, for who writes tapes; *why NULL:
 * there is none. */
void hg__remedy_op(const struct hg__replay *replay, const struct hg__found *found,
                   const char **call, const char **why);

/* Does the result of this line depend on a parameter? */
int hg__reads_weights(const struct hg__replay *replay, const struct hg__entry *line);

/* ---- fits: 0 where an option does not fit; else it is written ---- */

#define HG__OPTION 48
struct hg__patient {
	const struct hg__replay *replay;
	const struct hg__found *found;
	const hg_finding *f;
};
/* remedy_calls.c. Both return 1. x as a person types it: "0.001", not the 0.00100000005 of a
 * float. */
int hg__write_option(char option[HG__OPTION], const char *text);
int hg__write_number(char option[HG__OPTION], const char *name, double x);
/* remedy_ops.c */
int hg__fit_own_mean(const struct hg__patient *p, char option[HG__OPTION]);
/* remedy_update.c */
int hg__fit_lower_rate(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_lower_rate_later(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_clip_later(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_grown_rate(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_restored_moment(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_ungrown_rate(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_lower_decay(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_clip_update(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_clip_moment(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_wider_copy(const struct hg__patient *p, char option[HG__OPTION]);
int hg__fit_no_eps(const struct hg__patient *p, char option[HG__OPTION]);

HG_EXTERN_C_END
#endif
