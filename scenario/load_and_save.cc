#include "scenario/load_and_save.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number_text.h"
#include "models/spec/model_spec.h"
#include "scenario/evaluation.h"

namespace spillway::scenario {
namespace {

std::int64_t largest_unit(const ModelSpec& model, const TrainingSetup& setup) {
  std::map<std::int64_t, std::int64_t> layers;
  std::int64_t largest = 0;
  for (const models::Parameter& parameter : parameters(model)) {
    std::int64_t& unit = layers[parameter.layer];
    unit = setup.traits().deepspeed ? parameter.elements() : unit + parameter.elements();
    largest = std::max(largest, unit);
  }
  return largest;
}

}  // namespace

std::vector<PhaseResult> load_and_save(const ModelSpec& model, const TrainingSetup& setup, std::int64_t machine_gpus) {
  using models::Loading, models::Saving;
  std::vector<PhaseResult> all;
  const std::int64_t whole = parameter_count(model), bytes = setup.has_wide_shards() ? 4 : setup.weight_bytes();
  const std::string weights = fmt::format("the whole model at {} bytes a parameter", bytes);
  const auto add = [&](const char* name, std::int64_t taken, bool on_host, std::string basis) {
    PhaseResult one{.name = name, .peak = Bytes(taken), .basis = std::move(basis)};
    one.on_host = on_host;
    all.push_back(std::move(one));
  };
  if (setup.loading != Loading::shares) {
    const std::int64_t times = setup.loading == Loading::each ? std::min(machine_gpus, setup.gpus()) : 1;
    add("loading", times * whole * bytes, true,
        fmt::format("{}, {}", weights, times == 1 ? "once a machine" : fmt::format("{} times a machine", times)));
  }
  if (setup.saving == Saving::first) {
    add("saving", largest_unit(model, setup) * bytes, false, "the largest unit gathered beside what is held");
    add("saving", whole * bytes, true, weights + ", in one process's host memory");
  } else if (setup.saving == Saving::gpu) {
    add("saving", whole * bytes, false, weights + ", on every GPU beside what is held");
  }
  return all;
}

void judge_load_and_save(const LoadedScenario& loaded, Result& result) {
  const Bytes held = held_before(loaded.trace), host = loaded.hardware.host.dram.value;
  for (PhaseResult one : loaded.between_steps) {
    const bool saves = one.name == "saving";
    if (one.on_host) {
      if (saves) one.peak += result.host_memory.peak;
    } else {
      one.peak += held;
    }
    const Bytes limit = one.on_host ? host : std::max(Bytes(0), loaded.capacity - loaded.reserve.taken);
    one.allocated = one.reserved = one.peak;
    if (limit > Bytes(0)) one.verdict = verdict_of(one.peak, limit);
    if (one.verdict == Verdict::does_not_fit) one.short_of = one.peak - limit;
    result.between_steps.push_back(std::move(one));
  }
}

}  // namespace spillway::scenario
