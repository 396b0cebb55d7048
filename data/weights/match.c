/* Finds the tensors of a state dict that belong to a model. Names that hg_params_export writes are
 * taken as they are. Other programs call their layers otherwise (conv1, gnn.2, layers.0.conv), so
 * then the structure decides: what is inside of a layer has the names of its class, and layers,
 * products and norms are taken in the natural order of their names, conv2 before conv10. */
#include "weights/layout.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Modules with longer names are not recognised. */
enum { NAME = 256 };

/* A module: the name of a tensor without its last part. */
struct module {
	const char *name; /* in a tensor's name, not terminated */
	int length;
};
struct modules {
	struct module *item;
	int64_t count;
};

struct matcher {
	const struct hg__layout *layout;
	const hg_model_config *model;
	const struct hg__safetensors *file;
	const struct hg__st_tensor **match;   /* [parts] */
	const struct hg__st_tensor **by_name; /* [tensors], sorted */
	struct modules convs, linears, norms; /* norms: with running statistics */
};

/* ---- names ---- */

/* strcmp, but numbers in the names are compared as numbers. */
static int natural(const char *a, size_t na, const char *b, size_t nb)
{
	size_t i = 0, j = 0;
	while (i < na && j < nb) {
		if (!isdigit((unsigned char)a[i]) || !isdigit((unsigned char)b[j])) {
			if (a[i] != b[j])
				return (unsigned char)a[i] < (unsigned char)b[j] ? -1 : 1;
			i++, j++;
			continue;
		}
		while (i < na && a[i] == '0')
			i++;
		while (j < nb && b[j] == '0')
			j++;
		size_t ki = i, kj = j;
		while (ki < na && isdigit((unsigned char)a[ki]))
			ki++;
		while (kj < nb && isdigit((unsigned char)b[kj]))
			kj++;
		if (ki - i != kj - j)
			return ki - i < kj - j ? -1 : 1;
		const int differs = memcmp(a + i, b + j, ki - i);
		if (differs)
			return differs;
		i = ki;
		j = kj;
	}
	return (i < na) - (j < nb);
}

static int by_module(const void *a, const void *b)
{
	const struct module *x = a, *y = b;
	return natural(x->name, (size_t)x->length, y->name, (size_t)y->length);
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct hg__st_tensor *const *)a)->name,
	              (*(const struct hg__st_tensor *const *)b)->name);
}

static int compare_name(const void *name, const void *tensor)
{
	return strcmp(name, (*(const struct hg__st_tensor *const *)tensor)->name);
}

static const struct hg__st_tensor *find(const struct matcher *m, const char *name)
{
	const struct hg__st_tensor **at =
	    bsearch(name, m->by_name, (size_t)m->file->count, sizeof *m->by_name, compare_name);
	return at ? *at : NULL;
}

/* The tensor MODULE LEAF, where the leaf begins with a dot. */
static const struct hg__st_tensor *find_in(const struct matcher *m, const struct module *module,
                                           const char *leaf)
{
	char name[NAME];
	const int length = snprintf(name, sizeof name, "%.*s%s", module->length, module->name, leaf);
	return length < NAME ? find(m, name) : NULL;
}

/* The name without `ending`; length 0: it does not end so. */
static struct module before(const char *name, const char *ending)
{
	const size_t length = strlen(name), tail = strlen(ending);
	const int ends = length > tail && length < NAME && strcmp(name + length - tail, ending) == 0;
	return (struct module){name, ends ? (int)(length - tail) : 0};
}

static int is_inside(const struct module *inner, const struct module *outer, const char *below)
{
	const size_t tail = strlen(below);
	return (size_t)inner->length > (size_t)outer->length + tail &&
	       memcmp(inner->name, outer->name, (size_t)outer->length) == 0 &&
	       memcmp(inner->name + outer->length, below, tail) == 0;
}

/* ---- the structure of the file ---- */

/* A tensor that every layer of the model's class has; appnp's layers are plain products. */
static const char *key_of(const hg_model_config *model)
{
	static const struct {
		const char *model, *key;
	} keys[] = {{"gcn", ".lin.weight"}, {"gat", ".att_src"},    {"gatv2", ".att"},
	            {"gin", ".eps"},        {"gine", ".eps"},       {"gt", ".lin_query.weight"},
	            {"agnn", ".beta"},      {"sgc", ".lin.weight"}, {"sage", ".lin_l.weight"}};
	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
		if (strcmp(keys[k].model, model->name) == 0)
			return keys[k].key;
	return ".weight";
}

static hg_status modules_new(const struct matcher *m, struct modules *list)
{
	return hg__data_alloc(m->file->count, sizeof *list->item, "a list of modules",
	                      (void **)&list->item, m->file->message);
}

static void modules_sort(struct modules *list)
{
	qsort(list->item, (size_t)list->count, sizeof *list->item, by_module);
}

