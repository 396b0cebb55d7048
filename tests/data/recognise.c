/* The format of an input is recognised by what it holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "support.h"

static const char *format_of(const char *path)
{
	static char text[HG_DATA_MESSAGE];
	const hg_importer *importer = NULL;
	const hg_status status = hg_import_recognise(path, &importer, text);
	CHECK((status == HG_OK) == (importer != NULL) && status != HG_ERR_ARG);
	if (importer)
		snprintf(text, sizeof text, "%s", importer->name);
	return text;
}

static const char *file_of(const char *name, const char *text)
{
	const char *path = scratch(0, name);
	write_text(path, text);
	return path;
}

static void files_are_recognised(void)
{
	static const struct {
		const char *name, *text, *format;
	} files[] = {
	    {"a.txt", "0 1\n1 2\n", "edges"},
	    {"b.txt", "2\n1 0\n0 0\n1 0\n0 0\n", "gin"},
	    {"c.txt", "%%matrixmarket matrix coordinate pattern general\n1 1 0\n", "mtx"},
	    {"d.mtx", "anything", "mtx"},
	    {"e.edges", "2\n1 0\n", "edges"},
	    {"set_A.txt", "1, 2\n", "tu"},
	    {"DE_target.csv", "id,target\n", "musae"},
	    {"ind.toy.graph", "", "planetoid"},
	    {"f.npz", "", "npz"},
	    {"f.graph", "3 2\n2\n1 3\n2\n", "metis"},
	    {"g.h5", "", "h5"},
	    {"h.txt", "", "edges"},
	    {"i.dat", "0 1\n", "i.dat: its ending does not identify the format: add --from FORMAT"},
	    {"j.h5ad", "\211HDF\r\n\032\n and more", "h5ad"},
	    {"metadata.yaml", "graph:\n", "graphbolt"},
	    {"meta.yaml", "node_data:\n", "dgl-csv"},
	    {"j.dat", "\211HDF\r\n\032\n and more", "h5"},
	};
	for (size_t k = 0; k < sizeof files / sizeof files[0]; k++)
		CHECK_CONTAINS(format_of(file_of(files[k].name, files[k].text)), files[k].format);
	gzFile file = gzopen(scratch(0, "k.gz"), "wb");
	CHECK(file && gzputs(file, "%%MatrixMarket matrix\n") > 0 && gzclose(file) == Z_OK);
	CHECK_STR(format_of(scratch(0, "k.gz")), "mtx");
	hg_dataset *d = small_dataset();
	must_write(d, scratch(0, "l.dat"));
	CHECK_STR(format_of(scratch(0, "l.dat")), "h5");
	hg_dataset_free(d);
	CHECK_STR(format_of(scratch(0, "absent.mtx")), "mtx");
	CHECK_CONTAINS(format_of(scratch(0, "absent")), "No such file or directory");
}

/* Makes an archive, or a folder, with empty files of these names. */
static const char *set_of(int archive, const char *const *names)
{
	static int number;
	char path[64], name[128];
	snprintf(path, sizeof path, "set%d%s", ++number, archive ? ".zip" : "");
	if (archive) {
		struct npz_out *zip = npz_begin(scratch(1, path));
		for (int k = 0; names[k]; k++)
			npz_raw(zip, names[k], "x", 1);
		npz_end(zip, 0);
		return scratch(1, path);
	}
	CHECK(mkdir(scratch(1, path), 0700) == 0);
	for (int k = 0; names[k]; k++) {
		snprintf(name, sizeof name, "%s/%s", path, names[k]);
		for (char *slash = strchr(name + strlen(path) + 1, '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			*slash = 0;
			(void)mkdir(scratch(2, name), 0700);
			*slash = '/';
		}
		write_text(scratch(2, name), "x");
	}
	return scratch(1, path);
}

static void folders_and_archives_are_recognised(void)
{
	static const struct {
		const char *names[4], *format;
	} sets[] = {
	    {{"MUTAG/MUTAG_A.txt", "MUTAG/README.txt", NULL}, "tu"},
	    {{"MUTAG/MUTAG.txt", "MUTAG/10fold_idx/test_idx-1.txt", NULL}, "gin"},
	    {{"DE_edges.csv", "DE_target.csv.gz", "DE_features.json", NULL}, "musae"},
	    {{"ind.cora.graph", "ind.cora.x", NULL}, "planetoid"},
	    {{"a/X_A.txt", "b/Y_target.csv", NULL},
	     "holds a/X_A.txt of the format tu and b/Y_target.csv of the format musae: add --from"},
	    {{"a/metadata.yaml", "a/edges.csv", "a/x.npy", NULL}, "graphbolt"},
	    {{"meta.yaml", "nodes.csv", "edges.csv", NULL}, "dgl-csv"},
	    {{"X_A.txt", "meta.yaml", "x.npy", NULL}, "tu"}, /* weak signs */
	    {{"my_meta.yaml", NULL}, "identify the format: add --from FORMAT"},
	    {{"notes.md", NULL}, "identify the format: add --from FORMAT"},
	};
	for (int archive = 0; archive < 2; archive++)
		for (size_t k = 0; k < sizeof sets / sizeof sets[0]; k++)
			CHECK_CONTAINS(format_of(set_of(archive, sets[k].names)), sets[k].format);
	static const char *const arrays[] = {"adj_shape.npy", NULL};
	CHECK_STR(format_of(set_of(1, arrays)), "npz");
	CHECK_CONTAINS(format_of(set_of(0, arrays)),
	               "what this folder holds does not identify the format");
	size_t count = 0;
	unsigned char *bytes = read_bytes(set_of(1, sets[0].names), &count);
	write_bytes(scratch(0, "cut.zip"), bytes, count / 2);
	CHECK_CONTAINS(format_of(scratch(0, "cut.zip")), "not a zip archive, or a damaged one");
	free(bytes);
	char message[HG_DATA_MESSAGE] = "";
	CHECK_EQ_I(hg_import_recognise(NULL, NULL, message), HG_ERR_ARG);
}

/* The tool says what it recognised, unless it is told the format or to be quiet. */
static void format_is_said(void)
{
	(void)file_of("in.txt", "0 1\n");
	CHECK_EQ_I(run_convert("@/in.txt -o @/out.h5"), 0);
	CHECK_CONTAINS(convert_err, "in.txt: read as edges\n");
	CHECK_EQ_I(run_convert("--from edges @/in.txt -o @/out.h5"), 0);
	CHECK_STR(convert_err, "");
	CHECK_EQ_I(run_convert("--quiet @/in.txt -o @/out.h5"), 0);
	CHECK_STR(convert_err, "");
}

static void real_inputs_are_recognised(void)
{
	static const char *const inputs[][2] = {
	    {"planetoid_npz/cora.npz", "npz"},
	    {"gnnbench_npz/amazon_computers.npz", "npz"},
	    {"planetoid/ind.cora.graph", "planetoid"},
	    {"tu_official/MUTAG.zip", "tu"},
	    {"tu_gin/MUTAG.zip", "gin"},
	    {"tu_gin/COLLAB.zip", "gin"},
	    {"musae", "musae"},
	    {"snap/soc-Epinions1.txt.gz", "edges"},
	    {"mtx/chesapeake.mtx", "mtx"},
	    {"zinc/ZINC12K_tu.zip", "tu"},
	};
	char path[512];
	for (size_t k = 0; k < sizeof inputs / sizeof inputs[0]; k++) {
		snprintf(path, sizeof path, "%s/raw/%s", test_data(), inputs[k][0]);
		if (!file_exists(path))
			SKIP("%s is not there", path);
		CHECK_STR(format_of(path), inputs[k][1]);
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
	    TEST(files_are_recognised), TEST(folders_and_archives_are_recognised), TEST(format_is_said),
	    TEST(real_inputs_are_recognised)};
	return RUN_TESTS(argc, argv, cases);
}
