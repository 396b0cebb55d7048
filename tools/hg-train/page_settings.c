/* How a run was set up. */
#include <string.h>

#include "page.h"

/* The settings that people ask for first; the others are in the table of all. */
static const struct {
	const char *name, *text;
	int heads; /* 1: only of models with heads */
} asked[] = {
    {"model.name", "model", 0},
    {"model.layers", "layers", 0},
    {"model.hidden", "hidden units", 0},
    {"model.heads", "heads", 1},
    {"model.dropout", "dropout", 0},
    {"train.loss", "loss", 0},
    {"train.metric", "metric of the best epoch", 0},
    {"optim.kind", "optimiser", 0},
    {"optim.lr", "learning rate", 0},
    {"optim.weight_decay", "weight decay", 0},
    {"train.epochs", "epochs", 0},
    {"train.patience", "patience", 0},
    {"train.seed", "first seed", 0},
    {"policy.name", "precision", 0},
    {"policy.unproved", "what is not proved", 0},
};

static void print_pair(FILE *out, const char *name, const char *value)
{
	(void)fprintf(out, "<div><dt class=\"soft\">%s</dt><dd>", name);
	page_text(out, value);
	(void)fputs("</dd></div>\n", out);
}

static void print_all(FILE *out, const struct record *r)
{
	(void)fputs("<details><summary>All settings</summary>\n<dl class=\"pairs\">\n", out);
	for (int i = 0; i < r->settings; i++) {
		(void)fputs("<div><dt class=\"soft\">", out);
		page_name(out, r->setting[i].name);
		(void)fputs("</dt><dd>", out);
		page_text(out, r->setting[i].value);
		(void)fputs("</dd></div>\n", out);
	}
	(void)fputs("</dl></details>\n", out);
}

void page_settings(FILE *out, const struct results *r)
{
	const hg_model_info *info = hg_model_get_info(r->config.model.name);
	const char *rows = dataset_rows_note(&r->rows);
	(void)fputs("<section>\n<h2>Settings</h2>\n<dl class=\"pairs\">\n", out);
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		const char *value = record_find(&r->record, asked[i].name);
		if (value && !(asked[i].heads && !(info && info->heads)))
			print_pair(out, asked[i].text, value);
	}
	print_pair(out, "features", dataset_features_text(r->dataset, r->sparse));
	print_pair(out, "rows of the features", rows);
	(void)fputs("</dl>\n", out);
	print_all(out, &r->record);
	(void)fputs("</section>\n", out);
}
