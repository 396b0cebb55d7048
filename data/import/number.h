#ifndef HG_DATA_IMPORT_NUMBER_H
#define HG_DATA_IMPORT_NUMBER_H

/* The one reader of decimal numbers in text. Its grammar is that of JSON and CSV files,
 *
 *     [+-] (digits [. digits*] | . digits) [(e|E) [+-] digits]
 *
 * in every locale: the separator is a point, and a comma always ends a number. Hexadecimal numbers,
 * "inf" and "nan", which strtod also reads, are no numbers here. Returns the end of the number,
 * with the nearest double in *value (an infinity beyond the range), or NULL where there is none. */
const char *hg__number_read(const char *text, double *value);
/* Whether two words are the same but for the case of A to Z. strcasecmp asks the locale: in a
 * Turkish one I is not the capital of i. */
int hg__same_word(const char *a, const char *b);

#endif
