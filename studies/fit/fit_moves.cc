#include "studies/fit/fit_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "models/pipeline/named_schedules.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_settings.h"
#include "planners/technique/technique_table.h"
#include "sim/devices/memory/memory_policies.h"
#include "studies/fit/fit_knobs.h"
#include "studies/fit/fit_layouts.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_micro_batch = 64;

std::string keep_all() { return setting(recompute_key, to_string(Recompute::none)); }

// Too long for a search by some fifty replays of its own, each with all ranks.
bool is_long(const ModelSpec& model, const TrainingSetup& setup) {
  constexpr std::int64_t most_layer_runs = 1500;
  const std::int64_t replicas = std::max<std::int64_t>(1, setup.data_parallel * setup.micro_batch);
  return setup.pipeline_parallel > 1 || model.all_layers() * setup.step_sequences() / replicas > most_layer_runs;
}

bool is_of_model(const TechniqueWay& way) {
  return std::any_of(way.settings.begin(), way.settings.end(),
                     [](const std::string& one) { return one.starts_with("model."); });
}
bool is_to_drives(const TechniqueWay& way) {
  return std::find(way.settings.begin(), way.settings.end(), setting("offload.tier", to_string(Tier::drive))) !=
         way.settings.end();
}

// Settings of fp8 alone, or of narrow products, go with them.
std::vector<std::string> precision_edits(const TrainingSetup& setup, TrainingPrecision precision) {
  std::vector<std::string> edits = {setting("model.precision", to_string(precision))};
  if (precision == TrainingPrecision::fp8_mixed) return edits;
  for (const auto& [key, layers] : {std::pair("model.bf16_layers_first", setup.bf16_layers_first),
                                    std::pair("model.bf16_layers_last", setup.bf16_layers_last)})
    if (layers > 0 && !has_narrow_products(precision)) edits.push_back(setting(key, "0"));
  if (setup.fp8_recipe != Fp8Recipe::delayed) edits.push_back(setting("model.fp8_recipe", "delayed"));
  if (setup.fp8_weights) edits.push_back(setting("model.fp8_weights", "false"));
  if (setup.fused_experts) edits.push_back(setting("model.fused_experts", "false"));
  return edits;
}

// Packs or orders what is there, and makes nothing faster by itself.
bool only_packs(const Technique& row) { return row.part == PlanPart::order || row.part == PlanPart::memory; }

}  // namespace

// Points that are new, each once.
class FitMoves::List {
 public:
  List(const FitPoints& points, const FitPoint& from) : points_(points), from_(from) {
    seen_.insert(points_.settings(from));
  }

  void add(std::string name, FitPoint point, bool is_layout = false) {
    if (seen_.insert(points_.settings(point)).second) moves_.push_back({std::move(name), std::move(point), is_layout});
  }
  void keep(Carrier carrier) {
    std::erase_if(moves_, [&](const FitMove& move) { return carrier_of(points_, move.point) != carrier; });
  }
  void set(std::string name, const std::vector<std::string>& settings) {
    add(std::move(name), points_.with(from_, settings));
  }
  [[nodiscard]] const FitPoint& from() const { return from_; }
  [[nodiscard]] const TrainingSetup& setup() const { return from_.setup; }
  std::vector<FitMove> take() { return std::move(moves_); }

 private:
  const FitPoints& points_;
  FitPoint from_;
  std::set<std::vector<std::string>> seen_;
  std::vector<FitMove> moves_;
};

bool FitMoves::has_drives(const FitPoint& point) const {
  return !subject_.hardware.drives.empty() || !points_.value(point, "offload.drives").empty();
}

bool FitMoves::applies(const FitPoint& point, const TechniqueWay& way, const Technique& row) const {
  if (row.key == allocator_key && row.name == ideal_policy) return false;  // a bound, no allocator one can have
  if (row.key == offload_key && row.name == hybrid_word) return false;     // searched()
  if (!subject_.model) return !is_of_model(way);
  if (row.part == PlanPart::order && is_long(*subject_.model, point.setup)) return false;
  if (row.part == PlanPart::schedule && point.setup.pipeline_parallel == 1) return false;
  if (way.offered == Offered::with_replicas && point.setup.data_parallel * point.setup.context_parallel == 1)
    return false;
  return has_drives(point) || (way.offered != Offered::with_drives && !is_to_drives(way));
}

