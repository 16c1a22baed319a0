#include "models/pipeline/pipeline_check.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/input_error.h"

namespace spillway::models {
namespace {

using Kind = PipelineOpKind;

// What has been done for one pass on one device.
struct PassState {
  std::int32_t forward = -1, backward = -1, offload = -1, reload = -1;  // places in their lanes
  bool is_split = false, has_weights = false, is_recomputed = false;
};

class PlanCheck {
 public:
  PlanCheck(const PipelinePlan& plan, const std::string& file) : plan_(plan), file_(file) {
    routes_.assign(static_cast<std::size_t>(plan.devices * plan.chunks_of_device()), no_route);
    for (std::size_t r = 0; r < plan.routes.size(); ++r) place_route(r);
  }

  void run() {
    if (plan_.compute.size() != static_cast<std::size_t>(plan_.devices) || plan_.copies.size() != plan_.compute.size())
      fail("", "there are not as many lanes as devices", "give one list of operations per device");
    for (device_ = 0; device_ < plan_.compute.size(); ++device_) {
      states_.assign(static_cast<std::size_t>(plan_.micro_batches * plan_.slices * plan_.chunks_of_device()), {});
      for (at_ = 0; at_ < copies().size(); ++at_) copy_places(copies()[at_]);
      for (at_ = 0; at_ < compute().size(); ++at_) compute_op(compute()[at_]);
      for (at_ = 0; at_ < copies().size(); ++at_) copy_op(copies()[at_]);
      everything_done();
    }
  }

 private:
  static constexpr std::size_t no_route = ~std::size_t{0};

  [[nodiscard]] const std::vector<PipelineOp>& compute() const { return plan_.compute[device_]; }
  [[nodiscard]] const std::vector<PipelineOp>& copies() const { return plan_.copies[device_]; }

  [[noreturn]] void fail(const std::string& place, const std::string& cause, const std::string& remedy) const {
    throw InputError(file_, place.empty() ? "schedule" : place, cause, remedy);
  }
  void require(bool holds, const PipelineOp& op, const char* cause, const char* remedy) const {
    if (holds) return;
    fail("device " + std::to_string(device_) + ", operation " + std::to_string(at_) + " (" + text_of(plan_, op) + ")",
         cause, remedy);
  }

  void place_route(std::size_t r) {
    if (plan_.routes[r].size() != static_cast<std::size_t>(plan_.positions()))
      fail("", "a route has not as many positions as there are chunks", "give every position a device");
    for (const PipelinePlan::Place& place : plan_.routes[r]) {
      const bool is_inside = place.device >= 0 && place.device < plan_.devices && place.chunk >= 0 &&
                             place.chunk < plan_.chunks_of_device();
      std::size_t* route =
          is_inside ? &routes_[static_cast<std::size_t>(place.device * plan_.chunks_of_device() + place.chunk)]
                    : nullptr;
      if (route == nullptr || *route != no_route)
        fail("", "a route names a chunk that isn't there, or one twice", "place every chunk of every device once");
      *route = r;
    }
  }

  PassState& state(const PipelinePass& pass, const PipelineOp& op) {
    const std::int64_t chunks = plan_.chunks_of_device();
    require(pass.micro_batch >= 0 && pass.micro_batch < plan_.micro_batches, op, "no such micro-batch",
            "count them from 0");
    require(pass.chunk >= 0 && pass.chunk < chunks, op, "the device has no such chunk", "count them from 0");
    require(pass.slice >= 0 && pass.slice < plan_.slices, op, "no such slice", "count them from 0");
    require(routes_[device_ * static_cast<std::size_t>(chunks) + static_cast<std::size_t>(pass.chunk)] ==
                plan_.route(pass.micro_batch),
            op, "the micro-batch doesn't come through this chunk", "take the chunk of the same direction");
    return states_[static_cast<std::size_t>((pass.micro_batch * plan_.slices + pass.slice) * chunks + pass.chunk)];
  }

  void forward(const PipelinePass& pass, const PipelineOp& op) {
    PassState& done = state(pass, op);
    require(done.forward < 0, op, "its forward has run already", "list every pass once");
    if (pass.slice > 0) {
      PipelinePass before = pass;
      --before.slice;
      require(state(before, op).forward >= 0, op, "an earlier slice's forward comes later", "put slices in order");
    }
    done.forward = static_cast<std::int32_t>(at_);
  }

