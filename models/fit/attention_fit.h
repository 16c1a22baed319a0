// Fits fused attention: physical constants for all head sizes of a GPU and a table of residuals forwards; constants
// only backwards, of which a dozen rows are published.
#pragma once

#include <string>
#include <vector>

#include "models/cost/operator_times.h"
#include "models/fit/error_summary.h"

namespace spillway::models::fit {

struct AttentionRow {
  AttentionSides sides;
  double seconds = 0;
};

// A fifth, by the hash of gemm_rows.h over (1000 batch + heads, queries, 1000 kv heads + key dim).
bool held_out(const AttentionSides& sides);

// TensorRT-LLM's prefill attention of aiconfigurator. `causal`: rows of a context_attention_perf table without a
// sliding window and with keys in the product's own format. Else the unmasked ones of an encoder_attention_perf table.
std::vector<AttentionRow> read_context_rows(const std::string& path, std::string_view format, bool causal);
// cuDNN's training attention of cudnn-frontend: every table of the folder with a name that begins so; rows that ran.
std::vector<AttentionRow> read_training_rows(const std::string& folder, const std::string& prefix,
                                             std::string_view format, AttentionPass pass);

struct MeasuredAttention {
  DatasheetFacts facts;
  Precision precision = Precision::bf16;
  AttentionPass pass = AttentionPass::forward;
  std::vector<AttentionRow> rows;
};

struct AttentionErrors {
  ErrorSummary all, causal, full;
  RegimeErrors regimes;
};

double predicted_seconds(const AttentionTimes& times, const MeasuredAttention& measured, const AttentionRow& row);
AttentionErrors attention_errors(const AttentionTimes& times, const MeasuredAttention& measured, bool only_held_out);

// Each row predicted by a fit to all the others. For sets of a dozen rows.
ErrorSummary leave_one_out(const MeasuredAttention& measured);

// With a table when there are rows enough for one. Precondition: rows.
AttentionTimes fit_attention(const MeasuredAttention& measured);

}  // namespace spillway::models::fit
