/* Features of which few rows differ: one-hot numbers, degrees, constants. Such a batch is copied
 * without its features, which the device gathers from a table of the rows that differ,
 *
 *     X[i, :] = table[row_of(node i), :]
 *
 * so the host neither writes nor sends them. Each element is the one that the host would have
 * written, since a product with 1 is exact. */
#include <string.h>

#include "core/fnv.h"
#include "kernels/kernels.h"
#include "nn/batches_block.h"

/* What stands for a row is 12 bytes, and the gather is one more launch. That takes some 2 us, in
 * which a bus of 50 GB/s brings 100 KB: with rows of this many bytes the launch pays in batches of
 * 1,000 nodes. */
#define SHORT_ROW 128

/* Rows that differ, by their hash, with open addressing. */
struct found {
	int64_t most, count;
	size_t places;           /* a power of two, more than twice `most` */
	struct hg__buffer at;    /* int32 [places]: 1 + the number of a row; 0: free */
	struct hg__buffer first; /* int64 [most + 1]: the first node that has a row */
};

/* The features of a node as they are stored: a dense row, or columns and values. */
struct stored {
	const void *part[2];
	size_t bytes[2];
};

static struct stored stored_of(const hg_batches *all, int64_t node)
{
	const struct hg__host_csr *x = &all->sparse;
	if (!all->is_sparse) {
		const size_t pitch = (size_t)all->features * hg_dtype_size(all->dense.dtype);
		const char *row = (const char *)all->dense.data.data + (size_t)node * pitch;
		return (struct stored){{row, NULL}, {pitch, 0}};
	}
	const int64_t e = x->rowptr[node];
	const size_t count = (size_t)(x->rowptr[node + 1] - e);
	return (struct stored){{count ? x->col + e : NULL, x->weight && count ? x->weight + e : NULL},
	                       {count * sizeof *x->col, x->weight ? count * sizeof *x->weight : 0}};
}

static int same(const struct stored *a, const struct stored *b)
{
	for (int k = 0; k < 2; k++)
		if (a->bytes[k] != b->bytes[k] ||
		    (a->bytes[k] && memcmp(a->part[k], b->part[k], a->bytes[k]) != 0))
			return 0;
	return 1;
}

/* FNV-1a of pieces of 8 bytes, so that many columns do not take long. Its upper bits, which depend
 * on all others, are folded into the lower ones, which choose a place. */
static uint64_t hash_of(const struct stored *s)
{
	uint64_t hash = HG__FNV_BEGIN;
	for (int k = 0; k < 2; k++)
		for (size_t at = 0; at < s->bytes[k]; at += sizeof(uint64_t)) {
			const size_t left = s->bytes[k] - at;
			uint64_t piece = 0;
			memcpy(&piece, (const char *)s->part[k] + at,
			       left < sizeof piece ? left : sizeof piece);
			hash = (hash ^ piece) * UINT64_C(0x100000001B3);
			hash ^= hash >> 32;
		}
	return hash;
}

/* The number of the row of a node; a new one if none is equal to it. */
static int64_t number_of(const hg_batches *all, struct found *f, int64_t node)
{
	int32_t *at = f->at.data;
	int64_t *first = f->first.data;
	const struct stored row = stored_of(all, node);
	size_t place = (size_t)hash_of(&row) & (f->places - 1);
	for (; at[place]; place = (place + 1) & (f->places - 1)) {
		const struct stored other = stored_of(all, first[at[place] - 1]);
		if (same(&row, &other))
			return at[place] - 1;
	}
	first[f->count] = node;
	at[place] = (int32_t)++f->count;
	return f->count - 1;
}

/* Numbers the rows of all nodes. 0: more than `most` of them differ. */
static int rows_number(const hg_batches *all, struct found *f, int32_t *row_of)
{
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs];
	for (int64_t i = 0; i < nodes; i++) {
		row_of[i] = (int32_t)number_of(all, f, i);
		if (f->count > f->most)
			return 0;
	}
	return 1;
}

