#ifndef HG_TRAINING_NAMES_H
#define HG_TRAINING_NAMES_H

#include "halfgraph/data.h"
#include "halfgraph/doctor.h"

/* Names as the user knows them: a node has its number in the file's source, even if h5convert has
 * reordered the nodes. */
#define NAME_SIZE 128

/* "node 1433", "node 1433 (row 27)" where the two differ, "node 3 of graph 12 (row 431)", "graph
 * 12", "row 5" of a weight. Returns buffer [NAME_SIZE]. */
const char *name_row(const hg_dataset *d, hg_row_kind kind, int64_t row, char *buffer);
/* The faulty element: "node 1433 (row 27), feature 3", "edge node 5 -> node 7, head 2". */
const char *name_element(const hg_dataset *d, const hg_finding *f, char *buffer);
/* The operand of a term: a neighbour, or "column 12" of a row that is multiplied. */
const char *name_term(const hg_dataset *d, const hg_finding *f, const hg_term *term, char *buffer);
/* An operand of an op: "divisor: conv0/row_norm", "eps". */
const char *name_operand(const hg_finding *f, const hg_operand *operand, char *buffer);
/* The name of a cause, without its explanation: "overflow in accumulation". */
const char *name_cause(hg_cause cause, char *buffer);
/* What happened and what to do: "fp16 overflow while summing 3007 neighbours of node 777. Fix:
 * --precision fp16". Returns buffer [SENTENCE_SIZE]. */
const char *name_headline(const hg_dataset *d, const hg_finding *f, char *buffer);
/* The doctor's sentence with the name of the element, but without the cause, which the headline
 * has. Returns buffer [SENTENCE_SIZE]. */
#define SENTENCE_SIZE 1536
const char *name_sentence(const hg_dataset *d, const hg_finding *f, char *buffer);
/* "1.5", "inf", "nan": the sign of a NaN has no meaning. */
const char *name_number(double x, char *buffer);
/* The same with four digits, for a loss. */
const char *name_rounded(double x, char *buffer);

#endif
