/* The table of source formats: a new format is a file in import/ and a row here. */
#include "import/importers.h"

hg_status hg__import_h5(const char *const *paths, int count, const hg_import_config *config,
                        hg_dataset **dataset, char *message)
{
	(void)count;
	hg_import_config c;
	HG__TRY(hg__import_configure(config, &c, message));
	return hg__dataset_read_watched(paths[0], c.progress, dataset, message);
}

const hg_importer *hg_importers(size_t *count)
{
	static const hg_importer table[] = {
	    {"npz",
	     "numpy archive with adj_*, attr_*, labels, train_idx/val_idx/test_idx (gnn-benchmark), or "
	     "with "
	     "node_ptr, edge_ptr, edge_src, edge_dst of many graphs",
	     ".npz", 1, hg__import_npz},
	    {"tu",
	     "TU Dortmund's graph-classification sets: a zip archive, a folder, or NAME_A.txt with "
	     "NAME_graph_indicator.txt, NAME_graph_labels.txt and optional files beside it",
	     "_A.txt", 1, hg__import_tu},
	    {"gin",
	     "text of the graph isomorphism network, all graphs in NAME.txt, folds in 10fold_idx: a "
	     "zip archive, a folder, or the text",
	     "", 1, hg__import_gin},
	    {"musae",
	     "MUSAE's NAME_edges.csv, NAME_features.json and NAME_target.csv, plain or gzip: one of "
	     "them, their folder or a zip archive",
	     "_target.csv _target.csv.gz _features.json _features.json.gz", 1, hg__import_musae},
	    {"ogb",
	     "a folder of the Open Graph Benchmark with raw/edge.csv.gz or raw/data.npz, and its split",
	     "", 1, hg__import_ogb},
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
	    {"metis", "METIS: \"nodes edges [fmt [weights]]\", then the neighbours of each node",
	     ".graph .metis .graph.gz .metis.gz", 1, hg__import_metis},
	    {"h5ad",
	     "AnnData: a matrix of obsp is the graph, X the features, a column of categories the "
	     "labels",
	     ".h5ad", 1, hg__import_h5ad},
	    {"graphbolt",
	     "DGL's GraphBolt: a folder or zip archive with metadata.yaml, edges in csv or numpy, "
	     "features and tasks in numpy",
	     "metadata.yaml", 1, hg__import_graphbolt},
	    {"dgl-csv",
	     "DGL's CSVDataset: a folder or zip archive with meta.yaml and tables of nodes, edges and "
	     "graphs",
	     "meta.yaml", 1, hg__import_dgl_csv},
	    {"h5", "a HalfGraph dataset, to inspect or change it", ".h5 .hdf5", 1, hg__import_h5},
	};
	if (count)
		*count = sizeof table / sizeof table[0];
	return table;
}