void FitMoves::add_technique(List& list, const Technique& row, const TechniqueWay& way) const {
  list.set(way.name, way.settings);
  // What moves activations is tried instead of computing them again, too.
  if (row.key != offload_key || list.setup().recompute == Recompute::none || !subject_.model) return;
  std::vector<std::string> both = way.settings;
  both.push_back(keep_all());
  list.set(way.name + ", nothing recomputed", both);
}

void FitMoves::add_table(List& list, bool works) const {
  const bool only_faster = works && (question_.goal == FitGoal::speed || question_.goal == FitGoal::cost);
  const TrainingSetup& setup = list.setup();
  const bool recomputes = subject_.model && setup.recompute != Recompute::none;
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways) {
      if (!applies(list.from(), way, row)) continue;
      if (!only_faster || (!only_packs(row) && (row.key != offload_key || recomputes)))
        add_technique(list, row, way);
      else if (row.key == offload_key && subject_.model && setup.pipeline_parallel == 1)
        add_with_batch(list, way.name, way.settings);
    }
}

// Offloading makes nothing faster that fits without; the room it gives does, with larger micro-batches.
void FitMoves::add_with_batch(List& list, const std::string& name, std::vector<std::string> settings) const {
  const TrainingSetup& setup = list.setup();
  const std::int64_t b = 2 * setup.micro_batch, each = setup.step_sequences() / setup.data_parallel;
  if (b > most_micro_batch || each % b != 0) return;
  settings.push_back(fmt::format("model.micro_batch={}", b));
  list.set(fmt::format("{}, micro-batches of {}", name, b), settings);
}

void FitMoves::add_batches(List& list) const {
  const TrainingSetup& setup = list.setup();
  const std::int64_t each = setup.step_sequences() / std::max<std::int64_t>(1, setup.data_parallel);
  for (const std::int64_t b : {setup.micro_batch * 2, setup.micro_batch / 2, std::int64_t{1}})
    if (b >= 1 && b <= most_micro_batch && each % b == 0)
      list.set(fmt::format("micro-batches of {}", b), {fmt::format("model.micro_batch={}", b)});
  if (subject_.model->has_experts())
    for (const std::int64_t e : {setup.expert_parallel * 2, setup.expert_parallel / 2})
      if (e >= 1) list.set(fmt::format("experts over {}", e), {fmt::format("model.expert_parallel={}", e)});
  if (setup.pipeline_parallel == 1 || setup.pipeline_chunks < 2) return;
  for (const std::int64_t chunks : {setup.pipeline_chunks * 2, setup.pipeline_chunks / 2})
    if (chunks >= 2 && chunks * setup.pipeline_parallel <= subject_.model->all_layers())
      list.set(fmt::format("{} chunks", chunks), {fmt::format("model.pipeline_chunks={}", chunks)});
}

// Where the optimizer and the weights are.
void FitMoves::add_state(List& list) const {
  const TrainingSetup& setup = list.setup();
  const auto on = [](StateDevice device) { return setting(optimizer_device_key, to_string(device)); };
  const auto weights_on = [](StateDevice device) { return setting("model.weight_device", to_string(device)); };
  std::vector<StateDevice> devices = {StateDevice::gpu, StateDevice::cpu};
  if (setup.optimizer_device == StateDevice::drives) devices.push_back(StateDevice::drives);
  for (const StateDevice device : devices) {
    const std::string name(to_string(device));
    const std::string stays = weights_on(StateDevice::gpu);
    list.set("optimizer on " + name, {on(device), stays, "model.delayed_update=false"});
    if (device == StateDevice::gpu) continue;
    for (const std::string& recompute : {setting(recompute_key, to_string(setup.recompute)), keep_all(),
                                         setting(recompute_key, to_string(Recompute::full))}) {
      list.set("optimizer on " + name + ", " + recompute, {on(device), stays, recompute});
      if (setup.pipeline_parallel == 1)
        list.set("weights on " + name + ", " + recompute,
                 {on(device), setting(zero_key, "3"), weights_on(device), recompute});
    }
  }
}

