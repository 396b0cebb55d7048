#ifndef HG_TESTS_COMMA_H
#define HG_TESTS_COMMA_H

/* A locale as another country's, made here with localedef: numbers have a decimal comma, as in most
 * of Europe, and i is not the small letter of I, as in Turkish. Begin makes it the program's; where
 * there is no localedef (or no glibc) the case is skipped, loudly. End gives "C" back. A case that
 * fails between them leaves the locale to the next case, which sets or ends it itself. */
void test_comma_begin(void);
void test_comma_end(void);

#endif
