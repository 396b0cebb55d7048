#ifndef HG_DATA_IMPORT_NUMBER_H
#define HG_DATA_IMPORT_NUMBER_H

/* The only reader of decimal numbers in text. Its grammar is that of JSON and CSV files, in every
 * locale:
 *
 *    [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * The decimal separator is a point, and a comma always ends a number. Hexadecimal numbers, "inf"
 * and "nan", which strtod accepts, are refused. Returns the end of the number and stores the
 * nearest double in *value (an infinity beyond the range), or returns NULL where there is no
 * number. */
const char *hg__number_read(const char *text, double *value);
/* Are two words equal except for the case of A to Z? strcasecmp depends on the locale: in a Turkish
 * one I is not the capital of i. */
int hg__same_word(const char *a, const char *b);

#endif
