/* H' = relu(BN2(relu(BN1(H W1)) W2)), what GIN and GINE do with a combined row. There are no
 * biases, because the batch norm that follows would subtract them again. */
#include "halfgraph/ops.h"
#include "nn/model.h"

hg_status hg__perceptron_build(hg_params *params, const struct hg__layer_spec *spec,
                               struct hg__perceptron *mlp)
{
	HG__TRY(hg__linear_build(params, spec->name, "mlp1", spec->in, spec->out,
	                         HG_INIT_GLOROT_UNIFORM, 0, &mlp->first));
	HG__TRY(hg__batch_norm_build(params, spec->name, "bn1", spec->out, &mlp->norm[0]));
	HG__TRY(hg__linear_build(params, spec->name, "mlp2", spec->out, spec->out,
	                         HG_INIT_GLOROT_UNIFORM, 0, &mlp->second));
	return hg__batch_norm_build(params, spec->name, "bn2", spec->out, &mlp->norm[1]);
}

hg_var hg__perceptron_rest(const struct hg__perceptron *mlp, const struct hg__layer_spec *spec,
                           hg_tape *tape, hg_var z)
{
	z = hg_relu(tape, hg__batch_norm_record(&mlp->norm[0], tape, z));
	z = hg__linear_record(&mlp->second, tape, hg__features_dense(z, spec->out));
	return hg_relu(tape, hg__batch_norm_record(&mlp->norm[1], tape, z));
}
