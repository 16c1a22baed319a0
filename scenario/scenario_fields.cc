#include "scenario/scenario_fields.h"

#include <array>

#include "base/field_schema.h"
#include "base/input_error.h"
#include "models/spec/training_setup_fields.h"
#include "planners/technique/technique_table.h"

namespace spillway::scenario {
namespace {

struct Section {
  FieldInfo info;
  std::string Scenario::*text;
  SectionFields fields = nullptr;
};

std::array<Section, 2>& sections() {
  static std::array<Section, 2> all = {
      {{{.key = "capacity", .about = "What `spillway capacity` searches for; other commands skip it."},
        &Scenario::capacity},
       {{.key = "procurement",
         .about = "What `spillway report procurement` asks about (docs/how-to/buy-or-rent.md); other commands pass "
                  "over it."},
        &Scenario::procurement}}};
  return all;
}

void describe_model(Scenario& scenario, FieldVisitor& visitor) {
  fields::text(visitor,
               {.key = "name",
                .about = "A bundled model or a Hugging Face id (spillway list models --all), or a file by "
                         "model.schema.json, a Hugging Face config.json or its folder: a name with a slash, or ending "
                         "in .json.",
                .label = "model",
                .required = true,
                .path = FieldPath::name_or_file},
               scenario.model);
  fields::integer_or_none(visitor,
                          {.key = "layers",
                           .min = 1,
                           .max = 100'000,
                           .about = "Layers instead of the model's own, at the same width; not of encoder-decoders."},
                          scenario.layers);
  describe(scenario.training, visitor);
}

void describe_jitter(Jitter& jitter, FieldVisitor& visitor) {
  fields::integer(visitor, {.key = "seed", .about = "Other seeds, other times."}, jitter.seed);
  fields::number(visitor,
                 {.key = "sigma", .max = 0.5, .about = "Standard deviation of a kernel's time, as a share of it."},
                 jitter.sigma);
  fields::list(visitor,
               {.key = "slow_stages",
                .about = "[[stage, factor], ...]: kernels of a pipeline stage that take so many times as long.",
                .as_tuple = true},
               jitter.slow_stages, [&](auto& slow) {
                 fields::integer(visitor, {.key = "stage"}, slow.first);
                 fields::number(visitor, {.key = "factor", .min = 0.1, .max = 100}, slow.second);
               });
}

void describe_hardware(Scenario& scenario, FieldVisitor& visitor) {
  fields::text(
      visitor,
      {.key = "profile",
       .about = "A system or GPU of `spillway profile list`, a profile's file, or what a few letters say: 16xh100, "
                "4xrtx4090, dgx-h100x2, 8xh100+roce-400. A trace without one runs on the GPU its capture names.",
       .label = "machine",
       .path = FieldPath::name_or_file},
      scenario.hardware);
  fields::text(visitor,
               {.key = "captured_on",
                .about = "GPU profile the trace's durations belong to. Default: the one that fits the device name in "
                         "the capture.",
                .label = "captured on",
                .path = FieldPath::name_or_file},
               scenario.captured_on);
  fields::map(visitor,
              {.key = "set",
               .about = "What-ifs on values of the profile: path as printed by `spillway profile show`, value as a "
                        "factor (\"x0.5\") or with its unit (\"24 GiB\"). A * at a path's end takes every value below "
                        "it."},
              scenario.hardware_overrides, [&](std::string& text) {
                std::optional<Scalar> value = Scalar{text, false};
                visitor.scalar({.key = ""}, value);
                text = value->text;
              });
  fields::group(
      visitor,
      {.key = "jitter",
       .about = "GPUs that are not all alike: times of kernels are scaled, reproducibly. Marked as assumed in "
                "the result."},
      [&] { describe_jitter(scenario.jitter, visitor); });
}

void describe_what_if(RelativeSpeed& speed, FieldVisitor& visitor) {
  const auto factor = [&](std::string_view key, std::string_view label, std::string_view about, double& value) {
    fields::number(visitor, {.key = key, .min = 1e-6, .max = 1e6, .about = about, .label = label, .unit = "x"}, value);
  };
  double gpu = 1;
  factor("gpu", "GPU speed", "Times both compute and memory.", gpu);
  factor("compute", "compute", "Kernels bound by arithmetic.", speed.compute);
  factor("memory", "memory bandwidth", "Kernels and copies bound by device memory.", speed.memory);
  factor("host", "host speed", "Host calls and the pauses between them.", speed.host);
  factor("pcie", "copy speed", "Copies between host and device.", speed.pcie);
  factor("network", "network speed", "Collectives.", speed.network);
  speed.compute *= gpu;
  speed.memory *= gpu;
}

void describe_memory(Scenario& scenario, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "allocator", .about = "Who hands out the GPU's memory.", .label = "allocator"},
               scenario.allocator, allocator_words());
  fields::text(visitor,
               {.key = "config",
                .about = "Settings of the torch allocators, spelled as in PYTORCH_CUDA_ALLOC_CONF: "
                         "\"max_split_size_mb:128\"; of gmlake: \"fragLimit:67108864\".",
                .label = "settings"},
               scenario.allocator_config);
  fields::text(visitor,
               {.key = "plan",
                .about = "File of the memory plan that planned and arena follow.",
                .label = "memory plan",
                .path = FieldPath::file},
               scenario.memory_plan);
  fields::integer(visitor,
                  {.key = "capacity_bytes",
                   .dimension = Dimension::bytes,
                   .min = 1,
                   .about = "Device memory for the step's allocator, instead of the GPU's memory less its context.",
                   .label = "GPU memory",
                   .unit = "GiB"},
                  scenario.capacity_bytes);
  fields::flag(visitor,
               {.key = "record_streams",
                .about = "Of a generated step: what a collective used is free again only when the GPU has got there, "
                         "as in PyTorch before 2.8 (TORCH_NCCL_AVOID_RECORD_STREAMS=0)."},
               scenario.record_streams);
  std::optional<Scalar> reserve;
  if (!scenario.reserve.empty()) reserve = Scalar{scenario.reserve, false};
  visitor.scalar(
      {.key = "reserve",
       .about =
           "Kept free of that memory for what the allocator doesn't see, NCCL's buffers above all: a size "
           "(\"2 GiB\") or a share (\"8%\"). Default: by parts (docs/explanation/does-it-fit.md); none for a recording "
           "on the GPU it ran on.",
       .label = "reserve"},
      reserve);
  scenario.reserve = reserve ? reserve->text : "";
}

