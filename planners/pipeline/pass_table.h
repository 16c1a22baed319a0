// Passes of a plan as numbers: dense, in order of micro-batch, slice and position, for flat arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/pipeline/pipeline_plan.h"

namespace spillway::planners {

class PassTable {
 public:
  explicit PassTable(const PipelinePlan& plan)
      : slices_(static_cast<std::size_t>(plan.slices)),
        positions_(static_cast<std::size_t>(plan.positions())),
        chunks_(static_cast<std::size_t>(plan.chunks_of_device())),
        size_(static_cast<std::size_t>(plan.micro_batches) * slices_ * positions_),
        position_(static_cast<std::size_t>(plan.devices) * chunks_, 0),
        route_(position_.size(), 0) {
    for (std::size_t r = 0; r < plan.routes.size(); ++r) {
      for (std::size_t at = 0; at < plan.routes[r].size(); ++at) {
        const PipelinePlan::Place place = plan.routes[r][at];
        const std::size_t index = place_index(static_cast<std::size_t>(place.device), place.chunk);
        position_[index] = static_cast<std::uint32_t>(at);
        route_[index] = static_cast<std::uint8_t>(r);
      }
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t positions() const { return positions_; }
  // Position in the model, and its route.
  [[nodiscard]] std::size_t position(std::size_t device, std::int64_t chunk) const {
    return position_[place_index(device, chunk)];
  }
  [[nodiscard]] std::size_t route(std::size_t device, std::int64_t chunk) const {
    return route_[place_index(device, chunk)];
  }
  [[nodiscard]] std::size_t index(const PipelinePass& pass, std::size_t at) const {
    return (static_cast<std::size_t>(pass.micro_batch) * slices_ + static_cast<std::size_t>(pass.slice)) * positions_ +
           at;
  }

 private:
  [[nodiscard]] std::size_t place_index(std::size_t device, std::int64_t chunk) const {
    return device * chunks_ + static_cast<std::size_t>(chunk);
  }
  std::size_t slices_, positions_, chunks_, size_;
  std::vector<std::uint32_t> position_;  // by device and chunk
  std::vector<std::uint8_t> route_;
};

}  // namespace spillway::planners
