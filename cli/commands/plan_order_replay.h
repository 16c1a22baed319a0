// `plan order` of a step: an order that a replay follows.
#pragma once

#include <string>
#include <vector>

#include "cli/options/context.h"
#include "planners/order/order_method.h"

namespace spillway::cli {

struct TraceOrderRequest {
  std::string file, output, execution_trace;  // output: where the plan goes
  std::vector<std::string> settings;          // of a scenario
  OrderMethod method = OrderMethod::best;
  OrderOptions options;
  bool layout = false, baselines = false;
};

void run_trace_order(Context& context, const TraceOrderRequest& request);

}  // namespace spillway::cli
