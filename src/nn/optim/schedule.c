/* The schedule of an optimiser. The device computes its factor at the beginning of each step, from
 * the configuration and the counts that lie beside the step counter (kernels/step.h). */
#include "core/versioned.h"
#include "nn/optim/optim.h"

hg_status hg__optim_schedule(hg_optim *optim, const hg_schedule_config *schedule)
{
	hg_context *ctx = optim->params->ctx;
	optim->schedule = *schedule;
	return ctx->backend->copy_in(ctx, &optim->params->step->schedule, &optim->schedule,
	                             sizeof optim->schedule);
}

hg_status hg_optim_set_schedule(hg_optim *optim, const hg_schedule_config *config)
{
	if (!optim)
		return HG_ERR_ARG;
	hg_context *ctx = optim->params->ctx;
	hg_schedule_config ours = HG_SCHEDULE_CONFIG_INIT;
	if (!config)
		return hg__fail(ctx, HG_ERR_ARG, "optim_set_schedule: config is NULL");
	if (!hg__struct_read(&ours, sizeof ours, config))
		return hg__fail(ctx, HG_ERR_ARG,
		                "optim_set_schedule: config.size is not set (start from "
		                "HG_SCHEDULE_CONFIG_INIT), or a field unknown to this version is used");
	const char *fault = hg_schedule_fault(&ours);
	if (!fault && hg__schedule_ends(&ours) && !ours.total)
		fault = "total must be above warmup";
	if (fault)
		return hg__fail(ctx, HG_ERR_ARG, "optim_set_schedule: %s: %s",
		                hg_schedule_name(ours.kind) ? hg_schedule_name(ours.kind) : "config",
		                fault);
	return hg__optim_schedule(optim, &ours);
}

hg_status hg_optim_plateau(hg_optim *optim, double criterion, int rises)
{
	if (!optim)
		return HG_ERR_ARG;
	hg_context *ctx = optim->params->ctx;
	struct hg__step step;
	if (optim->schedule.kind != HG_SCHEDULE_PLATEAU)
		return HG_OK;
	HG__TRY(ctx->backend->copy_out(ctx, &step, optim->params->step, sizeof step));
	hg__step_plateau(&step, criterion, !rises);
	return ctx->backend->copy_in(ctx, &optim->params->step->plateau, &step.plateau,
	                             sizeof step.plateau);
}
