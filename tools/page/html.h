#ifndef HG_PAGE_HTML_H
#define HG_PAGE_HTML_H

#include <stdint.h>
#include <stdio.h>

#include "halfgraph/doctor.h"

/* The parts of a page. A page uses inline SVG and CSS and no script, and needs no other file; all
 * text that is not fixed goes through page_text. At a width of 390 pixels nothing is cut off: boxes
 * stack, and pictures that would be too small are drawn a second time for that width (classes
 * only-wide, only-narrow). */

/* ---- text.c ---- */

/* Text, also inside a quoted attribute: & < > " ' are escaped; control characters and bytes that
 * are not UTF-8 become "\xHH". */
void page_text(FILE *out, const char *text);
/* The name of an op, a tensor or a setting, "conv0/spmm+bias_add": where a line is full, it breaks
 * after a sign rather than within a word. */
void page_name(FILE *out, const char *name);
/* "1.5", "65504", "inf"; about four digits. */
void page_number(FILE *out, double x);
/* A count with thin spaces between thousands. */
void page_count(FILE *out, int64_t n);
/* "fp16", the name that PyTorch users know. */
const char *page_type(hg_dtype dtype);
/* The class of a headroom: "bad" below 1 bit, "warn" below 3, else "good"; "" for NaN. */
const char *page_headroom_class(double bits);

/* ---- style.c, frame.c ---- */

extern const char *const page_style[]; /* lines, then NULL */
/* The page up to its title, whose text follows; then up to its body, with more lines of style or
 * NULL. */
void page_begin(FILE *out);
void page_begin_body(FILE *out, const char *const *style);
/* The logo, with the name of the tool and a badge, whose text follows. bad: the pulse is red.
 * badge: its class: good, warn or bad. */
void page_brand(FILE *out, const char *tool, int bad, const char *badge);
void page_brand_end(FILE *out);
/* Write a page into a file that appears complete or not at all. Errors of `print` show in its
 * stream. `message` [HG_DATA_MESSAGE] says why it failed. */
hg_status page_write(const char *path, void (*print)(FILE *out, const void *user), const void *user,
                     char *message);

/* ---- axis.c ---- */

/* The vertical axis of a panel, in pixels. It is logarithmic where small values would otherwise be
 * invisible. */
struct page_axis {
	double low, high;
	int logarithm, top, bottom;
};
/* An axis without values; page_axis_take widens it to a finite value. */
struct page_axis page_axis_of(int top, int bottom);
void page_axis_take(struct page_axis *a, double x);
/* Do the values spread over a factor of more than 8? */
int page_axis_spreads(const struct page_axis *a);
double page_axis_height(const struct page_axis *a, double x);
/* Ticks at the least and the largest value and between them, with lines from `left` to `right`; one
 * tick where both are the same; none without values. */
void page_axis_ticks(FILE *out, const struct page_axis *a, int left, int right, int middle);
/* 1, 2 or 5 times a power of ten, so that at most `most` ticks fit into the range. */
double page_tick_step(double range, int most);

/* ---- plot.c ---- */

/* A curve over epochs: y[k] is its value at x = first + k; NaN: none. */
struct page_series {
	const char *name;      /* in the legend; NULL: not there */
	int colour;            /* 0 to PAGE_COLOURS - 1 */
	int thin;              /* 1: one of many of this colour; 2: dashed */
	const double *y;       /* [count] */
	int64_t count, stride; /* stride: doubles from one value to the next */
};
enum { PAGE_COLOURS = 8 };
/* A mark at a place on the x axis. */
struct page_mark {
	int64_t at;
	int bad; /* 1: red */
	char title[160];
};
struct page_plot {
	const char *title, *axis; /* "loss", "epoch" */
	const struct page_series *series;
	int count;
	int64_t first; /* x of y[0] */
	int logarithm; /* 1: the axis may be logarithmic */
	int percent;   /* 1: values from 0 to 1 are shown in percent */
	int steps;     /* 1: values hold until the next one */
	const struct page_mark *mark;
	int64_t marks;
};
/* A figure: title, legend where several series have names, and the picture twice. */
void page_plot(FILE *out, const struct page_plot *plot);
/* A line in the colour of a series, for a legend. */
void page_swatch(FILE *out, int colour, int thin);

/* ---- tensors.c ---- */

/* The section "Headroom of every tensor". origin: the tensor that is marked, or NULL. */
void page_tensor_section(FILE *out, const hg_doctor_tensor *tensor, int tensors, int64_t step,
                         double loss_scale, const char *origin);

#endif
