// Fits memory-bound kernels: share of the bandwidth and fixed time by kind.
#pragma once

#include <string>
#include <vector>

#include "models/cost/operator_times.h"
#include "models/fit/error_summary.h"

namespace spillway::models::fit {

struct MemoryRow {
  double bytes = 0, seconds = 0;
  bool held_out = false;  // a fifth, by the hash of gemm_rows.h over (rows, columns, kind)
};

// vidur's vLLM kernels at tensor parallel 1: the residual addition ("add": two tensors read, one written) and the
// embedding ("emb": rows read and written). Times have a resolution of 1 us, so those below 10 us are left out, and
// additions that L2 could serve. phi-2's are left out too: its block adds differently.
std::vector<MemoryRow> read_vidur_rows(const std::string& folder, const std::string& prefix, MemoryKind kind);
// cudnn-frontend's norms: x read and y written forwards; x, dy read and dx written backwards, by PyTorch's kernels.
std::vector<MemoryRow> read_norm_rows(const std::string& path, MemoryKind kind);

// time = (bytes - hits) / (bandwidth efficiency) + fixed, `hits` at most an L2 cache. Hits are what a repeated
// measurement finds there; a trace's kernel finds its data in memory, so hits are fitted and then left out.
// Precondition: rows that are not held out. `errors` receives those on held-out rows, hits included.
MemoryTimes fit_memory(MemoryKind kind, const std::vector<MemoryRow>& rows, const DatasheetFacts& facts,
                       ErrorSummary& errors);

}  // namespace spillway::models::fit