void describe_ssdtrain(SsdtrainSettings& settings, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "prefetch", .about = "What asks for a module's tensors before its backward begins."},
               settings.prefetch, prefetch_words());
  fields::integer(visitor, {.key = "chunk_leaves", .min = 1, .max = 1000, .about = "Modules of a chunk."},
                  settings.chunk_leaves);
  fields::flag(visitor,
               {.key = "adaptive", .about = "Keep the end of the forward where the rate of offloading asks for it."},
               settings.adaptive);
  fields::flag(visitor,
               {.key = "keep_last", .about = "Keep the last module of a forward: its own backward comes next."},
               settings.keep_last);
  fields::integer(visitor, {.key = "least_elements", .max = 0x1p40, .about = "Smaller tensors stay."},
                  settings.least_elements);
}

void describe_demands(DriveDemands& demands, FieldVisitor& visitor) {
  fields::number(visitor,
                 {.key = "least_life_years",
                  .max = 1000,
                  .about = "Years the SSDs must last; a step that needs more is refused.",
                  .label = "must last",
                  .unit = "years"},
                 demands.least_life_years);
  fields::word(visitor, {.key = "life_bound", .about = "By which a life is judged."}, demands.bound,
               life_bound_words());
  fields::bytes(visitor,
                {.key = "drive_free_bytes",
                 .dimension = Dimension::bytes,
                 .max = 0x1p60,
                 .about = "Free on each drive; a step that keeps more there at once is answered no. Default: the "
                          "drive's capacity."},
                demands.free);
  const double before = demands.used_fraction * 100;
  double percent = before;
  fields::number(
      visitor,
      {.key = "drive_used_percent", .max = 100, .about = "How much of the drives' rated life is used up already."},
      percent);
  if (percent != before) demands.used_fraction = percent / 100;
}

