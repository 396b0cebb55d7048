#ifndef HALFGRAPH_H
#define HALFGRAPH_H

/* HalfGraph: training graph neural networks in half precision, fast, right and explained.
 * Thread safety: one context per thread at a time; different contexts are independent. The library
 * has no globals but one
 * text per thread: why the last hg_context_create of that thread failed.
 * Everything but the datasets; those are in halfgraph/data.h and libhalfgraph_data (HDF5). */

#include "halfgraph/context.h"
#include "halfgraph/dlpack.h"
#include "halfgraph/doctor.h"
#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/graph.h"
#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "halfgraph/ops.h"
#include "halfgraph/optim.h"
#include "halfgraph/order.h"
#include "halfgraph/param.h"
#include "halfgraph/policy.h"
#include "halfgraph/progress.h"
#include "halfgraph/shadow.h"
#include "halfgraph/state.h"
#include "halfgraph/status.h"
#include "halfgraph/step.h"
#include "halfgraph/tape.h"
#include "halfgraph/tensor.h"
#include "halfgraph/train.h"
#include "halfgraph/version.h"

#endif
