/* Gather or scatter? Scattering saves the conversion of each list, and its sums take longer. On a
 * list of m edges, with `uses` sums of F columns,
 *
 *     scatter if uses (t_scatter(m, F) - t_gather(m, F)) < orientations t_convert(m)
 *
 * with 2 orientations, as a conversion makes both. Each time is a number of seconds and a number
 * for each edge, and that of a sum also one for each edge and column. m is the room of the stream:
 * what a list leaves of it is padding. */
#include "core/graph_stream_check.h"

struct time_of {
	double fixed, edge, element;
};

static double seconds(const struct time_of *t, double edges, double columns)
{
	return t->fixed + edges * (t->edge + columns * t->element);
}

/* convert: what both orientations cost more than one pass over the list, for each of them. */
struct times {
	struct time_of scatter, gather, convert;
};

/* From one run of `hg-bench convert`, which prints these times and where they cross, on two cores
 * of an AVX-512 machine with other work beside it: cora-like, pubmed-like, molecules-4k and
 * powerlaw-2m, 16 to 128 columns. Between these graphs the times of an edge differ by a factor of
 * up to seven, and the numbers are chosen by eye between them. A sum that scatters took 1.7 to 26
 * times as long as one that gathers, so a CPU scatters for one narrow sum on a list, or none. */
static const struct times cpu = {
    .scatter = {0.0, 15e-9, 0.8e-9}, .gather = {0.0, 5e-9, 0.13e-9}, .convert = {0.0, 8e-9, 0.0}};
/* From one run on an H200 (cora-like, molecules-4k, powerlaw-2m; 16, 64 and 128 columns), chosen by
 * eye as above: an element of a sum took 0.2 to 1.8 ps gathered and 4.6 to 7.7 scattered. Within a
 * captured step the launches of scattered sums overlap: alone each takes 5 us more on a small list,
 * in a step of two layers 1 us, so the fixed times are those of steps. A step of gcn on these lists
 * was 16 % faster, 1 % slower and 16 % slower when it scattered, and AUTO scatters the first two if
 * it is given the sums of these steps (4 of about 35 columns on cora-like). Given 4 sums of 64
 * columns it gathers cora-like. */
static const struct times cuda = {.scatter = {6e-6, 40e-12, 6e-12},
                                  .gather = {4.5e-6, 25e-12, 0.7e-12},
                                  .convert = {8e-6, 50e-12, 0.0}};

hg_aggregation hg__stream_choose(hg_device device, const hg_graph_stream_config *c)
{
	const struct times *t = device == HG_DEVICE_CPU ? &cpu : &cuda;
	const double m = (double)c->edges + (c->self_loops ? (double)c->nodes : 0.0),
	             columns = (double)c->width, uses = (double)c->uses, orientations = 2.0;
	const double lost = uses * (seconds(&t->scatter, m, columns) - seconds(&t->gather, m, columns)),
	             saved = orientations * seconds(&t->convert, m, 0.0);
	return lost < saved ? HG_AGGREGATION_SCATTER : HG_AGGREGATION_GATHER;
}
