/* The tape as a picture: one row a node, its result on the left, from top to bottom, the gradient of that on the right, from bottom to top.
 *
 *     left arcs   results that later ops read            right arcs   gradients that flow back the same ways
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

static const int ROW = 50, BOX = 34, TOP = 40, FORWARD_X = 150, BACKWARD_X = 560, BOX_WIDE = 320, WIDE = 1046;

struct picture {
	FILE *out;
	const struct diagnosis *d;
	int *row; /* [nodes] of a tape node; -1: it has none */
	int nodes, rows;
	const hg_doctor_tensor **forward, **backward; /* [rows]: result, and its gradient; NULL: there is none */
};

static int largest_node(const hg_doctor_report *r)
{
	int most = -1;
	for (int i = 0; i < r->tensors; i++)
		most = r->tensor[i].node > most ? r->tensor[i].node : most;
	return most;
}

static int row_of(const struct picture *p, int node)
{
	return node >= 0 && node < p->nodes ? p->row[node] : -1;
}

static void side_fill(struct picture *p, int backward)
{
	const hg_doctor_report *r = p->d->report;
	for (int i = 0; i < r->tensors; i++) {
		const hg_doctor_tensor *t = &r->tensor[i];
		if (t->node < 0 || !t->backward != !backward)
			continue;
		if (!backward && p->row[t->node] < 0)
			p->row[t->node] = p->rows++;
		if (p->row[t->node] >= 0)
			(backward ? p->backward : p->forward)[p->row[t->node]] = t;
	}
}

/* 0, or -1: out of memory. */
static int arrange(struct picture *p)
{
	const size_t room = (size_t)p->d->report->tensors + 1;
	p->nodes = largest_node(p->d->report) + 1;
	p->row = malloc((size_t)(p->nodes + 1) * sizeof *p->row);
	p->forward = calloc(room, sizeof(const hg_doctor_tensor *));
	p->backward = calloc(room, sizeof(const hg_doctor_tensor *));
	if (!p->row || !p->forward || !p->backward)
		return -1;
	for (int i = 0; i < p->nodes; i++)
		p->row[i] = -1;
	side_fill(p, 0);
	side_fill(p, 1);
	return 0;
}

/* The place of a node in the chain of the first finding, from 1; 0: it is not there. */
static int link_of(const struct picture *p, int node, int backward)
{
	const hg_finding *f = p->d->findings ? p->d->finding : NULL;
	for (int i = 0; f && i < f->links; i++)
		if (f->chain[i].node == node && !f->chain[i].backward == !backward)
			return i + 1;
	return 0;
}

static double row_y(int row)
{
	return TOP + ROW * row;
}

static void print_layers(const struct picture *p)
{
	int band = 0;
	for (int from = 0, to; from < p->rows; from = to, band++) {
		const char *layer = p->forward[from]->layer;
		for (to = from + 1; to < p->rows && strcmp(p->forward[to]->layer, layer) == 0; to++)
			;
		if (band % 2 == 0)
			(void)fprintf(p->out, "<rect y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"band\"/>", row_y(from) - 8, WIDE, (to - from) * ROW);
		(void)fprintf(p->out, "<text x=\"14\" y=\"%.0f\" class=\"bold\">", row_y(from) + 21);
		page_text(p->out, *layer ? layer : "loss");
		(void)fputs("</text>\n", p->out);
	}
}

static void print_tip(const struct picture *p, double x, double y, int dx, int dy, int hot)
{
	const int wx = dx ? 6 * dx : 4, wy = dy ? 6 * dy : 4;
	if (dy)
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fl-%d %dh%dz\" class=\"%s\"/>", x, y, wx, -wy, 2 * wx, hot ? "hottip" : "tip");
	else
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fl%d -%dv%dz\" class=\"%s\"/>", x, y, -wx, wy, 2 * wy, hot ? "hottip" : "tip");
}

