/* The step as a picture. Each row is an op: its result on the left, from top to bottom, and the
 * gradient of its result on the right, from bottom to top.
 *
 *    left arcs     results that later ops read
 *    right arcs    gradients that flow back along the same edges */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

/* The layout in pixels: once for a wide window, once for a telephone. */
struct layout {
	const char *class;
	int row, box, top;     /* heights: of a row, of a box in it, of the space above the first row */
	int forward, backward; /* left edges of the boxes */
	int box_wide, wide;    /* widths: of a box, of the picture */
	double arc, arcs;      /* how far an arc extends per row that it passes, and at most */
	int letters;           /* letters of a name that fit into a box */
	/* space for a layer's name above its first row; 0: the name stands beside the row */
	int above;
	int two_lines; /* the state of a tensor stands below its name instead of after it */
};
static const struct layout layouts[] = {
    {"only-wide", 50, 34, 40, 150, 560, 320, 1046, 12, 110, 33, 0, 0},
    {"only-narrow", 66, 46, 52, 26, 184, 130, 340, 3, 22, 16, 20, 1},
};

struct picture {
	FILE *out;
	const struct diagnosis *d;
	const struct layout *l;
	int *row;  /* [nodes] the row of a tape node; -1: none */
	int *band; /* [rows + 1] the number of layers above a row */
	int nodes, rows;
	const hg_doctor_tensor **forward, **backward; /* [rows] result and its gradient; NULL: none */
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

/* Returns 0, or -1 if memory ran out. */
static int arrange(struct picture *p)
{
	const size_t room = (size_t)p->d->report->tensors + 1;
	p->nodes = largest_node(p->d->report) + 1;
	p->row = malloc((size_t)(p->nodes + 1) * sizeof *p->row);
	p->band = calloc(room, sizeof *p->band);
	p->forward = calloc(room, sizeof(const hg_doctor_tensor *));
	p->backward = calloc(room, sizeof(const hg_doctor_tensor *));
	if (!p->row || !p->band || !p->forward || !p->backward)
		return -1;
	for (int i = 0; i < p->nodes; i++)
		p->row[i] = -1;
	side_fill(p, 0);
	side_fill(p, 1);
	for (int k = 1; k <= p->rows; k++) {
		const int begins =
		    k < p->rows && strcmp(p->forward[k]->layer, p->forward[k - 1]->layer) != 0;
		p->band[k] = p->band[k - 1] + begins;
	}
	return 0;
}

/* The position of a tape node in the chain of the first finding, from 1; 0: it is not in the
 * chain. */
static int chain_position(const struct picture *p, int node, int backward)
{
	const hg_finding *f = p->d->findings ? p->d->finding : NULL;
	for (int i = 0; f && i < f->links; i++)
		if (f->chain[i].node == node && !f->chain[i].backward == !backward)
			return i + 1;
	return 0;
}

static double row_y(const struct picture *p, int row)
{
	return p->l->top + p->l->row * row + p->l->above * p->band[row];
}

static void print_layers(const struct picture *p)
{
	int band = 0;
	for (int from = 0, to; from < p->rows; from = to, band++) {
		const char *layer = p->forward[from]->layer;
		for (to = from + 1; to < p->rows && strcmp(p->forward[to]->layer, layer) == 0; to++)
			;
		if (band % 2 == 0)
			(void)fprintf(p->out,
			              "<rect y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"band\"/>",
			              row_y(p, from) - (p->l->row - p->l->box) / 2.0 - p->l->above, p->l->wide,
			              (to - from) * p->l->row + p->l->above);
		(void)fprintf(p->out, "<text x=\"%d\" y=\"%.0f\" class=\"bold halo\">",
		              p->l->above ? 3 : 14,
		              p->l->above ? row_y(p, from) - 12 : row_y(p, from) + 21);
		page_text(p->out, *layer ? layer : "loss");
		(void)fputs("</text>\n", p->out);
	}
}

static void print_tip(const struct picture *p, double x, double y, int dx, int dy, int hot)
{
	const int wx = dx ? 6 * dx : 4, wy = dy ? 6 * dy : 4;
	if (dy)
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fl-%d %dh%dz\" class=\"%s\"/>", x, y, wx, -wy,
		              2 * wx, hot ? "hottip" : "tip");
	else
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fl%d -%dv%dz\" class=\"%s\"/>", x, y, -wx, wy,
		              2 * wy, hot ? "hottip" : "tip");
}

