/* Matrix Market, coordinate format: a banner line, % comments, "rows columns entries", then "i j
 * [value]" per line, 1-based. Entry (i, j) has row i = destination, column j = source. The fields
 * are real, integer, complex and pattern, the symmetries general, symmetric, skew-symmetric and
 * hermitian (the stored triangle is mirrored). A value of 0 is an edge like any other. Entries with
 * the same row and column add up. A dataset has real weights: of a complex value, which has two
 * columns, it takes the absolute value, and a note says so. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "graph/coo.h"
#include "import/number.h"
#include "import/run.h"

/* How the missing triangle follows from the stored one. */
struct symmetry {
	const char *name;
	/* whether a mirror image is implied; whether the diagonal may be stored */
	int mirrored, diagonal;
	float sign;     /* of the mirror image of a real value */
	int is_complex; /* only complex values have it */
};

struct matrix {
	int values; /* columns of values: 0 for a pattern, 2 for complex numbers */
	const struct symmetry *symmetry;
	int64_t rows, entries;
	struct hg__coo coo;
};

static hg_status refuse_unsupported(const struct lines *lines, const char *what, const char *found,
                                    const char *expected)
{
	return hg__data_fail(lines->message, HG_ERR_FORMAT,
	                     "%s:%" PRId64 ": %s %s is not supported; %s", lines->path, lines->number,
	                     what, found, expected);
}

/* The banner is "%%MatrixMarket matrix coordinate FIELD SYMMETRY", in upper or lower case. */
static hg_status parse_banner(const struct lines *lines, const char *line, struct matrix *mtx)
{
	static const struct symmetry symmetries[] = {{"general", 0, 1, 1, 0},
	                                             {"symmetric", 1, 1, 1, 0},
	                                             {"skew-symmetric", 1, 0, -1, 0},
	                                             {"hermitian", 1, 1, 1, 1}};
	static const struct {
		const char *name;
		int values;
	} fields[] = {{"pattern", 0}, {"real", 1}, {"integer", 1}, {"complex", 2}};
	char word[5][32] = {"", "", "", "", ""};
	if (sscanf(line, "%31s %31s %31s %31s %31s", word[0], word[1], word[2], word[3], word[4]) !=
	        5 ||
	    !hg__same_word(word[0], "%%MatrixMarket") || !hg__same_word(word[1], "matrix"))
		return hg__lines_fail(lines, "expected \"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"",
		                      line);
	if (!hg__same_word(word[2], "coordinate"))
		return refuse_unsupported(lines, "format", word[2],
		                          "coordinate is (a dense array is not a graph)");
	mtx->values = -1;
	for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++)
		if (hg__same_word(word[3], fields[k].name))
			mtx->values = fields[k].values;
	if (mtx->values < 0)
		return refuse_unsupported(lines, "field", word[3],
		                          "real, integer, complex and pattern are");
	for (size_t k = 0; k < sizeof symmetries / sizeof symmetries[0]; k++)
		if (hg__same_word(word[4], symmetries[k].name))
			mtx->symmetry = &symmetries[k];
	if (!mtx->symmetry)
		return refuse_unsupported(lines, "symmetry", word[4],
		                          "general, symmetric, skew-symmetric and hermitian are");
	if (mtx->values == 0 && mtx->symmetry->sign < 0)
		return refuse_unsupported(lines, "symmetry", "skew-symmetric of a pattern",
		                          "a pattern has no sign");
	if (mtx->values < 2 && mtx->symmetry->is_complex)
		return refuse_unsupported(lines, "symmetry", "hermitian of numbers that are not complex",
		                          "they are symmetric");
	return HG_OK;
}

static hg_status parse_size(const struct lines *lines, const char *line, struct matrix *mtx)
{
	int64_t cols = 0;
	const char *at = line, *expected = "expected \"rows columns entries\"";
	int64_t *const size[] = {&mtx->rows, &cols, &mtx->entries};
	for (int k = 0; k < 3; k++)
		HG__TRY(hg__lines_integer(
		    lines, line, expected,
		    "expected rows and columns to 2147483647, entries to 9223372036854775807", &at,
		    size[k]));
	if (*at)
		return hg__lines_fail(lines, expected, line);
	if (mtx->rows != cols)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": the matrix is %" PRId64 " x %" PRId64
		                     ", expected as many rows as columns",
		                     lines->path, lines->number, mtx->rows, cols);
	if (mtx->rows < 0 || mtx->rows > INT32_MAX || mtx->entries < 0)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": %" PRId64 " rows and %" PRId64
		                     " entries; at most 2147483647 rows are possible",
		                     lines->path, lines->number, mtx->rows, mtx->entries);
	mtx->coo.rows = mtx->coo.cols = mtx->rows;
	return hg__coo_reserve(&mtx->coo, 1024, mtx->values > 0, lines->message);
}

