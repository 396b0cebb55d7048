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
/* Not measured yet. gather: 7.5, 13.2 and 26 ps an edge were measured on an H200 at 32, 64 and 128
 * columns. scatter: derived from 8 bytes of integer reductions in the second-level cache for each
 * element, at 5 TB/s; it has two launches more. convert: derived, 20 to 25 ps an edge, and 3 of 6
 * launches less. */
static const struct times cuda = {.scatter = {6e-6, 0.0, 1.6e-12},
                                  .gather = {2e-6, 1.3e-12, 0.19e-12},
                                  .convert = {5e-6, 22e-12, 0.0}};

hg_aggregation hg__stream_choose(hg_device device, const hg_graph_stream_config *c)
{
	const struct times *t = device == HG_DEVICE_CPU ? &cpu : &cuda;
	const double m = (double)c->edges + (c->self_loops ? (double)c->nodes : 0.0),
	             columns = (double)c->width, uses = (double)c->uses, orientations = 2.0;
	const double lost = uses * (seconds(&t->scatter, m, columns) - seconds(&t->gather, m, columns)),
	             saved = orientations * seconds(&t->convert, m, 0.0);
	return lost < saved ? HG_AGGREGATION_SCATTER : HG_AGGREGATION_GATHER;
}
