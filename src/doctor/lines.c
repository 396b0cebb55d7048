#include "doctor/lines.h"

#include <math.h>

#include "core/convert.h"

/* What vanishes beside larger numbers of its own row or column is no loss where they are added.
 * But a row or column that has lost most of its mass has nothing that stands for it: what makes a
 * node or a unit differ from another one, or moves its weights, is gone, however large the others
 * are. Each of them is therefore judged by itself. */
#define SHARE_LOST 0.5

/* What is known of a line on the way through the matrix. */
struct line {
	double mass, lost; /* sum of |wide|, and of those that became 0 */
	double largest;    /* of the latter */
	double operand;    /* its largest size in the operand */
	int64_t gone, row, col;
	double wide; /* the largest that is gone, with its sign */
};

struct sheets {
	const struct hg__fetched *got, *wide;
};

static void note(struct line *line, const struct sheets *s, int64_t i, int64_t c, int64_t row)
{
	const double got = hg__fetched_at(s->got, i, c), wide = hg__fetched_at(s->wide, i, c);
	line->mass += fabs(wide);
	if (got != 0.0 || wide == 0.0)
		return;
	line->gone++;
	line->lost += fabs(wide);
	if (!(fabs(wide) > line->largest))
		return;
	line->largest = fabs(wide);
	line->wide = wide;
	line->row = row;
	line->col = c;
}

static void count(const struct hg__lines_ask *ask, const struct line *line, struct hg__lines *lines)
{
	if (!(line->mass > 0.0) || !isfinite(line->mass))
		return;
	lines->lines++;
	if (!(line->lost > SHARE_LOST * line->mass) || !(line->operand >= ask->operand) ||
	    !(line->lost > ask->mass) || !(line->largest > ask->size))
		return;
	lines->lost++;
	lines->gone += line->gone;
	if (line->largest > lines->largest_lost.by)
		lines->largest_lost =
		    (struct hg__off){line->row, line->col, 0.0, line->wide, line->largest};
}

static hg_status fetch(hg_context *ctx, const struct hg__lines_ask *ask, int64_t first,
                       int64_t rows, struct hg__fetched fetched[3])
{
	const struct hg__mat *const mat[3] = {ask->got, ask->wide, ask->beside};
	for (int i = 0; i < 3; i++)
		HG__TRY(hg__fetch_rows(ctx, mat[i], first, rows, &fetched[i]));
	return HG_OK;
}

/* Rows first .. of the matrix. line: [cols] where columns are asked for; else one, made anew for
 * each row. */
static hg_status pass(hg_context *ctx, const struct hg__lines_ask *ask, int64_t first, int64_t rows,
                      struct line *line, struct hg__lines *lines)
{
	struct hg__fetched fetched[3] = {{{0}, {0}}};
	const struct sheets sheets = {&fetched[0], &fetched[1]};
	const hg_status status = fetch(ctx, ask, first, rows, fetched);
	for (int64_t i = 0; status >= 0 && i < rows; i++) {
		if (!ask->columns)
			*line = (struct line){.mass = 0.0};
		for (int64_t c = 0; c < ask->beside->cols; c++) {
			struct line *of = ask->columns ? &line[c] : line;
			of->operand = fmax(of->operand, fabs(hg__fetched_at(&fetched[2], i, c)));
		}
		for (int64_t c = 0; c < ask->got->cols; c++)
			note(ask->columns ? &line[c] : line, &sheets, i, c, first + i);
		if (!ask->columns)
			count(ask, line, lines);
	}
	for (int i = 0; i < 3; i++)
		hg__fetched_free(ctx, &fetched[i]);
	return status;
}

hg_status hg__lines_lost(hg_context *ctx, const struct hg__lines_ask *ask, struct hg__lines *lines)
{
	const int64_t cols = ask->columns ? ask->got->cols : 1;
	const int64_t fit = HG__STAGING_BYTES / ((ask->got->ld + 1) * (int64_t)sizeof(float));
	const int64_t most = fit > 1 ? fit : 1;
	struct hg__buffer memory = {0};
	hg_status status = HG_OK;
	*lines = (struct hg__lines){0};
	HG__TRY(hg__buffer_host(ctx, cols, sizeof(struct line), "doctor: rows or columns", &memory));
	struct line *line = memory.data;
	for (int64_t c = 0; c < cols; c++)
		line[c] = (struct line){.mass = 0.0};
	for (int64_t first = 0; first < ask->got->rows && status >= 0; first += most) {
		const int64_t left = ask->got->rows - first;
		status = pass(ctx, ask, first, left < most ? left : most, line, lines);
	}
	for (int64_t c = 0; c < cols && ask->columns && status >= 0; c++)
		count(ask, &line[c], lines);
	hg__buffer_free(ctx, &memory);
	return status;
}
