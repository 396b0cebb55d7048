/* The buckets of a run in batches: which one is in place, with which tape, and what is freed when.
 * The host decides on their batches (batches_schedule.h), and the device puts them together. */
#include "nn/train_buckets.h"

#include "autograd/tape.h"
#include "nn/train.h"

/* ---- freeing ---- */

static void bucket_free(hg_context *ctx, struct hg__bucket **place)
{
	struct hg__bucket *b = *place;
	if (!b)
		return;
	hg_step_free(b->step);
	hg_tape_free(b->tape);
	hg__padded_close(&b->batch);
	hg__host_free(ctx, b, sizeof *b);
	*place = NULL;
}

void hg__train_buckets_forget(hg_train *t)
{
	struct hg__buckets *b = &t->batches.buckets;
	for (int k = 0; k < HG__BUCKETS; k++)
		if (b->bucket[k] != b->current)
			bucket_free(t->ctx, &b->bucket[k]);
}

void hg__train_buckets_fini(hg_train *t)
{
	struct hg__buckets *b = &t->batches.buckets;
	b->current = NULL;
	hg__train_buckets_forget(t);
	for (int k = 0; k < 2; k++)
		hg__schedule_fini(&b->schedule[k]);
	hg__padded_fini(&b->padded);
	hg__buffer_free(t->ctx, &b->block);
	hg__buffer_free(t->ctx, &b->lists);
}

/* ---- making ---- */

/* A CPU makes the schedule of an epoch when it comes: a thread would take its time from the
 * kernels. */
static int runs_ahead(const hg_train *t)
{
	return t->ctx->backend->capture_begin != NULL;
}

static hg_status schedules_make(hg_train *t)
{
	struct hg__buckets *b = &t->batches.buckets;
	for (int k = 0; k < 1 + runs_ahead(t); k++)
		HG__TRY(hg__schedule_init(&b->schedule[k], &b->padded));
	return hg__buffer_device(t->ctx, (int64_t)b->schedule[0].lists.bytes, 1, "train: lists",
	                         &b->lists);
}

hg_status hg__train_buckets_init(hg_train *t)
{
	struct hg__train_batches *b = &t->batches;
	if (!b->all)
		return HG_OK;
	const hg_graph *probe = b->all->batch_graph;
	const hg_dtype state = t->params->policy.state;
	const char *why = hg__padded_refusal(b->all, state, t->ctx->backend->capture_begin != NULL);
	if (!why && !probe->rows)
		why = "the first batch has no nodes";
	if (!why && !probe->m && b->all->graph_facts.facts.max_row_degree > 0)
		why = "the first batch has no edges";
	if (!why && (probe->weighted_root.bytes || probe->weighted_inverse.bytes))
		why = "a norm counts weighted degrees";
	if (why) {
		hg__log(t->ctx, HG_LOG_INFO, "train: batches keep their own shapes: %s", why);
		return HG_OK;
	}
	HG__TRY(hg__padded_init(&b->buckets.padded, b->all, &b->from, probe, state,
	                        t->truth.label ? HG__BATCH_TRUTH : -1,
	                        t->truth.mask[HG__SPLIT_TRAIN] ? HG__BATCH_MASK : -1));
	return schedules_make(t);
}

/* ---- which bucket is in place ---- */

static int same_shape(const struct hg__shape_of_batch *a, const struct hg__shape_of_batch *b)
{
	return a->nodes == b->nodes && a->edges == b->edges && a->graphs == b->graphs &&
	       a->bin_rows == b->bin_rows;
}

/* Frees a tape without a bucket: that of a batch in its own shape. */
static void put_away(hg_train *t)
{
	struct hg__bucket *current = t->batches.buckets.current;
	if (t->step && t->step->watch)
		hg__watch_leave(t->step->watch, &t->batches.past);
	if (current) {
		current->tape = t->tape;
		current->step = t->step;
		current->loss = t->loss;
	} else {
		hg__train_tape_free(t);
		hg__batches_drop(t->batches.all);
	}
	t->tape = NULL;
	t->step = NULL;
	t->batches.buckets.current = NULL;
	t->batches.batch = (hg_batch){.graphs = 0}; /* it may be freed before there is another one */
}

