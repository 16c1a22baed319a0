// Fits matrix products: physical constants to a sample of the rows of one or more GPUs, then a table of residuals for
// each GPU. Kin (H100 and H200) share the constants and the smooth part of the table, which halves their noise.
#pragma once

#include <vector>

#include "models/cost/operator_times.h"
#include "models/fit/error_summary.h"
#include "models/fit/gemm_rows.h"

namespace spillway::models::fit {

struct MeasuredGemm {
  DatasheetFacts facts;
  Precision precision = Precision::bf16;
  std::vector<GemmRow> rows;  // all, held-out ones too
};

struct GemmErrors {
  ErrorSummary all, large;  // large: m, n, k >= 1024
  RegimeErrors regimes;
};

GemmMachine machine_of(const DatasheetFacts& facts, Precision precision);
// Seconds by physics and, where there is one, the table.
double predicted_seconds(const GemmTimes& times, const DatasheetFacts& facts, const GemmRow& row);
// On held-out rows only, or on all.
GemmErrors gemm_errors(const GemmTimes& times, const MeasuredGemm& measured, bool only_held_out);

// One result per GPU, in order. Preconditions: at least one GPU, all of one precision, none without rows.
std::vector<GemmTimes> fit_gemm(const std::vector<MeasuredGemm>& kin);

}  // namespace spillway::models::fit