/* Draw an edge from the box of row `from` to the box of row `to`, in the forward column (side -1)
 * or the backward column (side 1). Adjacent rows are joined by a straight line, others by an arc on
 * the outer side of the column, which is the wider the farther apart they are. */
static void print_edge(const struct picture *p, int from, int to, int side, int hot)
{
	const double x = side < 0 ? p->l->forward : p->l->backward + p->l->box_wide;
	const int down = to > from ? 1 : -1, far = (to - from) * down;
	if (far == 1) {
		const double middle = side < 0 ? p->l->forward + 40 : p->l->backward + p->l->box_wide - 40;
		const double y0 = row_y(p, from) + (down > 0 ? p->l->box : 0),
		             y1 = row_y(p, to) + (down > 0 ? 0 : p->l->box);
		(void)fprintf(p->out, "<path d=\"M%.1f %.1fV%.1f\" class=\"%s\"/>", middle, y0,
		              y1 - 3 * down, hot ? "hot" : "edge");
		print_tip(p, middle, y1, 0, down, hot);
		return;
	}
	const double y0 = row_y(p, from) + p->l->box / 2.0 + 5 * down,
	             y1 = row_y(p, to) + p->l->box / 2.0 - 5 * down,
	             reach = side * fmin(p->l->arc * (2 + far), p->l->arcs);
	(void)fprintf(p->out, "<path d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" class=\"%s\"/>", x,
	              y0, x + reach, y0, x + reach, y1, x + 3 * side, y1, hot ? "hot" : "edge");
	print_tip(p, x, y1, -side, 0, hot);
}

/* Does the fault go from one to the other? */
static int is_hot(const struct picture *p, int from, int to, int backward)
{
	const int a = chain_position(p, p->forward[from]->node, backward),
	          b = chain_position(p, p->forward[to]->node, backward);
	return a && b > a;
}

