#ifndef HG_TESTS_COMMA_H
#define HG_TESTS_COMMA_H

/* A locale that is made here with localedef: numbers have a decimal comma, as in most of Europe,
 * and i is not the small letter of I, as in Turkish. test_comma_begin makes it the locale of the
 * program. Where there is no localedef (or no glibc) it skips the case, with a message.
 * test_comma_end returns to "C". A case that fails between them leaves the locale to the next case,
 * which sets or ends it itself. */
void test_comma_begin(void);
void test_comma_end(void);

#endif