/* The value of an entry at *at: 1 in a pattern, the absolute value of a complex number. */
static hg_status read_value(const struct lines *lines, const char *line, const char *expected,
                            const struct matrix *mtx, const char **at, float *value)
{
	float imaginary = 0;
	*value = 1;
	if (mtx->values > 0)
		HG__TRY(hg__lines_number(lines, line, expected, at, value));
	if (mtx->values < 2)
		return HG_OK;
	HG__TRY(hg__lines_number(lines, line, expected, at, &imaginary));
	*value = (float)hypot((double)*value, (double)imaginary);
	return isfinite(*value)
	           ? HG_OK
	           : hg__lines_fail(lines, "the absolute value is beyond float32's 3.40282e+38", line);
}

static hg_status add_entry(const struct lines *lines, const char *line, struct matrix *mtx)
{
	int64_t i = 0, j = 0;
	float value = 1;
	static const char *const forms[] = {"expected \"row column\"",
	                                    "expected \"row column value\", the value finite",
	                                    "expected \"row column real imaginary\", both finite"};
	const char *at = line, *expected = forms[mtx->values];
	HG__TRY(hg__lines_integer(lines, line, expected,
	                          "expected row and column from 1 to 2147483647 at most", &at, &i));
	HG__TRY(hg__lines_integer(lines, line, expected,
	                          "expected row and column from 1 to 2147483647 at most", &at, &j));
	HG__TRY(read_value(lines, line, expected, mtx, &at, &value));
	if (*at)
		return hg__lines_fail(lines, expected, line);
	if (i < 1 || i > mtx->rows || j < 1 || j > mtx->rows)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": entry (%" PRId64 ", %" PRId64
		                     ") is not in 1 .. %" PRId64,
		                     lines->path, lines->number, i, j, mtx->rows);
	if (mtx->symmetry->mirrored && (j > i || (j == i && !mtx->symmetry->diagonal)))
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s:%" PRId64 ": entry (%" PRId64 ", %" PRId64
		                     ") is not below the diagonal of a %s matrix",
		                     lines->path, lines->number, i, j, mtx->symmetry->name);
	HG__TRY(hg__coo_add(&mtx->coo, (int32_t)(i - 1), (int32_t)(j - 1), value, lines->message));
	if (mtx->symmetry->mirrored && i != j)
		HG__TRY(hg__coo_add(&mtx->coo, (int32_t)(j - 1), (int32_t)(i - 1),
		                    mtx->values == 2 ? value : mtx->symmetry->sign * value,
		                    lines->message));
	return HG_OK;
}

static hg_status check_counts(const struct lines *lines, const struct matrix *mtx, int64_t found)
{
	if (found != mtx->entries)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: ends after %" PRId64 " entries, %" PRId64 " are declared",
		                     lines->path, found, mtx->entries);
	if (!hg__nodes_plausible(mtx->rows, found))
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: declares %" PRId64 " rows for %" PRId64 " entries: not a graph",
		                     lines->path, mtx->rows, found);
	return HG_OK;
}

static hg_status read_matrix(struct lines *lines, void *to)
{
	struct matrix *mtx = to;
	char *line = NULL;
	int64_t found = 0;
	int sized = 0;
	HG__TRY(hg__lines_next(lines, &line));
	HG__TRY(parse_banner(lines, line ? line : "", mtx));
	for (;;) {
		HG__TRY(hg__lines_next(lines, &line));
		if (!line)
			break;
		const char *at = hg__skip_separators(line);
		if (*at == 0 || *at == '%')
			continue;
		if (sized && found == mtx->entries)
			return hg__data_fail(lines->message, HG_ERR_FORMAT,
			                     "%s:%" PRId64 ": an entry after the %" PRId64 " declared ones",
			                     lines->path, lines->number, found);
		HG__TRY(sized ? add_entry(lines, at, mtx) : parse_size(lines, at, mtx));
		found += sized;
		sized = 1;
	}
	if (!sized)
		return hg__data_fail(lines->message, HG_ERR_FORMAT, "%s: ends before its size line",
		                     lines->path);
	return check_counts(lines, mtx, found);
}

static hg_status read_all(struct hg__import *in)
{
	struct matrix mtx = {0};
	hg_status status = hg__import_text(in, in->path, read_matrix, &mtx);
	if (status == HG_OK)
		status = hg__coo_to_graph(&mtx.coo, HG__MERGE_SUM, in->d, in->message);
	const int64_t read = mtx.coo.m;
	hg__coo_free(&mtx.coo);
	HG__TRY(status);
	hg__import_note_merged(&in->config, in->path, read, in->d->edges, mtx.values > 0);
	if (mtx.values == 2)
		hg__import_note(&in->config,
		                "%s: the values are complex: their absolute values are the weights",
		                in->path);
	return HG_OK;
}

hg_status hg__import_mtx(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message)
{
	return hg__import_run(paths, count, config, read_all, dataset, message);
}
