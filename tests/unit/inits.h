#ifndef HG_TESTS_INITS_H
#define HG_TESTS_INITS_H

#include "halfgraph/data.h"
#include "halfgraph/halfgraph.h"

/* Every _INIT of the public headers, used as a program in C or C++ uses them: each initialises all
 * of its struct, without a warning, and sets its size. */

struct test_inits {
	hg_context_config context;
	hg_memory_info memory;
	hg_graph_facts facts;
	hg_loss_scale_config loss_scale;
	hg_plan_info plan;
	hg_optim_config optim;
	hg_step_info step;
	hg_model_input input;
	hg_train_data data;
	hg_train_report report;
	hg_planted_config planted;
	hg_import_config import;
	hg_step_config step_config;
	hg_step_launch step_launch;
	hg_locality locality;
	hg_order_config order;
	hg_order_report order_report;
	hg_narrowing narrowing;
	hg_doctor_config doctor;
	hg_doctor_trial trial;
	hg_observer observer;
	hg_observation observation;
	hg_rows_advice rows;
	hg_upload_config upload;
	hg_attention_config attention;
	hg_metric_data metric;
	hg_evaluation evaluation;
	hg_schedule_config schedule;
	hg_predict_config predict;
};

static inline struct test_inits test_inits_make(void)
{
	const struct test_inits all = {
	    HG_CONTEXT_CONFIG_INIT,    HG_MEMORY_INFO_INIT,    HG_GRAPH_FACTS_INIT,
	    HG_LOSS_SCALE_CONFIG_INIT, HG_PLAN_INFO_INIT,      HG_OPTIM_CONFIG_INIT,
	    HG_STEP_INFO_INIT,         HG_MODEL_INPUT_INIT,    HG_TRAIN_DATA_INIT,
	    HG_TRAIN_REPORT_INIT,      HG_PLANTED_CONFIG_INIT, HG_IMPORT_CONFIG_INIT,
	    HG_STEP_CONFIG_INIT,       HG_STEP_LAUNCH_INIT,    HG_LOCALITY_INIT,
	    HG_ORDER_CONFIG_INIT,      HG_ORDER_REPORT_INIT,   HG_NARROWING_INIT,
	    HG_DOCTOR_CONFIG_INIT,     HG_DOCTOR_TRIAL_INIT,   HG_OBSERVER_INIT,
	    HG_OBSERVATION_INIT,       HG_ROWS_ADVICE_INIT,    HG_UPLOAD_CONFIG_INIT,
	    HG_ATTENTION_CONFIG_INIT,  HG_METRIC_DATA_INIT,    HG_EVALUATION_INIT,
	    HG_SCHEDULE_CONFIG_INIT,   HG_PREDICT_CONFIG_INIT,
	};
	return all;
}

#endif
