/* Switches the calling thread to the locale "C" for a while. printf and strtod take the decimal
 * separator from the locale, which belongs to the program that uses the library. */
#ifndef HG_CORE_C_LOCALE_H
#define HG_CORE_C_LOCALE_H

#include <locale.h>

/* Between begin and end the calling thread, and no other, has the locale "C": numbers are printed
 * and parsed with a point. If there is no memory for that locale, nothing changes. The including
 * file must define _POSIX_C_SOURCE 200809L before its first #include. */
struct hg__c_locale {
	locale_t c, before;
};

static inline struct hg__c_locale hg__c_locale_begin(void)
{
	struct hg__c_locale l = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
	if (l.c)
		l.before = uselocale(l.c);
	return l;
}

static inline void hg__c_locale_end(struct hg__c_locale *l)
{
	if (!l->c)
		return;
	(void)uselocale(l->before);
	freelocale(l->c);
}

#endif