/* The number of the bucket of a shape; HG__BUCKETS: there is none. */
static int number_of(const struct hg__buckets *b, const struct hg__shape_of_batch *shape)
{
	int k = 0;
	while (k < HG__BUCKETS && !(b->bucket[k] && same_shape(&b->bucket[k]->batch.shape, shape)))
		k++;
	return k;
}

/* The bucket of a shape, or the place for it: an empty one, or that of the bucket that has not been
 * used for longest. */
static struct hg__bucket **find(struct hg__buckets *b, const struct hg__shape_of_batch *shape)
{
	const int number = number_of(b, shape);
	struct hg__bucket **best = &b->bucket[0];
	if (number < HG__BUCKETS)
		return &b->bucket[number];
	for (int k = 0; k < HG__BUCKETS; k++) {
		struct hg__bucket **at = &b->bucket[k];
		if (*best && (!*at || (*at)->used < (*best)->used))
			best = at;
	}
	return best;
}

/* The block moves when it grows, and with it all that the tapes read. */
static hg_status block_grow(hg_train *t, size_t bytes)
{
	struct hg__buckets *b = &t->batches.buckets;
	if (bytes <= b->block.bytes)
		return HG_OK;
	put_away(t);
	hg__train_buckets_forget(t);
	hg__buffer_free(t->ctx, &b->block);
	return hg__buffer_device(t->ctx, (int64_t)(bytes + bytes / 8), 1, "train: a batch", &b->block);
}

static hg_status bucket_make(hg_train *t, const struct hg__shape_of_batch *shape,
                             struct hg__bucket **place)
{
	struct hg__buckets *b = &t->batches.buckets;
	void *memory = NULL;
	bucket_free(t->ctx, place);
	HG__TRY(hg__host_alloc(t->ctx, 1, sizeof **place, "train: a shape of batches", &memory));
	*place = memory;
	const hg_status status = hg__padded_open(&b->padded, shape, b->block.data, &(*place)->batch);
	if (status < 0)
		bucket_free(t->ctx, place);
	return status;
}

static hg_status put_in_place(hg_train *t, const struct hg__shape_of_batch *shape)
{
	struct hg__buckets *b = &t->batches.buckets;
	HG__TRY(block_grow(t, hg__padded_bytes(&b->padded, shape)));
	if (b->current && same_shape(&b->current->batch.shape, shape)) {
		b->current->used = ++b->uses;
		return HG_OK;
	}
	put_away(t);
	struct hg__bucket **place = find(b, shape);
	if (!*place || !same_shape(&(*place)->batch.shape, shape))
		HG__TRY(bucket_make(t, shape, place));
	b->current = *place;
	b->current->used = ++b->uses;
	hg__train_batch_place(t, &b->current->batch.batch);
	return HG_OK;
}

/* ---- tapes ---- */

/* A tape that needs more memory moves the arena of all. */
static hg_status record(hg_train *t)
{
	const struct hg__buffer before = t->batches.arena;
	HG__TRY(hg__train_record_tape(t));
	if (t->batches.arena.data != before.data || t->batches.arena.bytes != before.bytes)
		hg__train_buckets_forget(t);
	return hg__train_record_step(t);
}

/* Does the step of a bucket find the counts of its observer, if it has one, where it left them, if
 * it follows after `now` has been left? */
static int resumes(const hg_train *t, const hg_step *step, const struct hg__watch *now)
{
	return !step->watch || hg__watch_resumes(step->watch, &t->batches.past, now);
}

/* Counts of the observer go from step to step, in memory that captured steps write to. A step that
 * cannot go on with it is recorded again. */
static hg_status tape_take(hg_train *t)
{
	struct hg__bucket *current = t->batches.buckets.current;
	if (t->step)
		return HG_OK;
	if (current->step && !resumes(t, current->step, NULL)) {
		hg_step_free(current->step);
		hg_tape_free(current->tape);
		current->step = NULL;
		current->tape = NULL;
	}
	t->tape = current->tape;
	t->step = current->step;
	t->loss = current->loss;
	current->tape = NULL;
	current->step = NULL;
	if (!t->step)
		HG__TRY(record(t));
	if (t->step->watch)
		hg__watch_follow(t->step->watch, &t->batches.past);
	return HG_OK;
}

