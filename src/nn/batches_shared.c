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
	size_t places;         /* a power of two, more than twice `most` */
	struct hg__buffer at;  /* int32 [places]: 1 + the number of a row; 0: free */
	struct hg__buffer row; /* x_dtype [most + 1, leading] */
	size_t pitch;
};

static const char *row_at(const struct found *f, int64_t k)
{
	return (const char *)f->row.data + (size_t)k * f->pitch;
}

/* Rows are compared by 8 bytes (a row of that length is a multiple of 16), so that many columns do
 * not take long. */
static uint64_t hash_of(const char *row, size_t bytes)
{
	uint64_t hash = HG__FNV_BEGIN;
	for (size_t k = 0; k < bytes; k += sizeof(uint64_t)) {
		uint64_t piece;
		memcpy(&piece, row + k, sizeof piece);
		hash = (hash ^ piece) * UINT64_C(0x100000001B3);
		hash ^= hash >> 32;
	}
	return hash;
}

/* The number of the row that lies behind the last one; a new one if none is equal to it. */
static int64_t number_of(struct found *f)
{
	int32_t *at = f->at.data;
	const char *row = row_at(f, f->count);
	size_t place = (size_t)hash_of(row, f->pitch) & (f->places - 1);
	for (; at[place]; place = (place + 1) & (f->places - 1))
		if (memcmp(row_at(f, at[place] - 1), row, f->pitch) == 0)
			return at[place] - 1;
	at[place] = (int32_t)++f->count;
	return f->count - 1;
}

/* Numbers the rows of all nodes. 0: more than `most` of them differ. */
static int rows_number(const struct hg__padded *p, struct found *f)
{
	const int64_t nodes = ((const int64_t *)p->all->ptr.data)[p->all->graphs];
	int32_t *row_of = p->row_of.data;
	for (int64_t i = 0; i < nodes; i++) {
		hg__padded_row(p, i, (char *)f->row.data + (size_t)f->count * f->pitch);
		row_of[i] = (int32_t)number_of(f);
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
	return hg__buffer_host(ctx, f->most + 1, f->pitch, "batches: rows that differ", &f->row);
}

static hg_status share(struct hg__padded *p, struct found *f)
{
	hg_context *ctx = p->all->ctx;
	const int64_t nodes = ((const int64_t *)p->all->ptr.data)[p->all->graphs];
	HG__TRY(found_init(ctx, f));
	HG__TRY(hg__buffer_host(ctx, nodes, sizeof(int32_t), "batches: rows of nodes", &p->row_of));
	if (!rows_number(p, f)) {
		hg__buffer_free(ctx, &p->row_of);
		return HG_OK;
	}
	memset((char *)f->row.data + (size_t)f->count * f->pitch, 0, f->pitch);
	HG__TRY(hg__buffer_upload(ctx, f->count + 1, f->pitch, f->row.data, "batches: features",
	                          &p->table));
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
	struct found f = {.most = nodes / all->graphs * graphs,
	                  .pitch = (size_t)hg__leading(all->features) * hg_dtype_size(p->x_dtype)};
	if (f.most > nodes / 2)
		f.most = nodes / 2;
	const int is_float = p->x_dtype == HG_F16 || p->x_dtype == HG_F32;
	if (!is_float || f.pitch < SHORT_ROW || f.most < 1 || f.most >= INT32_MAX)
		return HG_OK;
	const hg_status status = share(p, &f);
	hg__buffer_free(all->ctx, &f.at);
	hg__buffer_free(all->ctx, &f.row);
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