static hg_status find_convs(struct matcher *m)
{
	const char *key = key_of(m->model);
	for (int64_t i = 0; i < m->file->count; i++) {
		const struct module conv = before(m->by_name[i]->name, key);
		if (conv.length)
			m->convs.item[m->convs.count++] = conv;
	}
	modules_sort(&m->convs);
	return m->convs.count == m->model->layers
	           ? HG_OK
	           : hg__data_fail(m->file->message, HG_ERR_SHAPE,
	                           "%s: has %" PRId64
	                           " layers of a %s (tensors whose names end with %s), the model has "
	                           "%d",
	                           m->file->path, m->convs.count, m->model->name, key,
	                           m->model->layers);
}

/* Products and norms, except for the products that a layer's class has itself. */
static void find_modules(struct matcher *m)
{
	for (int64_t i = 0; i < m->file->count; i++) {
		const struct hg__st_tensor *t = m->by_name[i];
		const struct module module = before(t->name, ".weight");
		int inside = 0;
		for (int64_t k = 0; k < m->convs.count && module.length; k++)
			inside |= is_inside(&module, &m->convs.item[k], ".") &&
			          !is_inside(&module, &m->convs.item[k], ".nn.");
		if (!module.length || inside)
			continue;
		if (t->rank == 2)
			m->linears.item[m->linears.count++] = module;
		else if (find_in(m, &module, ".running_mean"))
			m->norms.item[m->norms.count++] = module;
	}
	modules_sort(&m->linears);
	modules_sort(&m->norms);
}

/* The nth module of a list inside (below ".nn.") of a layer, or, with layer -1, inside of none. */
static const struct module *nth(const struct matcher *m, const struct modules *list, int layer,
                                int64_t n)
{
	for (int64_t i = 0; i < list->count; i++) {
		int of = -1;
		for (int64_t k = 0; k < m->convs.count; k++)
			if (is_inside(&list->item[i], &m->convs.item[k], ".nn."))
				of = (int)k;
		if (of == layer && n-- == 0)
			return &list->item[i];
	}
	return NULL;
}

/* ---- parts ---- */

/* Is the module of a part one of these? *leaf := the rest of its name, ".weight". */
static int is_part_of(const struct hg__layer_part *p, const char *module, const char **leaf)
{
	const size_t length = strlen(module);
	if (strncmp(p->name, module, length) != 0)
		return 0;
	*leaf = p->name + length;
	return 1;
}

/* The module outside of all layers that plays the part of an embedding or a head. */
static const struct module *outer_linear(const struct matcher *m, const struct hg__layer_part *p)
{
	int64_t embeds = 0;
	for (int64_t i = 0; i < m->layout->count; i++)
		embeds += strcmp(m->layout->part[i].name, "embed.weight") == 0;
	const int is_embed = strncmp(p->name, "embed.", 6) == 0;
	const int64_t head = p->layer < 0 ? 0 : hg__first_head(m->model) + p->layer;
	return nth(m, &m->linears, -1, is_embed ? 0 : embeds + head);
}

static const struct hg__st_tensor *find_gin(const struct matcher *m, const struct hg__layer_part *p)
{
	char inner[NAME];
	const char *leaf = NULL;
	const struct module *module = NULL;
	(void)snprintf(inner, sizeof inner, "convs.%d.nn.lins.0", p->layer);
	if (is_part_of(p, inner, &leaf))
		module = nth(m, &m->linears, p->layer, 0);
	inner[strlen(inner) - 1] = '1';
	if (is_part_of(p, inner, &leaf))
		module = nth(m, &m->linears, p->layer, 1);
	(void)snprintf(inner, sizeof inner, "convs.%d.nn.norms.0.module", p->layer);
	if (is_part_of(p, inner, &leaf))
		module = nth(m, &m->norms, p->layer, 0);
	(void)snprintf(inner, sizeof inner, "norms.%d.module", p->layer);
	if (is_part_of(p, inner, &leaf)) {
		/* the second norm may belong to the layer's own module, or follow the layer */
		module = nth(m, &m->norms, p->layer, 1);
		module = module ? module : nth(m, &m->norms, -1, p->layer);
	}
	return module ? find_in(m, module, leaf) : NULL;
}