void describe_offload(OffloadSettings& settings, FieldVisitor& visitor) {
  fields::word(visitor, {.key = "technique", .about = "What leaves device memory.", .label = "technique"},
               settings.technique, offload_words());
  fields::word(visitor, {.key = "tier", .about = "Where they go.", .label = "to"}, settings.tier, tier_words());
  fields::word(visitor, {.key = "route", .about = "To drives."}, settings.route, route_words());
  fields::text(visitor,
               {.key = "drive_set", .about = "Drive group of the hardware to use. Default: number (GPU mod groups)."},
               settings.drive_set);
  fields::text(visitor,
               {.key = "drives",
                .about = "Drive profile that replaces the hardware's drives.",
                .label = "drives",
                .path = FieldPath::name_or_file},
               settings.drives);
  fields::integer(visitor,
                  {.key = "drives_per_machine",
                   .min = 1,
                   .max = 64,
                   .about = "How many of them, in one RAID-0 set per machine.",
                   .label = "SSDs per machine",
                   .unit = "drives per machine",
                   .former = "drive_count"},
                  settings.drives_per_machine);
  fields::integer(
      visitor,
      {.key = "workers", .min = 2, .max = 4096, .about = "Transfers at work at once per GPU: half store, half load."},
      settings.workers);
  fields::bytes(visitor,
                {.key = "in_flight_bytes",
                 .dimension = Dimension::bytes,
                 .max = 0x1p50,
                 .about = "The host waits while unfinished stores hold more; 0: never. Default: the least "
                          "that delays nothing (ssdtrain, checkpoints), else a tenth of the memory the step has.",
                 .label = "in flight",
                 .unit = "GiB"},
                settings.in_flight);
  visitor.flag({.key = "hooks",
                .about = "PyTorch's hooks move the tensors, as spillway.torch has them: 0.18 ms of the host each way a "
                         "tensor. Default: of a step that spillway.torch recorded."},
               settings.hooks);
  describe_ssdtrain(settings.ssdtrain, visitor);
  auto bandwidth = static_cast<std::int64_t>(settings.adaptive_bytes_per_second);
  fields::integer(visitor,
                  {.key = "adaptive_bandwidth",
                   .dimension = Dimension::rate,
                   .max = 0x1p50,
                   .about = "Bytes per second of the adaptive rule; 0: as measured in the replay."},
                  bandwidth);
  settings.adaptive_bytes_per_second = static_cast<double>(bandwidth);
  fields::bytes(visitor,
                {.key = "budget_bytes",
                 .dimension = Dimension::bytes,
                 .max = 0x1p50,
                 .about = "Of the mix: device memory to stay within; 0: the device's."},
                settings.budget);
  describe_demands(settings.demands, visitor);
}

}  // namespace

const Words& tier_words() {
  static const Words words = {{"host", "host memory"}, {"drive", "drives"}};
  return words;
}

const Words& route_words() {
  static const Words words = {{"gpudirect", "directly"}, {"bounce", "through a pinned host buffer"}};
  return words;
}

const Words& prefetch_words() {
  static const Words words = {{"chunked", "a chunk ahead"}, {"module", "a module ahead"}, {"off", "its first use"}};
  return words;
}

void set_section_fields(std::string_view section, SectionFields fields) {
  for (Section& each : sections())
    if (each.info.key == section) each.fields = fields;
}

