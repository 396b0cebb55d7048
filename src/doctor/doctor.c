#include "doctor/doctor.h"

#include "core/versioned.h"

/* Doctors: made for a training loop of the user's own or for a training run, and freed. The
 * examinations themselves are in examine.c. */

/* ---- creating ---- */

static hg_status config_read(hg_context *ctx, const hg_doctor_config *theirs,
                             hg_doctor_config *ours)
{
	const hg_doctor_config defaults = HG_DOCTOR_CONFIG_INIT;
	*ours = defaults;
	if (theirs && !hg__struct_read(ours, sizeof *ours, theirs))
		return hg__fail(ctx, HG_ERR_ARG,
		                "doctor: config.size is not set (start from HG_DOCTOR_CONFIG_INIT), or a "
		                "field unknown to this version is used");
	if (ours->most_findings < 1)
		return hg__fail(ctx, HG_ERR_ARG, "doctor: most_findings is %d, expected at least 1",
		                ours->most_findings);
	if (ours->features && ours->features_dtype != HG_F16 && ours->features_dtype != HG_F32)
		return hg__fail(ctx, HG_ERR_DTYPE, "doctor: features_dtype is %s, expected f16 or f32",
		                hg_dtype_name(ours->features_dtype));
	return HG_OK;
}

static hg_status create(hg_params *params, hg_optim *optim, const hg_doctor_config *config,
                        hg_doctor **out)
{
	hg_context *ctx = params->ctx;
	hg_doctor_config ours;
	HG__TRY(config_read(ctx, config, &ours));
	void *memory = NULL;
	HG__TRY(hg__host_alloc(ctx, 1, sizeof(hg_doctor), "doctor", &memory));
	hg_doctor *doctor = memory;
	doctor->ctx = ctx;
	doctor->params = params;
	doctor->optim = optim;
	doctor->config = ours;
	const hg_status status = hg__weight_sizes_open(params, &doctor->initial_weights);
	if (status < 0) {
		hg__host_free(ctx, doctor, sizeof *doctor);
		return status;
	}
	*out = doctor;
	return HG_OK;
}

static hg_status record_tape(hg_doctor *doctor, hg_doctor_record_fn record, void *user)
{
	HG__TRY(hg_tape_create(doctor->params, HG_TRAIN, &doctor->tape));
	hg_tape_observe(doctor->tape, 0);
	doctor->tape->plan.keeps = 1;
	HG__TRY(hg_tape_compile(doctor->tape, record(user, doctor->tape)));
	return doctor->tape->plan.trains
	           ? HG_OK
	           : hg__fail(doctor->ctx, HG_ERR_ARG,
	                      "doctor: what was recorded gives no loss, f32 [1, 1]");
}

/* Recording a tape may change what is assumed of the parameters. The tapes of the run rely on the
 * present assumptions, so they are put back. */
static hg_status record_beside_run(hg_doctor *doctor, hg_doctor_record_fn record, void *user)
{
	hg_params *params = doctor->params;
	const int64_t count = params->count, reaches = params->reaches;
	void *memory = NULL;
	HG__TRY(hg__host_alloc(doctor->ctx, (size_t)count, sizeof(double),
	                       "doctor: what is assumed of the weights", &memory));
	double *reach = memory;
	for (int64_t i = 0; i < count; i++)
		reach[i] = params->item[i]->reach;
	const hg_status status = record_tape(doctor, record, user);
	for (int64_t i = 0; i < count; i++)
		params->item[i]->reach = reach[i];
	params->reaches = reaches;
	hg__host_free(doctor->ctx, memory, (size_t)count * sizeof(double));
	return status;
}

