// The one table of what launches say: each flag or key of a framework, the scenario's key that it decides, and how the
// values of both correspond. Import reads it from left to right, export from right to left,
// docs/reference/launch-files.md prints it. A flag that a scenario can't say has a row too: with the reason why it may
// be left out, or a warning.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/launch_setting.h"

namespace spillway::launch {

// A number of threads that is left to the machine, in a shell script.
inline constexpr std::string_view all_cores = "$(nproc)";

enum class FlagRole : std::uint8_t {
  value,        // decides `key`
  file,         // names another file of the same launch
  as_modelled,  // as spillway assumes anyway
  no_effect,    // on memory or time of a step
  time,         // has one on time alone, which a scenario can't say: a warning
  saves,        // needs less memory than what a scenario can say
  adds,         // needs more
  not_said      // changes what memory is needed, either way
};

std::string_view to_string(FlagRole role);

struct LaunchFlag {
  LaunchFormat format = LaunchFormat::megatron;
  std::string flag;  // a * at its end stands for anything
  FlagRole role = FlagRole::value;
  std::string_view key{};  // of the scenario
  // Its name between the launch and the scenario (launch_facts.h); the key itself where they correspond one to
  // one.
  std::string_view fact{};
  // "": any text; "#": whole numbers; else pairs "theirs=ours", the first of several with one of ours is exported, and
  // "#" behind them for other numbers. A * at an end of theirs stands for anything; ours "-": as if not given.
  std::string_view values{};
  std::string_view note{};
  bool exported = false;
  FlagRole otherwise = FlagRole::not_said;  // of a value that a scenario has nothing for
  double bytes_each = 0;                    // of adds: no more bytes than this times the value; 0: no bound is known
};

const std::vector<LaunchFlag>& launch_flags();

// As the table spells it: "--Seq_Length" is "seq-length" of Megatron-LM's.
std::string flag_name(LaunchFormat format, std::string_view shown);
// A format that `format` has settings of beside its own: keys behind the prefix belong to it. With an empty prefix they
// belong to it if `format` has no row for them.
struct InnerFormat {
  LaunchFormat format;
  std::string_view prefix;
  LaunchFormat of;
};
std::span<const InnerFormat> inner_formats();
// The program that a format starts, if it isn't its own: that one's defaults count.
LaunchFormat engine_of(LaunchFormat format);
// The row of a name by flag_name(): of the whole name, of its last part, or by a *; null: none.
const LaunchFlag* find_flag(LaunchFormat format, std::string_view name);
// The row that decides something with this name up to one letter, or two in each other's place; null: none.
const LaunchFlag* misspelt_flag(LaunchFormat format, std::string_view name);
// Whether the flag may stand without a value.
bool is_switch(const LaunchFlag& flag);

// The scenario's value; nullopt: the flag has no such value. "-": as if it weren't given.
std::optional<std::string> our_value(const LaunchFlag& flag, std::string_view theirs);
// The framework's; nullopt: it can't say it.
std::optional<std::string> their_value(const LaunchFlag& flag, std::string_view ours);
// The words of a list, however it is written: "a b", "a,b", "['a', 'b']".
std::vector<std::string> listed_words(std::string_view text);
// "16", "5e8", "1_000"; nullopt: no whole number of 64 bits.
std::optional<std::int64_t> whole_number(std::string_view text);

// Programs that have the Trainer's arguments and defaults of their own.
enum class Dialect : std::uint8_t { any, axolotl, factory, factory_v1, trl };

// The value that counts where a launch doesn't say one, other than spillway's own default.
struct LaunchDefault {
  LaunchFormat format;
  std::string_view fact, value, why;
  Dialect dialect = Dialect::any;  // of this program alone
};
std::span<const LaunchDefault> launch_defaults();
// The word of model.framework for the kernels that the program runs if nothing is said.
std::string_view usual_framework(LaunchFormat program);

// For docs/reference/launch-files.md: a Markdown table for each framework, and the lists of what it leaves out.
std::string launch_markdown();

// Keys and values of a configuration of DeepSpeed's that comes with axolotl, LLaMA-Factory or ms-swift, by the stem of
// its name: "zero3_offload", "zero2", "zero3_bf16_cpuoffload_all", "ds_z3_offload_config". Empty: none.
std::vector<std::pair<std::string, std::string>> deepspeed_named(std::string_view stem);

// Rows by framework, in files of their own.
std::vector<LaunchFlag> megatron_flags();
std::vector<LaunchFlag> torchtitan_flags();
std::vector<LaunchFlag> deepspeed_flags();
std::vector<LaunchFlag> huggingface_flags();  // hf and accelerate
std::vector<LaunchFlag> nanotron_flags();
std::vector<LaunchFlag> nvidia_flags();  // bridge, nemo1 and automodel
std::vector<LaunchFlag> primus_flags();
std::vector<LaunchFlag> swift_flags();   // swift and swift_megatron
std::vector<LaunchFlag> python_flags();  // python and unsloth
std::vector<LaunchFlag> torchtune_flags();
std::vector<LaunchFlag> neox_flags();
std::vector<LaunchFlag> post_training_flags();  // openrlhf and verl
std::vector<LaunchFlag> reinforcement_flags();  // openrlhf_rl and verl_rl
std::vector<LaunchFlag> litgpt_flags();
std::vector<LaunchFlag> foundry_flags();
std::vector<LaunchFlag> launcher_flags();  // launcher and environment

}  // namespace spillway::launch