/* Observers of the same tensors share their counts, so each set is read once. */
hg_status hg__train_buckets_headroom(hg_train *t, hg_observer *least)
{
	const struct hg__buckets *b = &t->batches.buckets;
	const void *read[HG__PASTS] = {NULL};
	int sets = 0;
	for (int k = 0; k < HG__BUCKETS; k++) {
		hg_step *step = b->bucket[k] ? b->bucket[k]->step : NULL;
		hg_observer observer = HG_OBSERVER_INIT;
		int done = !step || !step->watch || !resumes(t, step, NULL);
		for (int i = 0; i < sets && !done; i++)
			done = read[i] == step->watch->left;
		if (done)
			continue;
		read[sets++] = step->watch->left;
		hg__watch_follow(step->watch, &t->batches.past);
		step->seen = 0;
		const hg_status status = hg_step_observer(step, &observer);
		hg__watch_leave(step->watch, &t->batches.past);
		HG__TRY(status);
		if (observer.headroom < least->headroom) {
			least->headroom = observer.headroom;
			least->headroom_name = observer.headroom_name;
		}
	}
	return HG_OK;
}

/* ---- the batches of an epoch ---- */

void hg__train_buckets_begin(hg_train *t)
{
	if (t->batches.buckets.padded.all && runs_ahead(t))
		hg__ahead_begin(&t->batches.buckets.ahead);
}

void hg__train_buckets_end(hg_train *t)
{
	hg__ahead_end(&t->batches.buckets.ahead);
}

static void schedule_next(void *user)
{
	struct hg__buckets *b = user;
	hg__schedule_make(&b->schedule[!b->now], b->schedule[b->now].epoch + 1);
}

static hg_status lists_copy(hg_train *t)
{
	struct hg__buckets *b = &t->batches.buckets;
	const struct hg__backend *backend = t->ctx->backend;
	return (backend->copy_in_async ? backend->copy_in_async : backend->copy_in)(
	    t->ctx, b->lists.data, b->schedule[b->now].lists.data, b->lists.bytes);
}

/* The device has read the lists of the epoch before the last one, in whose memory the thread writes
 * those of the next one. */
hg_status hg__train_buckets_epoch(hg_train *t, int64_t epoch)
{
	struct hg__buckets *b = &t->batches.buckets;
	hg__ahead_wait(&b->ahead);
	if (b->schedule[!b->now].padded && b->schedule[!b->now].epoch == epoch)
		b->now = !b->now;
	if (b->schedule[b->now].epoch != epoch)
		hg__schedule_make(&b->schedule[b->now], epoch);
	HG__TRY(lists_copy(t));
	if (b->ahead.runs)
		hg__ahead_ask(&b->ahead, schedule_next, b);
	return HG_OK;
}

static const struct hg__scheduled *scheduled(const hg_train *t, int64_t k)
{
	const struct hg__buckets *b = &t->batches.buckets;
	return hg__scheduled(&b->schedule[b->now], k);
}

int64_t hg__train_bucket_counted(const hg_train *t, int64_t k)
{
	return scheduled(t, k)->counted;
}

int hg__train_bucket_ready(const hg_train *t, int64_t k)
{
	const struct hg__buckets *b = &t->batches.buckets;
	const struct hg__shape_of_batch *shape = &scheduled(t, k)->shape;
	const int number = number_of(b, shape);
	if (number == HG__BUCKETS || !t->step)
		return 0;
	const struct hg__bucket *bucket = b->bucket[number];
	return bucket == b->current || (bucket->step && resumes(t, bucket->step, t->step->watch));
}

hg_status hg__train_bucket_begin(hg_train *t, int64_t k)
{
	struct hg__buckets *b = &t->batches.buckets;
	const struct hg__batch_list list = hg__schedule_list(&b->schedule[b->now], k, b->lists.data);
	HG__TRY(put_in_place(t, &scheduled(t, k)->shape));
	HG__TRY(hg__padded_assemble(&b->padded, &list, &b->current->batch));
	return tape_take(t);
}