static hg_status found_init(hg_context *ctx, struct found *f)
{
	f->places = 4;
	while (f->places <= 2 * (size_t)f->most)
		f->places *= 2;
	HG__TRY(hg__buffer_host(ctx, (int64_t)f->places, sizeof(int32_t), "batches: rows", &f->at));
	return hg__buffer_host(ctx, f->most + 1, sizeof(int64_t), "batches: rows that differ",
	                       &f->first);
}

/* The rows that differ, and zeros behind them. */
static hg_status table_make(struct hg__padded *p, const struct found *f)
{
	hg_context *ctx = p->all->ctx;
	const size_t pitch = (size_t)hg__leading(p->all->features) * hg_dtype_size(p->x_dtype);
	struct hg__buffer host = {0};
	HG__TRY(hg__buffer_host(ctx, f->count + 1, pitch, "batches: features", &host));
	for (int64_t k = 0; k < f->count; k++)
		hg__padded_row(p, ((const int64_t *)f->first.data)[k],
		               (char *)host.data + (size_t)k * pitch);
	const hg_status status =
	    hg__buffer_upload(ctx, f->count + 1, pitch, host.data, "batches: features", &p->table);
	hg__buffer_free(ctx, &host);
	return status;
}

static hg_status share(struct hg__padded *p, struct found *f)
{
	hg_context *ctx = p->all->ctx;
	const int64_t nodes = ((const int64_t *)p->all->ptr.data)[p->all->graphs];
	HG__TRY(found_init(ctx, f));
	HG__TRY(hg__buffer_host(ctx, nodes, sizeof(int32_t), "batches: rows of nodes", &p->row_of));
	if (!rows_number(p->all, f, p->row_of.data)) {
		hg__buffer_free(ctx, &p->row_of);
		return HG_OK;
	}
	HG__TRY(table_make(p, f));
	p->distinct = f->count;
	p->needs |= 1u << HG__PADDED_X_ROW | 1u << HG__PADDED_X_ROWPTR;
	return HG_OK;
}

/* At most as many rows as a batch has nodes on average, so the table takes no more memory than the
 * features of a batch. */
hg_status hg__padded_share(struct hg__padded *p)
{
	const hg_batches *all = p->all;
	const int64_t nodes = ((const int64_t *)all->ptr.data)[all->graphs],
	              graphs = all->per_batch < all->graphs ? all->per_batch : all->graphs;
	const size_t pitch = (size_t)hg__leading(all->features) * hg_dtype_size(p->x_dtype);
	const int is_float = p->x_dtype == HG_F16 || p->x_dtype == HG_F32;
	struct found f = {.most = nodes / all->graphs * graphs};
	if (f.most > nodes / 2)
		f.most = nodes / 2;
	if (!is_float || pitch < SHORT_ROW || f.most < 1 || f.most >= INT32_MAX)
		return HG_OK;
	const hg_status status = share(p, &f);
	hg__buffer_free(all->ctx, &f.at);
	hg__buffer_free(all->ctx, &f.first);
	return status;
}

/* A matrix with one entry in each row, whose column is the row of the table. Padding columns are
 * gathered like all others: they are zeros in both. */
hg_status hg__padded_complete(const struct hg__padded *p, const struct hg__padded_batch *b)
{
	if (!p->distinct)
		return HG_OK;
	hg_context *ctx = p->all->ctx;
	const struct hg__mat x = b->x.mat;
	struct hg__csr one = {.rows = x.rows, .cols = p->distinct + 1, .m = x.rows};
	one.rowptr = b->x_rowptr;
	one.col = b->x_row;
	const struct hg__plan plan = hg__plan_by_row(&one);
	one.plan = &plan;
	const struct hg__gather_args args = {.csr = one,
	                                     .x = {p->table.data, p->distinct + 1, x.ld, x.ld, x.dtype},
	                                     .z = {x.data, x.rows, x.ld, x.ld, x.dtype},
	                                     .alpha = 1.0f,
	                                     .by_col = 1};
	return ctx->backend->kernels->gather.run(ctx, &args);
}
