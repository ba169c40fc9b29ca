/* All of PyC's C ABI. The rules are in common.h. */
#ifndef PYC_PYC_H_
#define PYC_PYC_H_

#include "pyc/artifact.h"
#include "pyc/common.h"
#include "pyc/compiler_api.h"
#include "pyc/conformance.h"
#include "pyc/cuda_backend.h"
#include "pyc/ir.h"
#include "pyc/kernel_registry.h"
#include "pyc/model_file.h"
#include "pyc/pass_manager.h"
#include "pyc/predict.h"
#include "pyc/report.h"
#include "pyc/results.h"
#include "pyc/runtime_allocator.h"
#include "pyc/trace.h"
#include "pyc/train.h"
#include "pyc/tune.h"

#endif
