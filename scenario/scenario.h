// Scenario: a file that names what to replay, on what, and how. The CLI, the GUI and the tests speak scenarios.
//
//   {
//     "schema": "spillway-scenario", "version": 1,
//     "title": "Llama-3 8B, 8,192 tokens, one 80 GB H100",
//     "model": {"name": "llama-3-8b", "sequence": 8192, "micro_batch": 1},      // or "trace": "FILE"
//     "hardware": {"profile": "h100-80gb-1gpu", "set": {"gpu.memory_bandwidth": "x0.5"},
//                  "jitter": {"seed": 1, "sigma": 0.02, "slow_stages": [[3, 1.2]]}},
//     "what_if": {"gpu": 2, "host": 1.5},
//     "memory": {"allocator": "torch", "config": "max_split_size_mb:128"},
//     "offload": {"technique": "ssdtrain", "drives": "samsung-990-pro-2tb", "drives_per_machine": 4},
//     "order": {"technique": "roam"},
//     "capacity": {"axis": "layers"},                                           // studies/capacity/capacity_request.h
//     "procurement": {"tokens": 1e12, "gpus": [256], ...},                      // studies/procurement
//     "plan": "order.plan.json",                                                // written by `spillway plan`
//     "replay": {"tie_order": "fifo"},
//     "import": {"launcher": "deepspeed", "open": ["model.micro_batch"], ...}   // written by `spillway import`
//   }
//
// Published schema: docs/schemas/scenario.schema.json. Versions: a newer one is refused, older ones migrate (none yet).
// Paths in a scenario are relative to the scenario's folder. Comments may stand in a file (// to the line's end); a
// rewritten file has none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/training_setup.h"
#include "planners/offload/offload_settings.h"
#include "planners/order/order_method.h"
#include "scenario/imported.h"
#include "scenario/jitter.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/replay/relative_speed.h"

namespace spillway::scenario {

inline constexpr int scenario_version = 1;

struct Scenario {
  std::string path;  // where it was read from, or what stands for that
  std::string title;

  std::string trace;            // file, or empty
  std::string execution_trace;  // joined with `trace` when given
  std::string model;            // name in the model library or file, or empty
  std::int64_t layers = 0;      // instead of the model's own; 0: those
  TrainingSetup training;

  std::string hardware;     // system or GPU profile; empty: the one the capture names
  std::string captured_on;  // GPU profile of a captured trace's times; empty: matched by name
  std::vector<std::pair<std::string, std::string>> hardware_overrides;  // apply_override(path, text)
  RelativeSpeed what_if;                                                // factors on top of the hardware's
  Jitter jitter;                                                        // hardware.jitter

  std::string plan;  // file: order and layout of the step (sim/replay/plan.h)

  std::string allocator{torch_policy};
  bool allocator_named = false;                // in the scenario: a plan's layout does not change it then
  std::string allocator_config;                // as in PYTORCH_CUDA_ALLOC_CONF
  std::string memory_plan;                     // file, for planned and arena
  std::optional<std::int64_t> capacity_bytes;  // instead of the profile's
  bool record_streams = false;                 // NCCL's streams hold what they used (sim/replay/late_frees.h)
  std::string reserve;                         // size or share kept free of it; empty: reserve_of() says

  OffloadSettings offload;
  std::string order{program_order_word};  // a word of planners/technique/technique_table.h's order_words()

  std::string tie_order = "fifo";
  ImportedFrom imported;  // key "import": what a launch said or left unsaid that is not in the scenario

  bool fold = true;  // equal micro-batches replayed once where nobody asks for each (brief_run.h)

  // JSON, its keys checked; empty: none. Read by studies/capacity/capacity_request.h and
  // studies/procurement.
  std::string capacity, procurement;
};

// settings: "key=value" as from --set; the key is the path of a leaf ("model.sequence",
// "hardware.set.gpu.memory_bandwidth", "what_if.gpu"); the value null takes a key out. Applied before the checks, so
// they may complete a scenario.
// Throws InputError naming file, JSON pointer, cause and remedy (did-you-mean for unknown keys).
Scenario load_scenario(const std::string& path, std::span<const std::string> settings = {});
// text: a scenario as JSON; `name` stands for the file in messages; paths are relative to `folder`.
Scenario parse_scenario(const std::string& text, const std::string& name, const std::string& folder,
                        std::span<const std::string> settings = {});
// The file's JSON with the settings applied, unchecked beyond its syntax: for those who put other settings on top.
std::string scenario_text(const std::string& path, std::span<const std::string> settings = {});
// A file that is no scenario but a trace becomes the scenario that replays it as captured. Throws InputError for a
// model, a profile or a sweep, saying what to do with it.
Scenario scenario_for_trace(const std::string& trace_path, std::span<const std::string> settings = {});

// A scenario's text with one setting made as by --set, laid out with two spaces; an object left empty goes. Throws
// InputError for what is no JSON, or no setting.
std::string with_setting(const std::string& text, const std::string& setting);
// Settings that turn one scenario's text into another's, as of --set: by key, ascending; "KEY=null" takes one out.
// nullopt: lists differ, which --set can't change. Equal texts give an empty list.
std::optional<std::vector<std::string>> settings_between(const std::string& from, const std::string& to);
// The value of a leaf as --set would take it ("model.sequence" -> "4096"); none: it isn't there, or is no leaf.
std::optional<std::string> setting_of(const std::string& text, const std::string& key);
// Whether the key takes the value, whatever the others say: its type, its range, a word that there is. Throws
// InputError (place: the key) with the nearest values.
void check_setting(const std::string& setting);
// With its paths of files made to hold in another folder.
std::string moved_scenario(const std::string& text, const std::string& from_folder, const std::string& to_folder);

// Every key a scenario may have, by its path ("model", "model.sequence", ...), sorted. The profile's own keys below
// hardware.set are not among them.
std::vector<std::string> scenario_keys();
// Suggestion for a key that is none of `known`: today's name of one that was renamed, else the nearest, or `otherwise`
// where none is near.
std::string suggest_key(const std::string& key, const std::vector<std::string>& known,
                        const std::string& otherwise = "");

// True when the file's first bytes are a JSON object that calls itself a scenario.
bool is_scenario_file(const std::string& path);

}  // namespace spillway::scenario