/* The tensor of a part by structure. */
static const struct hg__st_tensor *find_part(const struct matcher *m,
                                             const struct hg__layer_part *p)
{
	char inner[NAME];
	const char *leaf = NULL;
	const char *dot = strrchr(p->name, '.');
	(void)snprintf(inner, sizeof inner, "convs.%d.nn.", p->layer);
	if (strncmp(p->name, inner, strlen(inner)) == 0 || strncmp(p->name, "norms.", 6) == 0)
		return find_gin(m, p);
	(void)snprintf(inner, sizeof inner, "convs.%d", p->layer);
	if (p->layer >= 0 && is_part_of(p, inner, &leaf)) {
		const struct module *conv = &m->convs.item[p->layer];
		const struct hg__st_tensor *t = find_in(m, conv, leaf);
		/* before PyTorch Geometric 2.6 a GATConv called its product so */
		return t || strcmp(leaf, ".lin.weight") != 0 ? t : find_in(m, conv, ".lin_src.weight");
	}
	(void)snprintf(inner, sizeof inner, "lins.%d", p->layer);
	if (p->layer >= 0 && is_part_of(p, inner, &leaf)) /* a layer that is a plain product */
		return find_in(m, &m->convs.item[p->layer], leaf);
	if (strncmp(p->name, "embed.", 6) == 0 || strncmp(p->name, "lin.", 4) == 0 ||
	    strncmp(p->name, "heads.", 6) == 0) {
		const struct module *module = outer_linear(m, p);
		return module ? find_in(m, module, dot) : NULL;
	}
	return find(m, p->name);
}

static int match_exactly(struct matcher *m)
{
	int all = 1;
	for (int64_t i = 0; i < m->layout->count; i++) {
		m->match[i] = find(m, m->layout->part[i].name);
		all &= m->match[i] || m->layout->part[i].form == HG__ABSORB;
	}
	return all;
}

static hg_status match_by_structure(struct matcher *m)
{
	HG__TRY(modules_new(m, &m->convs));
	HG__TRY(modules_new(m, &m->linears));
	HG__TRY(modules_new(m, &m->norms));
	HG__TRY(find_convs(m));
	find_modules(m);
	for (int64_t i = 0; i < m->layout->count; i++) {
		const struct hg__layer_part *p = &m->layout->part[i];
		m->match[i] = find_part(m, p);
		if (!m->match[i] && p->form != HG__ABSORB)
			return hg__data_fail(m->file->message, HG_ERR_SHAPE,
			                     "%s: has no tensor for %s, such as %s", m->file->path,
			                     p->ours->name, p->name);
	}
	return HG_OK;
}

/* ---- checks ---- */

static hg_status check_shape(const struct matcher *m, const struct hg__layer_part *p,
                             const struct hg__st_tensor *t)
{
	char found[160], expected[160];
	int same = t->rank == p->rank;
	for (int k = 0; same && k < p->rank; k++)
		same = t->dim[k] == p->dim[k];
	/* a scalar may have no dimension */
	same |= p->form == HG__SCALAR && t->elements == 1 && t->rank <= 1;
	return same ? HG_OK
	            : hg__data_fail(m->file->message, HG_ERR_SHAPE, "%s: %.80s is %s, %s needs %s",
	                            m->file->path, t->name, hg__st_shape(t->rank, t->dim, found),
	                            p->ours->name, hg__st_shape(p->rank, p->dim, expected));
}

/* What a model need not have: counters of batches, and an eps of 0. */
static hg_status is_idle(const struct matcher *m, const struct hg__st_tensor *t, int *idle)
{
	float eps = 1.0f;
	*idle = before(t->name, "num_batches_tracked").length > 0;
	if (*idle || !before(t->name, ".eps").length || t->elements != 1)
		return HG_OK;
	HG__TRY(hg__st_values(m->file, t, &eps));
	*idle = eps >= 0.0f && eps <= 0.0f;
	return HG_OK;
}

static hg_status check_rest(const struct matcher *m)
{
	for (int64_t i = 0; i < m->file->count; i++) {
		int used = 0;
		for (int64_t k = 0; !used && k < m->layout->count; k++)
			used = m->match[k] == &m->file->tensor[i];
		if (!used)
			HG__TRY(is_idle(m, &m->file->tensor[i], &used));
		if (!used)
			return hg__data_fail(m->file->message, HG_ERR_SHAPE,
			                     "%s: has %.80s, for which a %s of %d layers has no place",
			                     m->file->path, m->file->tensor[i].name, m->model->name,
			                     m->model->layers);
	}
	return HG_OK;
}

static hg_status match_all(struct matcher *m)
{
	const struct hg__safetensors *f = m->file;
	HG__TRY(hg__data_alloc(f->count, sizeof *m->by_name, "an order of tensors",
	                       (void **)&m->by_name, f->message));
	for (int64_t i = 0; i < f->count; i++)
		m->by_name[i] = &f->tensor[i];
	qsort(m->by_name, (size_t)f->count, sizeof *m->by_name, by_name);
	if (!match_exactly(m))
		HG__TRY(match_by_structure(m));
	for (int64_t i = 0; i < m->layout->count; i++)
		if (m->match[i])
			HG__TRY(check_shape(m, &m->layout->part[i], m->match[i]));
	return check_rest(m);
}

hg_status hg__layout_match(const struct hg__layout *layout, const hg_model_config *model,
                           const struct hg__safetensors *file, const struct hg__st_tensor **match)
{
	struct matcher m = {.layout = layout, .model = model, .file = file, .match = match};
	const hg_status status = match_all(&m);
	free(m.by_name);
	free(m.convs.item);
	free(m.linears.item);
	free(m.norms.item);
	return status;
}
