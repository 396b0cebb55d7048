/* How many bytes a line of a tape has to move at least. */
#include "autograd/profile.h"

#include "autograd/opkit.h"

/* The matrices of a call that have been counted: an operand that is there twice is read once. */
struct seen {
	const void *data[2 * HG__MAX_IN + HG__MAX_AUX + 2];
	int count;
};

/* 0 for an absent matrix, and for one that was counted before. */
static double bytes_of(struct seen *seen, const struct hg__mat *mat)
{
	if (!mat->data)
		return 0.0;
	for (int i = 0; i < seen->count; i++)
		if (seen->data[i] == mat->data)
			return 0.0;
	seen->data[seen->count++] = mat->data;
	return hg__mat_bytes(mat);
}

static double read_operands(const struct hg__call *call, struct seen *seen)
{
	double bytes = 0.0;
	for (int i = 0; i < HG__MAX_IN; i++)
		bytes += bytes_of(seen, &call->in[i]);
	return bytes;
}

static double graph_bytes(const struct hg__call *call, const struct hg__csr *csr)
{
	return call->node->op->traits & HG__GRAPH && csr->rowptr ? hg__csr_bytes(csr) : 0.0;
}

static void count_forward(const hg_tape *tape, const struct hg__task *task, hg_profile_line *line)
{
	const struct hg__call *call = &task->call;
	const unsigned saves = tape->recording.entry[task->entry].saves;
	struct seen read = {.count = 0}, written = {.count = 0};
	line->bytes_read = read_operands(call, &read) + graph_bytes(call, &call->csr);
	line->bytes_written = bytes_of(&written, &call->out);
	for (int i = 0; i < HG__MAX_AUX; i++)
		if (!(saves & HG__BACK_AUX(i)))
			line->bytes_written += bytes_of(&written, &call->aux[i]);
	/* a result whose own kernel does not compare what it stores is read by another one */
	if (call->overflow.word && !(call->node->op->traits & HG__GUARDS_STORE))
		line->bytes_read += hg__mat_bytes(&call->out);
}

/* What the tape adds to a gradient after the call. */
static void count_parts(const struct hg__task *task, hg_profile_line *line)
{
	for (int i = 0; i < HG__MAX_IN; i++) {
		if (!task->add[i].data)
			continue;
		line->bytes_read += hg__mat_bytes(&task->call.din[i]);
		line->bytes_read += task->is_first[i] ? 0.0 : hg__mat_bytes(&task->add[i]);
		line->bytes_written += hg__mat_bytes(&task->add[i]);
	}
}

static void count_backward(const struct hg__task *task, hg_profile_line *line)
{
	const struct hg__call *call = &task->call;
	struct seen read = {.count = 0}, written = {.count = 0};
	(void)bytes_of(&written, &call->dout); /* a gradient that is passed on is not written */
	for (int i = 0; i < HG__MAX_IN; i++) {
		const double bytes = bytes_of(&written, &call->din[i]);
		line->bytes_written += bytes;
		line->bytes_read += call->adds >> i & 1u ? bytes : 0.0;
	}
	if (line->bytes_written <= 0.0) /* all gradients are passed on: there is nothing to do */
		return;
	line->bytes_read += read_operands(call, &read) + bytes_of(&read, &call->dout) +
	                    bytes_of(&read, &call->out) + bytes_of(&read, &call->through.x) +
	                    graph_bytes(call, call->csr_t.rowptr ? &call->csr_t : &call->csr);
	for (int i = 0; i < HG__MAX_AUX; i++)
		line->bytes_read += bytes_of(&read, &call->aux[i]);
	count_parts(task, line);
}

/* Backward computes the layers from X again. */
static void count_region(const struct hg__region_call *call, int backward, hg_profile_line *line)
{
	const struct hg__small_layers_args *a = &call->forward;
	const double kept = hg__mat_bytes(&a->kept);
	line->bytes_read = hg__mat_bytes(&a->x) + hg__csr_bytes(&a->csr);
	for (int l = 0; l < a->layers; l++) {
		const struct hg__small_layer *layer = &a->layer[l];
		line->bytes_read += hg__mat_bytes(&layer->w) + hg__mat_bytes(&layer->w_self) +
		                    hg__mat_bytes(&layer->b) + (backward ? hg__mat_bytes(&layer->dy) : 0.0);
		line->bytes_written += backward
		                           ? hg__mat_bytes(&layer->dw) + hg__mat_bytes(&layer->dw_self) +
		                                 hg__mat_bytes(&layer->db)
		                           : hg__mat_bytes(&layer->y);
	}
	line->bytes_read += backward ? kept + hg__mat_bytes(&a->readout.dy) : 0.0;
	line->bytes_written += backward ? 0.0 : hg__mat_bytes(&a->readout.y);
	line->bytes_written += backward ? hg__mat_bytes(&call->backward.dx) : kept;
}

void hg__profile_bytes(const hg_tape *tape, const struct hg__task *task, int backward,
                       hg_profile_line *line)
{
	line->bytes_read = line->bytes_written = 0.0;
	if (task->idle)
		return;
	if (task->region)
		count_region(task->region, backward, line);
	else if (backward)
		count_backward(task, line);
	else
		count_forward(tape, task, line);
}
