/* Matrix Market, coordinate format: a banner line, % comments, "rows columns entries", then "i j
 * [value]" per line, 1-based. Entry (i, j) has row i = destination, column j = source. The fields
 * real, integer and pattern are read, and the symmetries general, symmetric and skew-symmetric (the
 * stored triangle is mirrored). A value of 0 is an edge like any other. Entries with the same row
 * and column add up. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/coo.h"
#include "import/importers.h"
#include "import/lines.h"
#include "import/number.h"

/* How the missing triangle follows from the stored one. */
struct symmetry {
	const char *name;
	/* whether a mirror image is implied; whether the diagonal may be stored */
	int mirrored, diagonal;
	float sign;
};

struct matrix {
	int has_values;
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
	static const struct symmetry symmetries[] = {
	    {"general", 0, 1, 1}, {"symmetric", 1, 1, 1}, {"skew-symmetric", 1, 0, -1}};
	char word[5][32] = {"", "", "", "", ""};
	if (sscanf(line, "%31s %31s %31s %31s %31s", word[0], word[1], word[2], word[3], word[4]) !=
	        5 ||
	    !hg__same_word(word[0], "%%MatrixMarket") || !hg__same_word(word[1], "matrix"))
		return hg__lines_fail(lines, "expected \"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"",
		                      line);
	if (!hg__same_word(word[2], "coordinate"))
		return refuse_unsupported(lines, "format", word[2],
		                          "coordinate is (a dense array is not a graph)");
	const int pattern = hg__same_word(word[3], "pattern");
	if (!pattern && !hg__same_word(word[3], "real") && !hg__same_word(word[3], "integer"))
		return refuse_unsupported(lines, "field", word[3], "real, integer and pattern are");
	mtx->has_values = !pattern;
	for (size_t k = 0; k < sizeof symmetries / sizeof symmetries[0]; k++)
		if (hg__same_word(word[4], symmetries[k].name))
			mtx->symmetry = &symmetries[k];
	if (!mtx->symmetry)
		return refuse_unsupported(lines, "symmetry", word[4],
		                          "general, symmetric and skew-symmetric are");
	if (pattern && mtx->symmetry->sign < 0)
		return refuse_unsupported(lines, "symmetry", "skew-symmetric of a pattern",
		                          "a pattern has no sign");
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
	return hg__coo_reserve(&mtx->coo, 1024, mtx->has_values, lines->message);
}

static hg_status add_entry(const struct lines *lines, const char *line, struct matrix *mtx)
{
	int64_t i = 0, j = 0;
	float value = 1;
	const char *at = line, *expected = mtx->has_values
	                                       ? "expected \"row column value\", the value finite"
	                                       : "expected \"row column\"";
	HG__TRY(hg__lines_integer(lines, line, expected,
	                          "expected row and column from 1 to 2147483647 at most", &at, &i));
	HG__TRY(hg__lines_integer(lines, line, expected,
	                          "expected row and column from 1 to 2147483647 at most", &at, &j));
	if (mtx->has_values)
		HG__TRY(hg__lines_number(lines, line, expected, &at, &value));
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
		                    mtx->symmetry->sign * value, lines->message));
	return HG_OK;
}

/* Nodes cost memory even without edges, and a size line can declare any number of them. */
static hg_status check_counts(const struct lines *lines, const struct matrix *mtx, int64_t found)
{
	if (found != mtx->entries)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: ends after %" PRId64 " entries, %" PRId64 " are declared",
		                     lines->path, found, mtx->entries);
	if (mtx->rows > 1000000 + 1000 * found)
		return hg__data_fail(lines->message, HG_ERR_FORMAT,
		                     "%s: declares %" PRId64 " rows for %" PRId64 " entries: not a graph",
		                     lines->path, mtx->rows, found);
	return HG_OK;
}

static hg_status read_matrix(struct lines *lines, struct matrix *mtx)
{
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

static hg_status build_graph(struct matrix *mtx, hg_dataset *d, char *message)
{
	struct hg__sparse m = {0};
	HG__TRY(hg__coo_to_sparse(&mtx->coo, HG__MERGE_SUM, &m, message));
	hg__sparse_drop_ones(&m);
	d->nodes = m.rows;
	d->edges = m.m;
	d->rowptr = m.rowptr;
	d->col = m.col;
	d->weight = m.value;
	return HG_OK;
}

hg_status hg__import_mtx(const char *const *paths, int count, const hg_import_config *config,
                         hg_dataset **dataset, char *message)
{
	struct lines lines;
	struct matrix mtx = {0};
	hg_import_config c;
	(void)count;
	HG__TRY(hg__import_configure(config, &c, message));
	HG__TRY(hg_dataset_new(dataset, message));
	hg_status status = hg__import_name(*dataset, paths[0], message);
	if (status == HG_OK) {
		status = hg__lines_open(&lines, paths[0], c.progress, message);
		if (status == HG_OK)
			status = read_matrix(&lines, &mtx);
		hg__lines_close(&lines);
	}
	if (status == HG_OK)
		status = build_graph(&mtx, *dataset, message);
	if (status == HG_OK)
		hg__import_note_merged(&c, paths[0], mtx.coo.m, (*dataset)->edges, mtx.has_values);
	if (status == HG_OK)
		status = hg_dataset_check(*dataset, paths[0], message);
	hg__coo_free(&mtx.coo);
	if (status < 0) {
		hg_dataset_free(*dataset);
		*dataset = NULL;
	}
	return status;
}