/* From the box of row `from` to that of row `to`, in the forward column (side -1) or the backward one (side 1). Neighbours are joined straight, others by an arc on
 * the column's outer side, the farther apart the wider. */
static void print_edge(const struct picture *p, int from, int to, int side, int hot)
{
	const double x = side < 0 ? FORWARD_X : BACKWARD_X + BOX_WIDE;
	const int down = to > from ? 1 : -1, far = (to - from) * down;
	if (far == 1) {
		const double middle = side < 0 ? FORWARD_X + 40 : BACKWARD_X + BOX_WIDE - 40;
		const double y0 = row_y(from) + (down > 0 ? BOX : 0), y1 = row_y(to) + (down > 0 ? 0 : BOX);
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fV%.1f\" class=\"%s\"/>", middle, y0, y1 - 3 * down, hot ? "hot" : "edge");
		print_tip(p, middle, y1, 0, down, hot);
		return;
	}
	const double y0 = row_y(from) + BOX / 2.0 + 5 * down, y1 = row_y(to) + BOX / 2.0 - 5 * down, reach = side * fmin(26 + 12.0 * far, 110);
	(void)fprintf(p->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" class=\"%s\"/>", x, y0, x + reach, y0, x + reach, y1, x + 3 * side, y1,
	              hot ? "hot" : "edge");
	print_tip(p, x, y1, -side, 0, hot);
}

/* Does the fault go from one to the other? */
static int is_hot(const struct picture *p, int from, int to, int backward)
{
	const int a = link_of(p, p->forward[from]->node, backward), b = link_of(p, p->forward[to]->node, backward);
	return a && b > a;
}

/* The loss has no gradient: from its result the way turns round, to the gradient of row `to`. */
static void print_turn(const struct picture *p, int loss, int to)
{
	const double y0 = row_y(loss) + BOX / 2.0, x1 = BACKWARD_X + BOX_WIDE / 2.0, y1 = row_y(to) + BOX;
	const int hot = link_of(p, p->forward[loss]->node, 0) && link_of(p, p->forward[to]->node, 1);
	(void)fprintf(p->out, "<path d=\"M%d %.1fH%.1fQ%.1f %.1f %.1f %.1fV%.1f\" class=\"%s\"/>", FORWARD_X + BOX_WIDE, y0, x1 - 12, x1, y0, x1, y0 - 12, y1 + 3,
	              hot ? "hot" : "edge");
	print_tip(p, x1, y1, 0, -1, hot);
}

static void print_operands(const struct picture *p, int row)
{
	for (int i = 0; i < 8; i++) {
		const int from = row_of(p, p->forward[row]->in[i]);
		if (from < 0 || from >= row)
			continue;
		print_edge(p, from, row, -1, is_hot(p, from, row, 0));
		if (p->backward[from] && p->backward[row])
			print_edge(p, row, from, 1, is_hot(p, row, from, 1));
		else if (p->backward[from])
			print_turn(p, row, from);
	}
}

/* The part of the range of a half, from 2^-24 on, that the largest value leaves free. */
static void print_meter(const struct picture *p, const hg_doctor_tensor *t, double x, double y)
{
	const double used = t->amax > 0 ? fmin(fmax((log2(t->amax) + 24) / 40, 0.02), 1) : 0, wide = BOX_WIDE - 24;
	if (t->dtype != HG_F16)
		return;
	(void)fprintf(p->out,
	              "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"3\" rx=\"1.5\" class=\"box\"/><rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"3\" "
	              "rx=\"1.5\" class=\"%s\"/>",
	              x + 12, y + 26, wide, x + 12, y + 26, wide * (isnan(used) ? 1 : used), t->nonfinite ? "bad" : page_headroom_class(t->headroom));
}

static void print_tooltip(const struct picture *p, const hg_doctor_tensor *t)
{
	(void)fputs("<title>", p->out);
	page_text(p->out, t->name);
	(void)fprintf(p->out, ", %s [%lld, %lld], largest ", hg_dtype_name(t->dtype), (long long)t->rows, (long long)t->cols);
	page_number(p->out, t->amax);
	(void)fputs("</title>", p->out);
}