  void backward(const PipelinePass& pass, const PipelineOp& op, bool is_split) {
    PassState& done = state(pass, op);
    require(done.forward >= 0, op, "it runs before its forward", "put it behind");
    require(done.backward < 0, op, "its backward has run already", "list every pass once");
    if (pass.slice + 1 < plan_.slices) {
      PipelinePass behind = pass;
      ++behind.slice;
      require(state(behind, op).backward >= 0, op, "a later slice's backward comes later", "put the last slice first");
    }
    if (done.offload >= 0) {
      require(done.reload >= 0, op, "its activations were offloaded and are never reloaded", "add the reload");
      require(op.after >= done.reload, op, "it doesn't wait for its reload", "make it wait");
    }
    done.backward = static_cast<std::int32_t>(at_);
    done.is_split = is_split;
  }

  void compute_op(const PipelineOp& op) {
    require(op.after < static_cast<std::int64_t>(copies().size()), op, "it waits for a copy that isn't there",
            "count copies from 0");
    switch (op.kind) {
      case Kind::forward:
        return forward(op.pass, op);
      case Kind::backward:
        return backward(op.pass, op, false);
      case Kind::input_gradient:
        return backward(op.pass, op, true);
      case Kind::paired:
        backward(op.second, op, false);
        return forward(op.pass, op);
      case Kind::weight_gradient: {
        PassState& done = state(op.pass, op);
        require(done.backward >= 0, op, "it runs before its B", "put it behind");
        require(done.is_split && !done.has_weights, op, "its weight gradient is done already", "list W once, with B");
        done.has_weights = true;
        return;
      }
      case Kind::recompute: {
        PassState& done = state(op.pass, op);
        require(done.forward >= 0 && done.backward < 0 && !done.is_recomputed, op,
                "a recomputation goes between its forward and its backward, once", "move or remove it");
        done.is_recomputed = true;
        return;
      }
      case Kind::offload:
      case Kind::reload:
        require(false, op, "a copy in the list of computations", "put it into the device's copies");
    }
  }

  void copy_places(const PipelineOp& op) {
    require(is_copy(op.kind), op, "a computation in the list of copies", "put it into the device's operations");
    require(op.peer < plan_.devices && op.peer != static_cast<std::int64_t>(device_), op, "no such peer",
            "name another device, or none for the host");
    require(op.after < static_cast<std::int64_t>(compute().size()), op, "it waits for an operation that isn't there",
            "count operations from 0");
    PassState& done = state(op.pass, op);
    std::int32_t& place = op.kind == Kind::offload ? done.offload : done.reload;
    require(place < 0, op, "these activations were moved already", "move them once each way");
    require(op.kind == Kind::offload || done.offload >= 0, op, "it comes before its offload", "put it behind");
    place = static_cast<std::int32_t>(at_);
  }

  void copy_op(const PipelineOp& op) {
    const PassState& done = state(op.pass, op);
    if (op.kind == Kind::offload)
      require(done.forward >= 0 && op.after >= done.forward, op, "it doesn't wait for its forward", "make it wait");
  }

  void everything_done() {
    std::size_t forwards = 0, backwards = 0;
    for (const PassState& done : states_) {
      forwards += done.forward >= 0 ? 1u : 0u;
      backwards += done.backward >= 0 && (!done.is_split || done.has_weights) ? 1u : 0u;
    }
    const auto wanted = static_cast<std::size_t>(plan_.micro_batches * plan_.slices * plan_.chunks);
    const std::size_t held = plan_.routes.size() == 1 ? wanted : passes_here();
    if (forwards == held && backwards == held) return;
    fail("device " + std::to_string(device_),
         "it has " + std::to_string(forwards) + " forwards and " + std::to_string(backwards) +
             " whole backwards, and should have " + std::to_string(held) + " of each",
         "list every pass once: F, and BW or B and W");
  }
  [[nodiscard]] std::size_t passes_here() const {
    std::size_t passes = 0;
    for (std::int64_t j = 0; j < plan_.micro_batches; ++j)
      for (std::int64_t c = 0; c < plan_.chunks_of_device(); ++c)
        passes += routes_[device_ * static_cast<std::size_t>(plan_.chunks_of_device()) + static_cast<std::size_t>(c)] ==
                          plan_.route(j)
                      ? static_cast<std::size_t>(plan_.slices)
                      : 0;
    return passes;
  }

  const PipelinePlan& plan_;
  const std::string& file_;
  std::vector<std::size_t> routes_;  // by device and chunk
  std::vector<PassState> states_;    // of the device at hand
  std::size_t device_ = 0, at_ = 0;
};

}  // namespace

void check_plan(const PipelinePlan& plan, const std::string& file) { PlanCheck(plan, file).run(); }

}  // namespace spillway::models
