/** @file
 * HalfGraph: training graph neural networks in half precision, fast, right and explained. This
 * header includes everything but the datasets, which are in halfgraph/data.h and libhalfgraph_data
 * (HDF5).
 *
 * Three rules hold everywhere:
 *
 * - A struct that begins with `size` is versioned: start from its _INIT macro or its default
 *   function, which set the size, and fields that a library does not know must be 0.
 * - `create` and `free` own, `get` and the like borrow; `free(NULL)` does nothing.
 * - The library never exits, never prints and has no globals but, for each thread, why its last
 *   hg_context_create failed and what is known of its OpenMP pool. One thread at a time uses a
 *   context; different contexts are independent. */
#ifndef HALFGRAPH_H
#define HALFGRAPH_H

#include "halfgraph/batches.h"
#include "halfgraph/context.h"
#include "halfgraph/dlpack.h"
#include "halfgraph/doctor.h"
#include "halfgraph/dtype.h"
#include "halfgraph/export.h"
#include "halfgraph/graph.h"
#include "halfgraph/graph_stream.h"
#include "halfgraph/group.h"
#include "halfgraph/metrics.h"
#include "halfgraph/model.h"
#include "halfgraph/observe.h"
#include "halfgraph/ops.h"
#include "halfgraph/optim.h"
#include "halfgraph/order.h"
#include "halfgraph/param.h"
#include "halfgraph/policy.h"
#include "halfgraph/predictor.h"
#include "halfgraph/profile.h"
#include "halfgraph/progress.h"
#include "halfgraph/schedule.h"
#include "halfgraph/shadow.h"
#include "halfgraph/state.h"
#include "halfgraph/status.h"
#include "halfgraph/step.h"
#include "halfgraph/tape.h"
#include "halfgraph/tensor.h"
#include "halfgraph/train.h"
#include "halfgraph/version.h"

#endif
