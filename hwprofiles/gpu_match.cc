#include "hwprofiles/gpu_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

// A driver keeps a part for itself, and error correction of graphics memory a sixteenth: what is left of the printed
// size.
constexpr double least_memory = 0.9, most_memory = 1.005;
constexpr double alike = 0.002;  // of memory

std::vector<std::string> name_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}
bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_size(std::string_view word) { return word.ends_with("gb") || word.ends_with("w"); }
bool is_form(std::string_view word) { return word.starts_with("sxm") || word == "pcie" || word == "nvl"; }

// Of a profile's name, without form factor and sizes.
std::vector<std::string> model_of(std::string_view name) {
  std::vector<std::string> words = name_words(name);
  std::erase_if(words, [](const std::string& word) { return is_form(word) || is_size(word); });
  return words;
}

// "sxm", "pcie", "nvl"; empty: the name does not tell.
std::string form_of(const std::vector<std::string>& device) {
  for (const std::string& word : device) {
    if (word.starts_with("sxm")) return "sxm";
    if (word == "pcie" || word == "nvl") return word;
  }
  return has(device, "hbm3") || has(device, "hbm2e") ? "sxm" : "";
}
bool fits_form(const std::string& form, const GpuProfile& gpu) {
  const std::vector<std::string> name = name_words(gpu.name);
  const bool is_bridged = has(name, "nvl");
  if (form.empty()) return !is_bridged;
  if (form == "sxm") return gpu.form_factor.starts_with("SXM");
  return gpu.form_factor == "PCIe" && is_bridged == (form == "nvl");
}

// Words that stand for another model than the one without them.
bool is_other_model(const std::vector<std::string>& device, const std::vector<std::string>& model) {
  constexpr std::array more = {"ti", "super", "ada", "laptop", "mobile", "max", "d"};
  return std::any_of(more.begin(), more.end(), [&](const char* word) { return has(device, word) != has(model, word); });
}

}  // namespace

std::string matching_gpu(const ProfileLibrary& library, const GpuIdentity& device) {
  const std::vector<std::string> name = name_words(device.name);
  const std::string form = form_of(name);
  struct Candidate {
    std::string name;
    double distance;
  };
  std::vector<Candidate> fitting;
  std::vector<std::string> near;
  for (const ProfileEntry& entry : library.list()) {
    if (entry.kind != ProfileKind::gpu) continue;
    const std::vector<std::string> model = model_of(entry.name);
    if (model.empty() || !std::all_of(model.begin(), model.end(), [&](const auto& word) { return has(name, word); }))
      continue;
    near.push_back(entry.name);
    const GpuProfile gpu = library.load_gpu(entry.name);
    const double memory = static_cast<double>(device.memory.count()) / static_cast<double>(gpu.memory.value.count());
    if (is_other_model(name, model) || !fits_form(form, gpu) || memory < least_memory || memory > most_memory ||
        (gpu.sm_count && gpu.sm_count->value != device.sm_count))
      continue;
    fitting.push_back({entry.name, std::abs(1 - memory)});
  }
  std::sort(fitting.begin(), fitting.end(),
            [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  const bool one = !fitting.empty() && (fitting.size() == 1 || fitting[1].distance > fitting[0].distance + alike);
  if (one) return fitting.front().name;
  throw InputError("--base", "",
                   fmt::format("{} bundled profile is of '{}' with {:.1f} GiB and {} multiprocessors",
                               fitting.empty() ? "no" : "more than one", device.name,
                               static_cast<double>(device.memory.count()) / (1 << 30), device.sm_count),
                   near.empty() ? "name the profile with the peaks and prices to keep, or write one first"
                                : fmt::format("name the profile with the peaks and prices to keep; near are {}",
                                              fmt::join(near, ", ")));
}

}  // namespace spillway::hwprofiles