static void print_state(const struct picture *p, const hg_doctor_tensor *t)
{
	if (t->nonfinite) {
		page_count(p->out, t->nonfinite);
		(void)fputs(" not finite", p->out);
	} else if (t->dtype == HG_F16 && isfinite(t->headroom))
		(void)fprintf(p->out, "%.1f bits", t->headroom);
	else
		(void)fputs(hg_dtype_name(t->dtype), p->out);
}

static void print_number(const struct picture *p, int link, double x, double y)
{
	if (link)
		(void)fprintf(p->out, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"9\" class=\"bad\"/><text x=\"%.0f\" y=\"%.1f\" class=\"num\">%d</text>", x, y, x, y + 3.5,
		              link);
}

static void print_box(const struct picture *p, int row, int backward)
{
	const hg_doctor_tensor *t = backward ? p->backward[row] : p->forward[row];
	const double x = backward ? BACKWARD_X : FORWARD_X, y = row_y(row);
	const int link = t ? link_of(p, t->node, backward) : 0;
	if (!t)
		return;
	(void)fputs("<g>", p->out);
	print_tooltip(p, t);
	(void)fprintf(p->out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"node%s hit\"/><text x=\"%.0f\" y=\"%.0f\">", x, y, BOX_WIDE,
	              BOX, link ? " hotbox" : "", x + 12, y + 18);
	if (backward)
		(void)fputs("&#8706; ", p->out);
	page_text(p->out, p->forward[row]->op);
	(void)fprintf(p->out, "</text><text x=\"%.0f\" y=\"%.0f\" class=\"t2 end\">", x + BOX_WIDE - 12, y + 18);
	print_state(p, t);
	(void)fputs("</text>", p->out);
	print_meter(p, t, x, y);
	print_number(p, link, x, y);
	(void)fputs("</g>\n", p->out);
}

static void print_rows(const struct picture *p)
{
	for (int k = 0; k < p->rows; k++) {
		print_operands(p, k);
		if (p->backward[k])
			(void)fprintf(p->out, "<path d=\"M%d %.1fH%d\" class=\"saved\"/>\n", FORWARD_X + BOX_WIDE, row_y(k) + BOX / 2.0, BACKWARD_X);
	}
	for (int k = 0; k < p->rows; k++) {
		print_box(p, k, 0);
		print_box(p, k, 1);
	}
}

static void print_picture(const struct picture *p)
{
	const double high = row_y(p->rows) + 4;
	(void)fprintf(p->out,
	              "<section>\n<h2>The tape</h2>\n<p class=\"soft\">One row an op: its result on the left, downwards, and the gradient of that result on the "
	              "right, upwards. "
	              "The bar in a box is the part of fp16's range that its largest value takes%s.</p>\n<div class=\"wide\">",
	              p->d->findings && p->d->finding->links ? "; numbers in red are the way that the fault took" : "");
	(void)fprintf(p->out,
	              "<svg viewBox=\"0 0 %d %.0f\" width=\"%d\" role=\"img\" aria-label=\"The tape\">\n<text x=\"%d\" y=\"20\" class=\"t2\">forward "
	              "&#8595;</text><text x=\"%d\" "
	              "y=\"20\" class=\"t2\">backward &#8593;</text>\n",
	              WIDE, high, WIDE, FORWARD_X, BACKWARD_X);
	print_layers(p);
	print_rows(p);
	(void)fputs("</svg></div>\n</section>\n", p->out);
}

void page_tape(FILE *out, const struct diagnosis *d)
{
	struct picture p = {.out = out, .d = d};
	if (!d->report || !d->report->tensors)
		return;
	if (arrange(&p) == 0 && p.rows)
		print_picture(&p);
	free(p.row);
	free(p.forward);
	free(p.backward);
}
