#include "hwprofiles/machine_choice.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"

namespace spillway::hwprofiles {
namespace {

constexpr std::int64_t most_gpus = 1 << 20;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "h100", "80gb" of "H100-80GB".
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char raw : text) {
    const auto c = static_cast<unsigned char>(raw);
    if (std::isalnum(c) != 0)
      words.back() += static_cast<char>(std::tolower(c));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_digit(const std::string& word) { return std::any_of(word.begin(), word.end(), is_digit); }

// Of a GPU's name as its driver has it, "NVIDIA H100 80GB HBM3": without the maker's words and the kind of memory.
std::vector<std::string> own_words(std::string_view name) {
  constexpr std::array<std::string_view, 5> makers = {"nvidia", "geforce", "tesla", "amd", "instinct"};
  std::vector<std::string> words = words_of(name);
  std::erase_if(words, [&](const std::string& word) {
    return word.starts_with("hbm") || std::find(makers.begin(), makers.end(), word) != makers.end();
  });
  return words;
}

// A word of the name, the beginning of one up to its number ("sxm" of sxm5), or neighbours written as one ("rtx4090").
bool has_word(const std::vector<std::string>& name, const std::string& word) {
  for (std::size_t from = 0; from < name.size(); ++from) {
    std::string joined;
    for (std::size_t to = from; to < name.size(); ++to) {
      joined += name[to];
      if (joined == word) return true;
    }
    const std::string& one = name[from];
    if (one.starts_with(word) && !is_digit(word.back()) && is_digit(one[word.size()])) return true;
  }
  return false;
}

struct Counted {
  std::int64_t count = 1;
  std::string name;
};

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "16xh100"; "h100x16".
std::optional<Counted> count_before(std::string_view text) {
  const std::size_t at = text.find('x');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  const std::optional<std::int64_t> count = number_of(text.substr(0, at));
  if (!count) return std::nullopt;
  return Counted{*count, std::string(text.substr(at + 1))};
}
std::optional<Counted> count_behind(std::string_view text) {
  const std::size_t at = text.rfind('x');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return std::nullopt;
  const std::optional<std::int64_t> count = number_of(text.substr(at + 1));
  if (!count) return std::nullopt;
  return Counted{*count, std::string(text.substr(0, at))};
}

// "4xmine.json" may be a file's own name.
bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

class Chooser {
 public:
  Chooser(const ProfileLibrary& library, std::string_view text) : library_(library), text_(text) {}

  [[nodiscard]] MachineChoice choose() const {
    if (is_system(text_)) return machines(text_, 1);
    if (const auto counted = count_before(text_); counted && names_file(counted->name) && !is_file(text_))
      return several(*counted);
    if (names_file(text_)) return machines(text_, 1);
    if (const auto counted = count_before(text_)) return several(*counted);
    if (const auto counted = count_behind(text_); counted && knows(counted->name)) return several(*counted);
    return gpus(find_gpu(text_), 1);
  }

 private:
  [[noreturn]] void refuse(const std::string& cause, const std::string& remedy) const {
    throw InputError("", text_, cause, remedy);
  }

  [[nodiscard]] bool has(ProfileKind kind, std::string_view name) const {
    return std::any_of(library_.list().begin(), library_.list().end(),
                       [&](const ProfileEntry& entry) { return entry.kind == kind && entry.name == name; });
  }
  [[nodiscard]] bool is_system(std::string_view name) const { return has(ProfileKind::system, name); }
  [[nodiscard]] bool knows(std::string_view name) const { return is_system(name) || best_gpu(name).has_value(); }

  [[nodiscard]] MachineChoice several(const Counted& counted) const {
    if (counted.count < 1 || counted.count > most_gpus)
      refuse(std::to_string(counted.count) + " of them is out of range", "give 1 to " + std::to_string(most_gpus));
    if (names_file(counted.name) || is_system(counted.name)) return machines(counted.name, counted.count);
    return gpus(find_gpu(counted.name), counted.count);
  }

  // Where several are asked for, they need a network between them.
  void check_network(const HardwareProfile& system, std::int64_t count) const {
    if (count == 1 || system.scale_out) return;
    refuse("that takes " + std::to_string(count) + " machines, and " + system.name + " has no network between machines",
           "say which in a profile of your own, {\"base\": \"" + system.name +
               "\", \"scale_out\": \"roce-100\", ...}, and ask for --on " + std::to_string(count) +
               "xFILE.json (docs/machines.md)");
  }

  [[nodiscard]] MachineChoice machines(const std::string& profile, std::int64_t count) const {
    const HardwareProfile system = library_.load_system(profile);
    check_network(system, count);
    MachineChoice choice{.profile = profile, .gpus = system.total_gpus() * count};
    if (count > 1) choice.overrides.emplace_back("machines", std::to_string(system.machines * count));
    choice.words = (count > 1 ? std::to_string(count) + " x " : "") + system.title;
    return choice;
  }

  [[nodiscard]] std::optional<std::string> best_gpu(std::string_view asked) const {
    const std::vector<std::string> wanted = own_words(asked);
    // "rtx" alone is no GPU's name.
    if (std::none_of(wanted.begin(), wanted.end(), has_digit)) return std::nullopt;
    std::optional<std::tuple<bool, std::int64_t, std::size_t, std::string>> best;
    for (const ProfileEntry& entry : library_.list()) {
      if (entry.kind != ProfileKind::gpu) continue;
      const std::vector<std::string> name = words_of(entry.name);
      if (!std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) { return has_word(name, word); }))
        continue;
      const std::tuple rank(entry.name.find("sxm") == std::string::npos,
                            -library_.load_gpu(entry.name).memory.value.count(), entry.name.size(), entry.name);
      if (!best || rank < *best) best = rank;
    }
    if (!best) return std::nullopt;
    return std::get<3>(*best);
  }

