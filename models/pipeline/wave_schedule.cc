#include "models/pipeline/list_order.h"
#include "models/pipeline/schedule_builders.h"

namespace spillway::models {

// A wave is a forward run down the devices and one back: 2 chunks per device. A device prefers the older micro-batch,
// then backwards; the first one takes in as many micro-batches as fill p times its share.
PipelinePlan build_hanayo(const PipelineRequest& request) {
  PipelinePlan plan = zigzag_plan({}, request.devices, request.micro_batches, request.chunks);
  ListRules rules;
  rules.times.positions = {{.forward = 2, .input_gradient = 2, .weight_gradient = 2}};
  rules.held = request.devices * request.chunks;
  write_list_order(plan, rules);
  return plan;
}

}  // namespace spillway::models
