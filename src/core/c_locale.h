#ifndef HG_CORE_C_LOCALE_H
#define HG_CORE_C_LOCALE_H

#include <locale.h>

/* The decimal separator of printf and strtod is the locale's, and the locale is chosen by the
 * program that the library is part of. Between these two calls the thread, and no other, has the
 * locale "C": numbers are read and written with a point. Where there is no memory for that locale,
 * nothing changes. Needs _POSIX_C_SOURCE 200809L before the first #include. */
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