  [[nodiscard]] std::string find_gpu(std::string_view asked) const {
    if (std::optional<std::string> found = best_gpu(asked)) return *found;
    std::vector<std::string> names;  // "h100" before "h100-sxm5-80gb"
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == ProfileKind::gpu) names.push_back(words_of(entry.name).front());
    std::erase_if(names, [](const std::string& name) { return !has_digit(name); });
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == ProfileKind::gpu || entry.kind == ProfileKind::system) names.push_back(entry.name);
    refuse("no machine and no GPU of the profile library is called '" + std::string(asked) + "'",
           suggest(asked, names, "see `spillway profile list`; for example 16xh100, 8xa100-40gb or dgx-h100x2"));
  }

  // Machines with that GPU: as many in one as asked for, else the smallest that has more, else the largest; a maker's
  // own before what a cloud makes of it.
  [[nodiscard]] std::optional<HardwareProfile> system_with(const std::string& gpu, std::int64_t count) const {
    std::optional<HardwareProfile> best;
    const auto rank = [count](const HardwareProfile& system) {
      const std::int64_t each = system.gpu_count;
      return std::tuple(each < count, each < count ? -each : each, system.name.starts_with("cloud-"),
                        system.name.size(), system.name);
    };
    for (const ProfileEntry& entry : library_.list()) {
      if (entry.kind != ProfileKind::system) continue;
      HardwareProfile system = library_.load_system(entry.name);
      if (system.gpu.name != gpu || system.machines != 1) continue;
      if (!best || rank(system) < rank(*best)) best = std::move(system);
    }
    return best;
  }

  [[nodiscard]] MachineChoice gpus(const std::string& gpu, std::int64_t count) const {
    const std::optional<HardwareProfile> system = system_with(gpu, count);
    if (!system && count > 1)
      refuse("the profile library has no machine with " + gpu,
             "write one (docs/machines.md), and name its file: --on machine.json");
    if (!system) return {.profile = gpu, .gpus = 1, .words = "one " + gpu + " in a host with PCIe 5"};
    const std::int64_t machines = (count + system->gpu_count - 1) / system->gpu_count, each = count / machines;
    if (each * machines != count)
      refuse(std::to_string(count) + " GPUs don't make " + std::to_string(machines) + " machines that are alike",
             "give a multiple of " + std::to_string(system->gpu_count) + ", as " + system->title + " has");
    check_network(*system, machines);
    MachineChoice choice{.profile = system->name, .gpus = count};
    if (each != system->gpu_count) choice.overrides.emplace_back("gpu_count", std::to_string(each));
    if (machines > 1) choice.overrides.emplace_back("machines", std::to_string(machines));
    choice.words = (machines > 1 ? std::to_string(machines) + " x " : "") + system->title;
    if (each != system->gpu_count) choice.words += ", " + std::to_string(each) + " of the GPUs";
    return choice;
  }

  const ProfileLibrary& library_;
  std::string text_;
};

}  // namespace

MachineChoice choose_machine(const ProfileLibrary& library, std::string_view text) {
  return Chooser(library, text).choose();
}

}  // namespace spillway::hwprofiles
