#include "cli/options/pipeline_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>

#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway::cli {
namespace {

constexpr double largest = 1e9;

[[noreturn]] void refuse(const std::string& cause, const std::string& remedy) {
  throw InputError("", "--set", cause, remedy);
}

double number(std::string_view text, const std::string& setting) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0) || value > largest)
    refuse("'" + setting + "' has a value that is no number from 0 to 1e9", "write for example tf=18.5 or tf=1,1,2,1");
  return value;
}

std::vector<double> numbers(std::string_view text, const std::string& setting) {
  std::vector<double> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(number(text.substr(begin, end - begin), setting));
    begin = end + 1;
  }
  return values;
}

double share(std::string_view text, const std::string& setting) {
  const double value = number(text, setting);
  if (value > 1) refuse("'" + setting + "' is a share of a chunk's activations and over 1", "give 0 to 1");
  return value;
}

Ticks ticks(double units) { return std::llround(units * ticks_per_unit); }

Ticks time_at(const std::vector<double>& values, std::size_t part, std::int64_t devices, std::int64_t chunks,
              const char* key) {
  if (values.size() == 1) return ticks(values[0] / static_cast<double>(chunks));
  if (static_cast<std::int64_t>(values.size()) != devices * chunks)
    refuse(std::string(key) + " has " + std::to_string(values.size()) + " values for " +
               std::to_string(devices * chunks) + " parts of the model",
           "give one, or one per part: chunks times stages of them, in the model's order");
  return ticks(values[part]);
}

}  // namespace

PipelineSettings parse_pipeline_settings(const std::vector<std::string>& settings) {
  PipelineSettings out;
  using Setter = std::function<void(std::string_view, const std::string&)>;
  const std::map<std::string, Setter, std::less<>> setters = {
      {"tf", [&](std::string_view v, const std::string& s) { out.tf = numbers(v, s); }},
      {"tb", [&](std::string_view v, const std::string& s) { out.tb = numbers(v, s); }},
      {"tw", [&](std::string_view v, const std::string& s) { out.tw = numbers(v, s); }},
      {"tr", [&](std::string_view v, const std::string& s) { out.tr = numbers(v, s); }},
      {"tfb", [&](std::string_view v, const std::string& s) { out.tfb = number(v, s); }},
      {"tcomm", [&](std::string_view v, const std::string& s) { out.tcomm = number(v, s); }},
      {"toffload", [&](std::string_view v, const std::string& s) { out.toffload = number(v, s); }},
      {"treload", [&](std::string_view v, const std::string& s) { out.treload = number(v, s); }},
      {"sout", [&](std::string_view v, const std::string& s) { out.sout = number(v, s); }},
      {"sin", [&](std::string_view v, const std::string& s) { out.sin = number(v, s); }},
      {"supdate", [&](std::string_view v, const std::string& s) { out.supdate = number(v, s); }},
      {"pieces", [&](std::string_view v, const std::string& s) { out.pieces = number(v, s); }},
      {"w_memory", [&](std::string_view v, const std::string& s) { out.w_memory = share(v, s); }},
      {"checkpoint", [&](std::string_view v, const std::string& s) { out.checkpoint = share(v, s); }},
      {"blocking", [&](std::string_view v, const std::string& s) { out.blocking = number(v, s) != 0; }},
  };
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    const auto found = setters.find(key);
    if (equals == std::string::npos || found == setters.end()) {
      std::vector<std::string> known;
      for (const auto& [name, setter] : setters) known.push_back(name);
      refuse("'" + setting + "' sets nothing", suggest(key, known));
    }
    found->second(std::string_view(setting).substr(equals + 1), setting);
  }
  return out;
}

StageTimes stage_times(const PipelineSettings& settings, std::int64_t devices, std::int64_t chunks) {
  StageTimes times;
  const std::vector<double>& tr = settings.tr.empty() ? settings.tf : settings.tr;
  const bool is_even = std::max({settings.tf.size(), settings.tb.size(), settings.tw.size(), tr.size()}) == 1;
  const auto parts = static_cast<std::size_t>(is_even ? 1 : devices * chunks);
  for (std::size_t part = 0; part < parts; ++part)
    times.positions.push_back(
        {time_at(settings.tf, part, devices, chunks, "tf"), time_at(settings.tb, part, devices, chunks, "tb"),
         time_at(settings.tw, part, devices, chunks, "tw"), time_at(tr, part, devices, chunks, "tr")});
  times.transfer = ticks(settings.tcomm);
  const auto chunk_ticks = [&](double units) { return ticks(units / static_cast<double>(chunks)); };
  times.paired = settings.tfb < 0 ? -1 : chunk_ticks(settings.tfb);
  times.offload = chunk_ticks(settings.toffload);
  times.reload = chunk_ticks(settings.treload < 0 ? settings.toffload : settings.treload);
  times.blocking_transfers = settings.blocking;
  return times;
}

ActivationRules activation_rules(const PipelineSettings& settings) {
  return {.weight_part = std::llround(settings.w_memory * 1e6), .checkpoint = std::llround(settings.checkpoint * 1e6)};
}

OffloadedOptimizer offloaded_optimizer(const PipelineSettings& settings, std::int64_t chunks, std::int64_t moved,
                                       OptimizerPlace place) {
  const double v = static_cast<double>(chunks);
  if (settings.pieces < 1 || settings.pieces > 1000 || settings.pieces != std::floor(settings.pieces))
    refuse("pieces is no whole number from 1 to 1000", "give the layers of a chunk");
  return {moved,
          place,
          ticks(settings.sout / v),
          ticks(settings.sin / v),
          ticks(settings.supdate / v),
          static_cast<std::int64_t>(settings.pieces)};
}

}  // namespace spillway::cli