void FitMoves::add_knobs(List& list) const {
  for (const std::string& one : knob_settings(list.setup(), subject_.model->all_layers()))
    list.set(one.substr(one.find('.') + 1), {one});
}

std::vector<FitMove> FitMoves::other_maths(const FitPoint& point) const {
  List list(points_, point);
  if (question_.same_maths || !subject_.model) return {};
  for (const OptimizerKind kind : {OptimizerKind::adamw_8bit, OptimizerKind::adafactor})
    list.set(std::string(to_string(kind)), {setting("model.optimizer", to_string(kind))});
  for (const TrainingPrecision precision : {TrainingPrecision::bf16, TrainingPrecision::fp8_mixed})
    list.set(std::string(to_string(precision)), precision_edits(list.setup(), precision));
  if (list.setup().has_adapters())
    for (const Trainable trainable : {Trainable::lora, Trainable::qlora})
      list.set(std::string(to_string(trainable)),
               {setting("model.trainable", to_string(trainable)), setting("model.base_weights", "same")});
  if (list.setup().optimizer_device == StateDevice::cpu) list.set("delayed update", {"model.delayed_update=true"});
  return list.take();
}

std::vector<FitMove> FitMoves::from(const FitPoint& point, bool works, Carrier carrier) const {
  List list(points_, point);
  for (FitMove& move : removals(point)) list.add(std::move(move.name), std::move(move.point));
  add_table(list, works);
  if (subject_.model) {
    add_batches(list);
    add_knobs(list);
    add_state(list);
    for (FitPoint& next : neighbouring_layouts(subject_, points_, point)) {
      std::string name = points_.name(next);
      list.add(std::move(name), std::move(next), true);
    }
  }
  list.keep(carrier);
  return list.take();
}

// The name of the way that the point offloads by: "ssdtrain-host".
std::string FitMoves::offload_way(const FitPoint& point) const {
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways)
      if (row.key == offload_key && points_.holds(point, way.settings)) return way.name;
  return points_.value(point, std::string(offload_key));
}

std::vector<FitMove> FitMoves::searched(const FitPoint& point) const {
  if (subject_.model && is_long(*subject_.model, point.setup)) return {};
  List list(points_, point);
  if (points_.value(point, std::string(offload_key)) == hybrid_word) {
    if (subject_.model) add_batches(list);
    return list.take();
  }
  std::vector<std::string> settings = {setting(offload_key, hybrid_word)};
  if (subject_.model) settings.push_back(keep_all());
  list.set(std::string(hybrid_word), settings);
  if (subject_.model) add_with_batch(list, std::string(hybrid_word), settings);
  return list.take();
}

std::vector<FitMove> FitMoves::packings(const FitPoint& point, PlanPart part) const {
  List list(points_, point);
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways)
      if (row.part == part && applies(point, way, row)) list.set(way.name, way.settings);
  if (!question_.research) list.keep(Carrier::frameworks);
  return list.take();
}

std::vector<FitMove> FitMoves::relieved(const FitPoint& point) const {
  List list(points_, point);
  if (!subject_.model) return {};
  const TrainingSetup& setup = point.setup;
  const std::int64_t of_chunk = subject_.model->all_layers() / setup.pipeline_parallel / setup.pipeline_chunks;
  const bool is_partial = setup.recompute == Recompute::full && setup.recompute_layers > 0;
  const std::int64_t now = is_partial ? setup.recompute_layers : 0;
  if (is_partial || setup.recompute == Recompute::none)
    for (const std::int64_t more : {of_chunk / 40 + 1, of_chunk / 10 + 1})
      if (now + more < of_chunk)
        list.set(
            fmt::format("{} layers recomputed", now + more),
            {setting(recompute_key, to_string(Recompute::full)), fmt::format("model.recompute_layers={}", now + more)});
  const bool may_fetch = setup.zero_stage == 3 || setup.shared_stage() + setup.pipeline_parallel == 1;
  if (setup.optimizer_device == StateDevice::cpu && setup.weight_device == StateDevice::gpu && may_fetch)
    list.set("weights on the CPU", {setting("model.weight_device", to_string(StateDevice::cpu))});
  if (!question_.research) list.keep(Carrier::frameworks);
  return list.take();
}

