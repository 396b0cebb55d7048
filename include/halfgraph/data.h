/** @file
 * Everything of libhalfgraph_data, which is not part of halfgraph.h: datasets, their way to a
 * device and a training run, checkpoints, files. */
#ifndef HALFGRAPH_DATA_H
#define HALFGRAPH_DATA_H

#include "halfgraph/attach.h"
#include "halfgraph/checkpoint.h"
#include "halfgraph/dataset.h"
#include "halfgraph/file.h"
#include "halfgraph/fitness.h"
#include "halfgraph/prediction.h"
#include "halfgraph/upload.h"
#include "halfgraph/weights.h"

#endif
