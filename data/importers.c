/* The table of source formats: a new format is a file in import/ and a row here. */
#include "import/importers.h"

hg_status hg__import_h5(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message)
{
	(void)count;
	hg_import_config c;
	HG__TRY(hg__import_configure(config, &c, message));
	return hg_dataset_read(paths[0], dataset, message);
}

const hg_importer *hg_importers(size_t *count)
{
	static const hg_importer table[] = {
	    {"npz",
	     "numpy archive with adj_*, attr_*, labels, train_idx/val_idx/test_idx (gnn-benchmark)",
	     ".npz", 1, hg__import_npz},
	    {"tu",
	     "TU Dortmund's graph-classification sets: NAME_A.txt, with NAME_graph_indicator.txt, "
	     "NAME_graph_labels.txt and optional node files beside it",
	     "_A.txt", 1, hg__import_tu},
	    {"edges",
	     "text, one \"source destination\" per line, # comments, any ids (SNAP); plain or gzip",
	     ".txt .txt.gz .edges .edges.gz .el .el.gz", 0, hg__import_edges},
	    {"mtx", "Matrix Market coordinate file; entry (i, j) is an edge j -> i; plain or gzip",
	     ".mtx .mtx.gz", 1, hg__import_mtx},
	    {"planetoid",
	     "Planetoid's pickled files: ind.NAME, one of ind.NAME.x, tx, allx, y, ty, ally, graph and "
	     "test.index, or their folder; nothing in them is executed",
	     "ind.*.x ind.*.tx ind.*.allx ind.*.y ind.*.ty ind.*.ally ind.*.graph ind.*.test.index", 1,
	     hg__import_planetoid},
	    {"h5", "a HalfGraph dataset, to inspect or change it", ".h5 .hdf5", 1, hg__import_h5},
	};
	if (count)
		*count = sizeof table / sizeof table[0];
	return table;
}
