#include "studies/fit/other_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.h"
#include "hwprofiles/profile_library.h"
#include "planners/technique.h"
#include "studies/fit/fit_exports.h"
#include "studies/fit/fit_rank.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_replays = 24;  // of each training
constexpr std::int64_t share_of_work = 8;  // of the question's, as much for each

OtherTraining with(FitQuestion question, std::string name, Trainable trainable, const FitOptions& options,
                   std::string_view framework, bool& stopped) {
  const std::string said = setting("model.trainable", to_string(trainable));
  question.settings.push_back(said);
  question.same_maths = true;
  question.replays = std::min(question.replays, most_replays);
  question.work /= share_of_work;
  question.few_layouts = true;
  OtherTraining found{.name = std::move(name), .best = {}, .refusal = {}, .ended_early = false};
  FitOutcome outcome;
  try {
    const FitSubject subject = fit_subject(question);
    outcome = find_fit(question, subject, options);
    if (!framework.empty() && outcome.any())
      outcome = as_launched(question, subject, outcome, framework, {.store = options.store});
  } catch (const InputError& error) {
    found.refusal = error.cause();
    return found;
  }
  stopped = outcome.stopped;
  found.ended_early = outcome.exhausted;
  if (!outcome.any()) return found;
  found.best = std::move(outcome.ways.front());
  found.best->changes_maths = true;
  std::vector<std::string>& edits = found.best->row.candidate.edits;
  edits.insert(edits.begin(), said);
  return found;
}

class MachineSearch {
 public:
  MachineSearch(const FitQuestion& question, const FitSubject& subject, const FitOptions& options)
      : question_(question), subject_(subject), options_(options) {
    question_.same_maths = question_.few_layouts = true;
    question_.research = false;
    question_.replays = std::min(question_.replays, most_replays);
    question_.work /= share_of_work;
    question_.sequence = subject.parsed.training.sequence;
    question_.global_batch = subject.parsed.training.step_sequences();
  }

  std::vector<OtherMachine> run() {
    more_gpus();
    if (!stopped_) larger_gpus();
    return std::move(found_);
  }

 private:
  void more_gpus() {
    constexpr std::int64_t most_times = 64;
    for (std::int64_t times = 2; times <= most_times && !stopped_; times *= 2) {
      const std::int64_t gpus = times * subject_.gpus;
      if (!holds_weights(subject_.hardware.gpu.memory.value, gpus)) continue;
      const Tried tried = try_on(subject_.hardware.gpu.name, gpus, false);
      if (tried != Tried::too_large) return;
    }
  }

  void larger_gpus() {
    constexpr std::size_t most_tried = 6, most_told = 2;
    const auto first = static_cast<std::ptrdiff_t>(found_.size());
    std::size_t tried = 0;
    for (const auto& [price, gpu] : by_price()) {
      if (stopped_ || tried == most_tried) break;
      const Tried came = try_on(gpu, subject_.gpus, true);
      if (came == Tried::no_machine) continue;
      ++tried;
      if (came != Tried::fits) continue;
      Rates& rates = found_.back().best.row.rates;
      if (!(rates.usd_per_hour > 0)) rates.usd_per_hour = price * static_cast<double>(subject_.gpus);
    }
    std::stable_sort(found_.begin() + first, found_.end(), [&](const OtherMachine& a, const OtherMachine& b) {
      return a.best.row.cost_per_million_tokens() < b.best.row.cost_per_million_tokens();
    });
    if (found_.size() > static_cast<std::size_t>(first) + most_told) found_.resize(first + most_told);
  }

  // Of the same vendor, with more memory: USD an hour, as the cheapest machine of the library that has it costs, or by
  // its own price. The cheapest first.
  [[nodiscard]] std::vector<std::pair<double, std::string>> by_price() const {
    constexpr double more = 1.1;  // times the memory there is
    const ProfileLibrary& library = ProfileLibrary::shared();
    const GpuProfile& own = subject_.hardware.gpu;
    std::map<std::string, double> prices;
    const auto take = [&](const HardwareProfile& machine) {
      const GpuProfile& gpu = machine.gpu;
      const double price = rates_of(machine).usd_per_hour;
      const bool is_larger =
          static_cast<double>(gpu.memory.value.count()) >= more * static_cast<double>(own.memory.value.count());
      if (price <= 0 || gpu.vendor != own.vendor || !is_larger || !holds_weights(gpu.memory.value, subject_.gpus))
        return;
      const auto [at, is_new] = prices.emplace(gpu.name, price);
      if (!is_new) at->second = std::min(at->second, price);
    };
    for (const HardwareProfile& machine : library.systems()) take(machine);
    for (const ProfileEntry& entry : library.list()) {
      if (entry.kind != ProfileKind::gpu) continue;
      try {
        take(library.load_system(entry.name));
      } catch (const InputError&) {
        continue;  // a profile of the user's that can't be loaded
      }
    }
    std::vector<std::pair<double, std::string>> sorted;
    for (const auto& [gpu, price] : prices) sorted.emplace_back(price, gpu);
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

  // In 16 bits, on all GPUs together.
  [[nodiscard]] bool holds_weights(Bytes memory, std::int64_t gpus) const {
    return 2 * static_cast<double>(parameter_count(*subject_.model)) <=
           static_cast<double>(memory.count()) * static_cast<double>(gpus);
  }
  static std::string machine_of(const std::string& gpu, std::int64_t gpus) { return fmt::format("{}x{}", gpus, gpu); }

  enum class Tried : std::uint8_t { fits, too_large, no_machine };
  Tried try_on(const std::string& gpu, std::int64_t gpus, bool is_larger) {
    question_.machine = machine_of(gpu, gpus);
    try {
      FitOutcome outcome = find_fit(question_, fit_subject(question_), options_);
      stopped_ = outcome.stopped;
      if (stopped_ || !outcome.any() || !does_fit(outcome.ways.front().row)) return Tried::too_large;
      found_.push_back({question_.machine, gpus, is_larger, std::move(outcome.ways.front())});
      return Tried::fits;
    } catch (const InputError&) {
      return Tried::no_machine;  // so many don't make one, or the sequences don't divide
    }
  }

  FitQuestion question_;
  const FitSubject& subject_;
  const FitOptions& options_;
  std::vector<OtherMachine> found_;
  bool stopped_ = false;
};

}  // namespace

std::vector<OtherTraining> other_trainings(const FitQuestion& question, const FitSubject& subject,
                                           const FitOptions& options, std::string_view framework) {
  if (!subject.model || question.same_maths || subject.parsed.training.has_adapters()) return {};
  std::vector<OtherTraining> found;
  bool stopped = false;
  for (const auto& [name, trainable] : {std::pair("LoRA", Trainable::lora), std::pair("QLoRA", Trainable::qlora)}) {
    OtherTraining one = with(question, name, trainable, options, framework, stopped);
    if (stopped) break;
    found.push_back(std::move(one));
  }
  return found;
}

std::vector<OtherMachine> on_other_machines(const FitQuestion& question, const FitSubject& subject,
                                            const FitOptions& options) {
  if (!subject.model) return {};
  return MachineSearch(question, subject, options).run();
}

}  // namespace spillway::studies
