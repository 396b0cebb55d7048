/* Branches of a context (branch.h). The backend gives them streams. */
#include "core/branch.h"

hg_status hg__branch_open(hg_context *of, int threads, hg_context **branch)
{
	void *memory = NULL;
	*branch = NULL;
	HG__TRY(hg__host_alloc(of, 1, sizeof(hg_context), "branch", &memory));
	hg_context *made = memory;
	*made = *of;
	made->of = of;
	made->state = made->stream = NULL;
	made->workspace = NULL;
	made->workspace_bytes = made->current_bytes = made->peak_bytes = 0;
	made->threads = threads;
	made->log = NULL;
	made->holds = 1;
	hg_status status = of->backend->branch ? of->backend->branch(of, made) : HG_OK;
	if (status >= 0)
		status = hg__branch_grow(made);
	hg__context_hold(of);
	if (status < 0) {
		(void)hg__fail(of, status, "%s", made->message);
		hg__branch_close(made);
		return status;
	}
	*branch = made;
	return HG_OK;
}

void hg__branch_close(hg_context *branch)
{
	if (!branch)
		return;
	hg_context *of = branch->of;
	hg__device_free(branch, branch->workspace, branch->workspace_bytes);
	branch->backend->close(branch);
	hg__host_free(of, branch, sizeof *branch);
	hg__context_release(of);
}

hg_status hg__branch_grow(hg_context *branch)
{
	void *workspace;
	return hg__workspace(branch, branch->of->workspace_bytes, &workspace);
}

hg_status hg__branch_fork(hg_context *branch)
{
	return branch->backend->stream_publish(branch->of, branch->stream);
}

hg_status hg__branch_join(hg_context *branch)
{
	return branch->backend->stream_await(branch->of, branch->stream);
}