/* The loss has no gradient box: draw an edge from its result to the gradient of row `to`. */
static void print_turn(const struct picture *p, int loss, int to)
{
	const double y0 = row_y(p, loss) + p->l->box / 2.0, x1 = p->l->backward + p->l->box_wide / 2.0,
	             y1 = row_y(p, to) + p->l->box;
	const int hot =
	    chain_position(p, p->forward[loss]->node, 0) && chain_position(p, p->forward[to]->node, 1);
	(void)fprintf(p->out, "<path d=\"M%d %.1fH%.1fQ%.1f %.1f %.1f %.1fV%.1f\" class=\"%s\"/>",
	              p->l->forward + p->l->box_wide, y0, x1 - 12, x1, y0, x1, y0 - 12, y1 + 3,
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

/* The part of fp16's range, from 2^-24 on, that the largest value uses. */
static void print_meter(const struct picture *p, const hg_doctor_tensor *t, double x, double y)
{
	const double used = t->amax > 0 ? fmin(fmax((log2(t->amax) + 24) / 40, 0.02), 1) : 0,
	             wide = p->l->box_wide - 24;
	if (t->dtype != HG_F16)
		return;
	(void)fprintf(p->out,
	              "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"3\" rx=\"1.5\" "
	              "class=\"box\"/><rect x=\"%.0f\" y=\"%.0f\" width=\"%.1f\" height=\"3\" "
	              "rx=\"1.5\" class=\"%s\"/>",
	              x + 12, y + 26, wide, x + 12, y + 26, wide * (isnan(used) ? 1 : used),
	              t->nonfinite ? "bad" : page_headroom_class(t->headroom));
}

static void print_tooltip(const struct picture *p, const hg_doctor_tensor *t)
{
	(void)fputs("<title>", p->out);
	page_text(p->out, t->name);
	(void)fprintf(p->out, ", %s [%lld, %lld], largest ", page_type(t->dtype), (long long)t->rows,
	              (long long)t->cols);
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
		(void)fputs(page_type(t->dtype), p->out);
}

/* The position in the chain of the fault. Red is where it began. */
static void print_number(const struct picture *p, int link, double x, double y)
{
	if (!link)
		return;
	(void)fprintf(p->out,
	              "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"9\" class=\"%s\"/>"
	              "<text x=\"%.0f\" y=\"%.1f\" class=\"num%s\">%d</text>",
	              x, y, link == 1 ? "bad" : "way", x, y + 3.5, link == 1 ? " first" : "", link);
}

/* The name of the op within its layer, "linear (mlp1.weight)", cut to fit. */
static void print_title(const struct picture *p, int row, int backward)
{
	const hg_doctor_tensor *t = p->forward[row];
	const size_t layer = strlen(t->layer);
	const char *name = layer && strncmp(t->name, t->layer, layer) == 0 && t->name[layer] == '/'
	                       ? t->name + layer + 1
	                       : t->name;
	const int room = p->l->letters - 2 * backward, fits = (int)strlen(name) <= room;
	char text[NAME_SIZE];
	(void)snprintf(text, sizeof text, "%.*s", fits ? room : room - 1, name);
	if (backward)
		(void)fputs("&#8706; ", p->out);
	page_text(p->out, text);
	if (!fits)
		(void)fputs("&#8230;", p->out);
}

static void print_box(const struct picture *p, int row, int backward)
{
	const hg_doctor_tensor *t = backward ? p->backward[row] : p->forward[row];
	const double x = backward ? p->l->backward : p->l->forward, y = row_y(p, row);
	const int link = t ? chain_position(p, t->node, backward) : 0, below = p->l->two_lines;
	if (!t)
		return;
	(void)fputs("<g>", p->out);
	print_tooltip(p, t);
	(void)fprintf(
	    p->out,
	    "<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" class=\"node%s hit\"/>"
	    "<text x=\"%.0f\" y=\"%.0f\">",
	    x, y, p->l->box_wide, p->l->box, link == 1 ? " hotbox" : "", x + 12, y + 18);
	print_title(p, row, backward);
	(void)fprintf(p->out, "</text><text x=\"%.0f\" y=\"%.0f\" class=\"t2%s\">",
	              below ? x + 12 : x + p->l->box_wide - 12, y + (below ? 32 : 18),
	              below ? "" : " end");
	print_state(p, t);
	(void)fputs("</text>", p->out);
	print_meter(p, t, x, y + p->l->box - 34);
	print_number(p, link, x, y);
	(void)fputs("</g>\n", p->out);
}

static void print_rows(const struct picture *p)
{
	for (int k = 0; k < p->rows; k++) {
		print_operands(p, k);
		if (p->backward[k])
			(void)fprintf(p->out, "<path d=\"M%d %.1fH%d\" class=\"saved\"/>\n",
			              p->l->forward + p->l->box_wide, row_y(p, k) + p->l->box / 2.0,
			              p->l->backward);
	}
	for (int k = 0; k < p->rows; k++) {
		print_box(p, k, 0);
		print_box(p, k, 1);
	}
}

static void print_picture(const struct picture *p)
{
	const int high = (int)row_y(p, p->rows) + 4;
	(void)fprintf(p->out,
	              "<svg viewBox=\"0 0 %d %d\" width=\"%d\" class=\"%s\" role=\"img\" "
	              "aria-label=\"The step\">\n",
	              p->l->wide, high, p->l->wide, p->l->class);
	(void)fprintf(p->out,
	              "<text x=\"%d\" y=\"20\" class=\"t2\">forward &#8595;</text>"
	              "<text x=\"%d\" y=\"20\" class=\"t2\">backward &#8593;</text>\n",
	              p->l->forward, p->l->backward);
	print_layers(p);
	print_rows(p);
	(void)fputs("</svg>\n", p->out);
}

static void print_section(struct picture *p)
{
	(void)fputs("<section>\n<h2>The step, op by op</h2>\n<p class=\"soft\">One row an op: its "
	            "result on the left, "
	            "downwards, and the gradient of that result on the right, upwards. The bar in a "
	            "box is the part of "
	            "fp16's range that its largest value takes",
	            p->out);
	if (p->d->findings && p->d->finding->links)
		(void)fputs("; red is where the fault began, and the numbers show how it spread", p->out);
	(void)fputs(".</p>\n", p->out);
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
		p->l = &layouts[i];
		print_picture(p);
	}
	(void)fputs("</section>\n", p->out);
}

void page_tape(FILE *out, const struct diagnosis *d)
{
	struct picture p = {.out = out, .d = d};
	if (!d->report || !d->report->tensors)
		return;
	if (arrange(&p) == 0 && p.rows)
		print_section(&p);
	free(p.row);
	free(p.band);
	free(p.forward);
	free(p.backward);
}