void describe(Scenario& scenario, FieldVisitor& visitor) {
  visitor.rule(R"({"oneOf": [{"required": ["trace"]},
                             {"required": ["model", "hardware"],
                              "properties": {"hardware": {"required": ["profile"]}}}],
                   "dependentRequired": {"execution_trace": ["trace"]}})");
  visitor.head({.schema = "spillway-scenario", .version = scenario_version, .noun = "a scenario"});
  fields::text(visitor,
               {.key = "title", .about = "One line for people, shown with the result. Default: the file's name."},
               scenario.title);
  std::string note;
  fields::text(visitor, {.key = "note", .about = "For people; not read by the program."}, note);
  fields::text(visitor,
               {.key = "trace",
                .about = "A recorded step: a file of any format `spillway trace info` knows.",
                .path = FieldPath::file},
               scenario.trace);
  fields::text(visitor,
               {.key = "execution_trace",
                .about = "PyTorch ExecutionTrace of the same step, joined with trace by record-function id.",
                .path = FieldPath::file},
               scenario.execution_trace);
  fields::group(visitor, {.key = "model", .about = "A step generated from a model's shape."},
                [&] { describe_model(scenario, visitor); });
  fields::group(visitor, {.key = "hardware", .about = "What the step runs on."},
                [&] { describe_hardware(scenario, visitor); });
  fields::group(visitor,
                {.key = "what_if",
                 .about = "How many times as fast each resource is than the hardware says: 2 is twice, 0.5 half."},
                [&] { describe_what_if(scenario.what_if, visitor); });
  fields::group(visitor, {.key = "memory", .about = "The GPU's memory and who hands it out."},
                [&] { describe_memory(scenario, visitor); });
  fields::group(
      visitor,
      {.key = "offload",
       .about = "What leaves device memory during the step, and where to (docs/how-to/offload-activations.md)."},
      [&] { describe_offload(scenario.offload, visitor); });
  fields::group(
      visitor, {.key = "order", .about = "In which order operators run on each GPU (docs/internals/roam.md)."}, [&] {
        fields::word(
            visitor,
            {.key = "technique", .about = "Who orders what the other parts of the plan leave.", .label = "order"},
            scenario.order, order_words());
      });
  fields::text(
      visitor,
      {.key = "plan",
       .about = "File of a plan written by `spillway run --plan-output` or `spillway plan`: its parts take the place "
                "of techniques named here.",
       .label = "plan",
       .path = FieldPath::file},
      scenario.plan);
  fields::group(visitor, {.key = "replay", .about = "How the step is replayed."}, [&] {
    fields::text(visitor,
                 {.key = "tie_order",
                  .about = "Order of events at one instant: fifo, reverse or shuffle:SEED. Any other than fifo is for "
                           "finding results that depend on it.",
                  .pattern = "^(fifo|reverse|shuffle:[0-9]+)$"},
                 scenario.tie_order);
    fields::flag(visitor,
                 {.key = "fold",
                  .about = "Replay equal micro-batches of a generated step once where that is exact; false: each of "
                           "them, for finding out whether it is."},
                 scenario.fold);
  });
  fields::group(
      visitor,
      {.key = "import",
       .about = "What the launch that the scenario was imported from says, and no key of it can: a verdict that "
                "hangs on it is unknown. null: leave it out."},
      [&] { describe(scenario.imported, visitor); });
  for (const Section& section : sections()) {
    std::optional<std::string> text;
    if (!(scenario.*section.text).empty()) text = scenario.*section.text;
    if (section.fields != nullptr)
      visitor.section(section.info, text, section.fields);
    else
      visitor.object(section.info, text);
    scenario.*section.text = text.value_or("");
  }
}

std::vector<FieldRow> scenario_rows() { return rows_of<Scenario>(); }

std::string scenario_schema() {
  Scenario scenario;
  FieldSchema schema;
  describe(scenario, schema);
  return schema.document("spillway-scenario.v1", "spillway scenario",
                         "What to replay, on what, and how. Exactly one of trace and model; a model needs "
                         "hardware.profile. Keys are named on the command line by their path with dots: --set "
                         "model.sequence=4096. Paths of files are relative to the scenario's folder.");
}

}  // namespace spillway::scenario