FitPoint FitMoves::lean(const FitPoint& point) const {
  const TrainingSetup& setup = point.setup;
  if (!subject_.model || setup.loss == LossForm::fused || setup.loss == LossForm::chunked || setup.compares_answers())
    return point;
  const bool is_whole = setup.tensor_parallel == 1 && setup.traits().pytorch;
  return points_.with(point, {setting("model.loss", to_string(is_whole ? LossForm::chunked : LossForm::fused))});
}

std::vector<FitMove> FitMoves::removals(const FitPoint& point) const {
  List list(points_, point);
  const TrainingSetup &setup = point.setup, &given = points_.as_given().setup;
  const auto without = [&list](bool has, const std::string& what, const std::vector<std::string>& settings) {
    if (has) list.set("without " + what, settings);
  };
  if (subject_.model) {
    without(setup.recompute != Recompute::none, "recomputation", {keep_all()});
    const std::int64_t stage = given.zero_stage != setup.zero_stage ? given.zero_stage : 0;  // what it is changed from
    without(setup.shared_stage() > 0, fmt::format("ZeRO {}", setup.zero_stage),
            {setting(zero_key, std::to_string(stage)), setting("model.weight_device", to_string(StateDevice::gpu))});
    without(setup.optimizer_device != StateDevice::gpu,
            "the optimizer on " + std::string(to_string(setup.optimizer_device)),
            {setting(optimizer_device_key, to_string(StateDevice::gpu)),
             setting("model.weight_device", to_string(StateDevice::gpu)), "model.delayed_update=false"});
    without(setup.weight_device != StateDevice::gpu, "weights on " + std::string(to_string(setup.weight_device)),
            {setting("model.weight_device", to_string(StateDevice::gpu))});
    without(setup.delayed_update, "the delayed update", {"model.delayed_update=false"});
    without(setup.pipeline_parallel > 1 && setup.pipeline_schedule != default_schedule,
            "the schedule " + setup.pipeline_schedule,
            {setting(schedule_key, default_schedule), "model.pipeline_chunks=1", "model.recomputed_chunks=0"});
    without(setup.sequence_parallel && setup.tensor_parallel > 1, "sequence parallelism",
            {"model.sequence_parallel=false"});
    without(setup.loss != given.loss, std::string(to_string(setup.loss)) + " loss",
            {setting("model.loss", to_string(given.loss))});
    without(setup.micro_batch > 1, fmt::format("micro-batches of {}", setup.micro_batch), {"model.micro_batch=1"});
    without(setup.optimizer != given.optimizer, std::string(to_string(setup.optimizer)),
            {setting("model.optimizer", to_string(given.optimizer))});
    without(setup.precision != given.precision, std::string(to_string(setup.precision)),
            {setting("model.precision", to_string(given.precision))});
  }
  without(points_.value(point, std::string(offload_key)) != no_offload, offload_way(point),
          {setting(offload_key, no_offload)});
  const std::string allocator = points_.value(point, std::string(allocator_key));
  without(!allocator.empty() && allocator != torch_policy, "the allocator " + allocator,
          {setting(allocator_key, torch_policy)});
  return list.take();
}

std::vector<FitMove> FitMoves::activations_moved(const FitPoint& point) const {
  List list(points_, point);
  for (const Technique& row : techniques())
    for (const TechniqueWay& way : row.ways)
      if (row.key == offload_key && applies(point, way, row)) list.set(way.name, way.settings);
  list.keep(Carrier::planner);
  return list.take();
}

std::vector<FitMove> FitMoves::states_on_drives(const FitPoint& point) const {
  List list(points_, point);
  if (!has_drives(point)) return {};
  const std::string drives(to_string(StateDevice::drives));
  list.set("optimizer on drives", {setting(optimizer_device_key, drives)});
  if (point.setup.pipeline_parallel == 1)
    list.set("weights on drives",
             {setting(optimizer_device_key, drives), setting("model.weight_device", drives), setting(zero_key, "3")});
  return list.take();
}

}  // namespace spillway::studies