hg_status hg_doctor_create(hg_params *params, hg_optim *optim, hg_doctor_record_fn record,
                           void *user, const hg_doctor_config *config, hg_doctor **doctor)
{
	if (doctor)
		*doctor = NULL;
	if (!params)
		return HG_ERR_ARG;
	if (!record || !doctor)
		return hg__fail(params->ctx, HG_ERR_ARG, "doctor: %s is NULL",
		                record ? "doctor" : "record");
	if (optim && optim->params != params)
		return hg__fail(params->ctx, HG_ERR_ARG,
		                "doctor: the optimiser belongs to other parameters");
	hg_doctor *made = NULL;
	HG__TRY(create(params, optim, config, &made));
	const hg_status status = record_beside_run(made, record, user);
	if (status < 0) {
		hg_doctor_free(made);
		return status;
	}
	*doctor = made;
	return HG_OK;
}

hg_status hg_doctor_create_train(hg_train *train, const hg_doctor_config *config,
                                 hg_doctor **doctor)
{
	if (doctor)
		*doctor = NULL;
	if (!train)
		return HG_ERR_ARG;
	if (!doctor)
		return hg__fail(train->ctx, HG_ERR_ARG, "doctor: doctor is NULL");
	if (train->batches.all)
		return hg__fail(train->ctx, HG_ERR_UNSUPPORTED,
		                "doctor: the run is in batches of graphs, whose steps are gone when they "
		                "could be examined: train without batch_graphs");
	HG__TRY(create(train->params, train->optim, config, doctor));
	(*doctor)->train = train;
	return HG_OK;
}

void hg_doctor_free(hg_doctor *doctor)
{
	if (!doctor)
		return;
	hg_context *ctx = doctor->ctx;
	hg_tape_free(doctor->tape);
	hg__report_memory_free(ctx, &doctor->memory);
	hg__weight_sizes_close(ctx, &doctor->initial_weights);
	hg__host_free(ctx, doctor, sizeof *doctor);
}

/* ---- examining ---- */

/* tape: that of a training run, which is copied for the time of the examination; NULL: the doctor
 * has recorded its own. */
static hg_status examine_tape(hg_doctor *doctor, const hg_tape *tape, int back, int evaluation,
                              const hg_doctor_report **report)
{
	hg__report_memory_free(doctor->ctx, &doctor->memory);
	if (tape)
		HG__TRY(hg__tape_copy_kept(tape, &doctor->tape));
	const hg_status status = hg__examine(doctor, back, evaluation);
	if (tape) {
		hg_tape_free(doctor->tape);
		doctor->tape = NULL;
	}
	HG__TRY(status);
	*report = &doctor->report;
	return HG_OK;
}

static const char no_tape[] = "the run has no tape, because recording it again failed";

hg_status hg_doctor_examine(hg_doctor *doctor, int back, const hg_doctor_report **report)
{
	if (report)
		*report = NULL;
	if (!doctor)
		return HG_ERR_ARG;
	if (!report || (back != 0 && back != 1))
		return hg__fail(doctor->ctx, HG_ERR_ARG,
		                report ? "doctor_examine: back is %d, expected 0 or 1"
		                       : "doctor_examine: report is NULL",
		                back);
	if (doctor->train && !doctor->train->tape)
		return hg__fail(doctor->ctx, HG_ERR_STATE, "doctor_examine: %s", no_tape);
	return examine_tape(doctor, doctor->train ? doctor->train->tape : NULL, back, 0, report);
}

hg_status hg_doctor_examine_evaluation(hg_doctor *doctor, const hg_doctor_report **report)
{
	if (report)
		*report = NULL;
	if (!doctor)
		return HG_ERR_ARG;
	if (!report)
		return hg__fail(doctor->ctx, HG_ERR_ARG, "doctor_examine_evaluation: report is NULL");
	if (!doctor->train || !doctor->train->evaluator.tape)
		return hg__fail(doctor->ctx, HG_ERR_STATE, "doctor_examine_evaluation: %s",
		                doctor->train ? no_tape : "expected the doctor of a training run");
	return examine_tape(doctor, doctor->train->evaluator.tape, 0, 1, report);
}
