#include "hwprofiles/machine_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "base/quantity.h"
#include "hwprofiles/card_box.h"
#include "hwprofiles/cloud_instances.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_gpus = 1 << 20;
constexpr std::int64_t most_gpus_of_links = 72;  // of a rack
constexpr std::int64_t cards_in_box = 8;         // at most, where nobody says
constexpr std::size_t least_letters = 3;         // of a GPU's name in other words than its own

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool has_digit(std::string_view word) { return std::any_of(word.begin(), word.end(), is_digit); }
bool is_memory_size(std::string_view word) { return word.size() > 2 && is_digit(word.front()) && word.ends_with("gb"); }

std::string lower(std::string_view text) {
  std::string low;
  for (const char c : text) low += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low;
}

// "h100", "80gb" of "H100-80GB"; of "80 GB", too.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : lower(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i] == "gb" && std::all_of(words[i - 1].begin(), words[i - 1].end(), is_digit)) {
      words[i - 1] += "gb";
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    }
  return words;
}

// A name in one spelling: "DGX_H100" is "dgx-h100".
std::string spelled(std::string_view name) {
  std::string text;
  for (const char c : lower(name)) {
    const bool parts = c == '-' || c == '_' || std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!parts)
      text += c;
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  if (text.ends_with('-')) text.pop_back();
  return text;
}

// Of a GPU's name as its driver has it, "NVIDIA H100 80GB HBM3": without the maker's words and the kind of memory.
std::vector<std::string> own_words(std::string_view name) {
  constexpr std::array<std::string_view, 9> idle = {"nvidia", "geforce",    "tesla",   "amd",      "instinct",
                                                    "gpu",    "generation", "edition", "blackwell"};
  std::vector<std::string> words = words_of(name);
  std::erase_if(words, [&](const std::string& word) {
    return word.starts_with("hbm") || std::find(idle.begin(), idle.end(), word) != idle.end();
  });
  return words;
}

// A name's words that a word says: itself, the beginning of one up to its number ("sxm" of sxm5), or neighbours written
// as one ("rtx4090").
std::vector<std::size_t> said_by(const std::string& word, const std::vector<std::string>& name) {
  for (std::size_t from = 0; from < name.size(); ++from) {
    std::string joined;
    std::vector<std::size_t> taken;
    for (std::size_t to = from; to < name.size(); ++to) {
      joined += name[to];
      taken.push_back(to);
      if (joined == word) return taken;
    }
    const std::string& one = name[from];
    if (one.starts_with(word) && !is_digit(word.back()) && is_digit(one[word.size()])) return {from};
  }
  return {};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) return most_gpus + 1;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

struct Counted {
  std::int64_t count = 1;
  std::string name;
};

// "16xh100", "16 x H100"; "h100x16".
std::optional<Counted> count_before(std::string_view text) {
  const std::size_t at = text.find_first_of("xX");
  if (at == std::string_view::npos || at + 1 == text.size()) return std::nullopt;
  const std::optional<std::int64_t> count = number_of(trimmed(text.substr(0, at)));
  if (!count) return std::nullopt;
  return Counted{*count, std::string(trimmed(text.substr(at + 1)))};
}
std::optional<Counted> count_behind(std::string_view text) {
  const std::size_t at = text.find_last_of("xX");
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const std::optional<std::int64_t> count = number_of(trimmed(text.substr(at + 1)));
  if (!count) return std::nullopt;
  return Counted{*count, std::string(trimmed(text.substr(0, at)))};
}

// "H100:8", "H100:80GB:8", "gpu:h100:8" as "8xH100", "8xH100 80GB".
std::string without_colons(std::string text) {
  if (lower(text).starts_with("gpu:")) text.erase(0, 4);
  const std::size_t last = text.rfind(':');
  if (last == std::string::npos || !number_of(text.substr(last + 1))) return text;
  std::string name = text.substr(0, last);
  std::replace(name.begin(), name.end(), ':', ' ');
  return text.substr(last + 1) + "x" + name;
}

// The multiplication sign is an x.
std::string with_plain_x(std::string_view text) {
  std::string plain(text);
  for (std::size_t at = plain.find("\u00d7"); at != std::string::npos; at = plain.find("\u00d7"))
    plain.replace(at, 2, "x");
  return plain;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// A count before a file, whose path may have been made absolute with it: "4xmine.json", "/here/4xmine.json",
// "4x/there/mine.json", "/here/4x/there/mine.json". None where a file has that whole name.
std::optional<Counted> counted_file(const std::string& text) {
  if (is_file(text)) return std::nullopt;
  for (std::size_t from = 0; from != std::string::npos;) {
    if (const auto counted = count_before(text.substr(from)); counted && names_file(counted->name)) {
      const bool is_absolute = counted->name.starts_with('/');
      Counted found{counted->count, (is_absolute ? "" : text.substr(0, from)) + counted->name};
      if (is_file(found.name) || from == 0) return found;
    }
    const std::size_t slash = text.find('/', from);
    from = slash == std::string::npos ? slash : slash + 1;
  }
  return std::nullopt;
}

std::string gib_text(Bytes size) {
  const PrintedQuantity printed = print_quantity(static_cast<double>(size.count()), Dimension::bytes);
  return printed.value + " " + printed.unit;
}

// What a text asks for, before anything is looked up but names.
struct Asked {
  std::string box;                          // a system's name, a file, or a GPU's
  bool is_system = false;                   // or a file
  const CloudInstance* instance = nullptr;  // in their place
  std::int64_t machines = 1;                // that are counted
  std::int64_t gpus = 1;                    // of a GPU: in each of them, or in all where is_split
  bool is_split = true;
};

const CloudInstance* instance_called(std::string_view name) {
  const std::string wanted = spelled(name);
  for (const CloudInstance& instance : cloud_instances())
    if (wanted == spelled(instance.type) || wanted == instance.short_name) return &instance;
  return nullptr;
}

class Chooser {
 public:
  Chooser(const ProfileLibrary& library, std::string_view text) : library_(library), text_(text) {}

  [[nodiscard]] HardwareProfile choose() {
    std::string box = with_plain_x(trimmed(text_));
    std::vector<std::string> extras;
    for (std::size_t plus = box.rfind('+'); plus != std::string::npos && !is_file(box); plus = box.rfind('+')) {
      extras.insert(extras.begin(), std::string(trimmed(std::string_view(box).substr(plus + 1))));
      box = trimmed(std::string_view(box).substr(0, plus));
    }
    const Asked asked = asked_for(without_colons(box));
    HardwareProfile machine = asked.is_system || asked.instance != nullptr ? systems(asked) : gpus(asked);
    for (const std::string& extra : extras) add(machine, extra);
    check_network(machine);
    return machine;
  }

 private:
  [[noreturn]] void refuse(const std::string& cause, const std::string& remedy) const {
    throw InputError("", text_, cause, remedy);
  }

  // ---- what is asked for ----

  [[nodiscard]] std::optional<std::string> profile_spelled(ProfileKind kind, std::string_view name) const {
    const std::string wanted = spelled(name);
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == kind && spelled(entry.name) == wanted) return entry.name;
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Asked> system_asked(const std::string& name, std::int64_t count) const {
    if (names_file(name)) return Asked{.box = name, .is_system = true, .machines = count};
    if (const CloudInstance* instance = instance_called(name)) return Asked{.instance = instance, .machines = count};
    const std::optional<std::string> system = profile_spelled(ProfileKind::system, name);
    if (!system) return std::nullopt;
    return Asked{.box = *system, .is_system = true, .machines = count};
  }

  void check_count(std::int64_t count) const {
    if (count < 1 || count > most_gpus)
      refuse(std::to_string(count) + " of them is out of range", "give 1 to " + std::to_string(most_gpus));
  }

  [[nodiscard]] Asked asked_for(const std::string& text) const {
    if (names_file(text)) {
      const std::optional<Counted> counted = counted_file(text);
      if (counted) check_count(counted->count);
      return *system_asked(counted ? counted->name : text, counted ? counted->count : 1);
    }
    if (auto system = system_asked(text, 1)) return *system;
    if (const auto front = count_before(text)) {
      check_count(front->count);
      if (auto system = system_asked(front->name, front->count)) return *system;
      if (const auto inner = count_before(front->name)) {
        Asked asked = asked_for(front->name);
        asked.machines *= front->count;
        asked.is_split = false;
        check_count(asked.machines);
        return asked;
      }
      return {.box = find_gpu(front->name), .gpus = front->count};
    }
    if (const auto behind = count_behind(text)) {  // "rtx5090" ends in x5090
      if (auto system = system_asked(behind->name, behind->count)) {
        check_count(behind->count);
        return *system;
      }
      if (const auto gpu = best_gpu(behind->name)) {
        check_count(behind->count);
        return {.box = *gpu, .gpus = behind->count};
      }
    }
    return {.box = find_gpu(text)};
  }

  // ---- GPUs by their words ----

  [[nodiscard]] std::optional<std::string> best_gpu(std::string_view asked) const {
    if (auto own = profile_spelled(ProfileKind::gpu, asked)) return own;
    const std::vector<std::string> wanted = own_words(asked);
    // "rtx" alone is no GPU's name, nor is "a4".
    if (std::none_of(wanted.begin(), wanted.end(), has_digit) || trimmed(asked).size() < least_letters)
      return std::nullopt;
    std::optional<std::tuple<std::ptrdiff_t, bool, std::ptrdiff_t, std::int64_t, std::size_t, std::string>> best;
    for (const ProfileEntry& entry : library_.list()) {
      if (entry.kind != ProfileKind::gpu) continue;
      std::vector<std::string> unsaid = words_of(entry.name);
      const std::vector<std::string> name = unsaid;
      const bool has_all = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
        const std::vector<std::size_t> said = said_by(word, name);
        for (const std::size_t i : said) unsaid[i].clear();
        return !said.empty();
      });
      if (!has_all) continue;
      std::erase_if(unsaid,
                    [](const std::string& word) { return word.empty() || word == "rtx" || word.starts_with("sxm"); });
      const std::ptrdiff_t sizes = std::count_if(unsaid.begin(), unsaid.end(), is_memory_size);
      const std::tuple rank(std::ssize(unsaid) - sizes, entry.name.find("sxm") == std::string::npos, sizes,
                            -library_.load_gpu(entry.name).memory.value.count(), entry.name.size(), entry.name);
      if (!best || rank < *best) best = rank;
    }
    if (!best) return std::nullopt;
    return std::get<std::string>(*best);
  }

  [[nodiscard]] std::string find_gpu(std::string_view asked) const {
    if (std::optional<std::string> found = best_gpu(asked)) return *found;
    refuse_apple(asked);
    std::vector<std::string> names;  // "h100" before "h100-sxm5-80gb"
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == ProfileKind::gpu) names.push_back(words_of(entry.name).front());
    std::erase_if(names, [](const std::string& name) { return !has_digit(name); });
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == ProfileKind::gpu || entry.kind == ProfileKind::system) names.push_back(entry.name);
    for (const CloudInstance& instance : cloud_instances()) names.emplace_back(instance.short_name);
    library_.check_readable(asked);
    refuse("no machine and no GPU of the profile library is called '" + std::string(asked) + "'",
           suggest(asked, names,
                   "see `spillway list machines` and `list gpus`; for example 16xh100, 8xa100-40gb or dgx-h100x2"));
  }

  void refuse_apple(std::string_view asked) const {
    const std::vector<std::string> words = own_words(asked);
    if (words.empty()) return;
    const std::string& first = words.front();
    if (first == "apple" || (first.size() == 2 && first.front() == 'm' && is_digit(first.back())))
      refuse("Apple's GPUs are not modelled: nothing here trains without CUDA or ROCm", "name another machine");
  }

  // ---- machines ----

  [[nodiscard]] HardwareProfile systems(const Asked& asked) const {
    HardwareProfile machine =
        asked.instance != nullptr ? rented(*asked.instance) : library_.load_named_system(asked.box);
    if (asked.machines > 1) machine.title = std::to_string(asked.machines) + " x " + machine.title;
    machine.machines *= asked.machines;
    return machine;
  }

  [[nodiscard]] HardwareProfile rented(const CloudInstance& instance) const {
    HardwareProfile machine = library_.load_system(instance.machine);
    machine.name = instance.type;
    machine.title = fmt::format("{} {}: {}x {}", instance.cloud, instance.type, machine.gpu_count, machine.gpu.title);
    for (const char* said : {"GPU", "host", "network"}) forget(machine, said);
    if (instance.fabric.empty())
      machine.scale_out.reset();
    else
      machine.assumed.push_back(fmt::format("network: {}, taken as {}", instance.fabric, machine.scale_out->title));
    machine.assumed.push_back(fmt::format("type: as {} says", instance.source));
    return machine;
  }

  // Of the library's machines with that GPU the one with as many, else the smallest that has more, else the largest; a
  // maker's own before what a cloud makes of it; of those that join several machines by their links one that joins no
  // more than are asked for.
  [[nodiscard]] std::optional<HardwareProfile> system_with(const std::string& gpu, std::int64_t count) const {
    const HardwareProfile* best = nullptr;
    const auto rank = [count](const HardwareProfile& system) {
      const std::int64_t each = system.gpu_count, joined = system.joined_gpus();
      return std::tuple(each < count, each < count ? -each : each, count > each ? -joined : joined,
                        system.name.starts_with("cloud-"), system.name.size(), system.name);
    };
    for (const HardwareProfile& system : library_.systems()) {
      if (system.gpu.name != gpu || system.machines != 1) continue;
      if (best == nullptr || rank(system) < rank(*best)) best = &system;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  // With so many cards in it; what was built to measure one thing is no machine of a kind.
  [[nodiscard]] std::optional<HardwareProfile> system_of_cards(const GpuProfile& gpu, std::int64_t cards) const {
    const bool links_are_known = cards == 1 || !gpu.peer_access || gpu.peer_access->value != 0;
    std::optional<HardwareProfile> found = links_are_known ? system_with(gpu.name, cards) : std::nullopt;
    if (!found || found->gpu_count != cards || found->name.ends_with("-testbed")) return std::nullopt;
    return found;
  }

  [[nodiscard]] HardwareProfile gpus(const Asked& asked) const {
    const GpuProfile gpu = library_.load_gpu(asked.box);
    const std::int64_t all = asked.gpus * asked.machines;
    check_count(all);
    const std::optional<HardwareProfile> modules = is_card(gpu) ? std::nullopt : system_with(gpu.name, asked.gpus);
    if (!modules && !is_card(gpu) && all > 1)
      refuse("the profile library has no machine with " + gpu.name,
             "write one (docs/how-to/describe-a-machine.md), and name its file");
    const std::int64_t most = modules ? modules->gpu_count : asked.is_split ? cards_in_box : asked.gpus;
    if (!asked.is_split && asked.gpus > most)
      refuse(fmt::format("a machine with {} has at most {}", gpu.name, most), "give no more in each");
    const std::int64_t count = asked.is_split ? (all + most - 1) / most : asked.machines;
    const std::int64_t each = all / count, below = all / most * most;
    if (each * count != all)
      refuse(fmt::format("{} GPUs don't make {} machines that are alike", all, count),
             fmt::format("give a multiple of {}: {} or {}", most, below, below + most));
    HardwareProfile machine;
    if (modules)
      machine = with_gpus(*modules, each);
    else if (auto system = system_of_cards(gpu, each))
      machine = *std::move(system);
    else
      machine = each == 1 ? library_.load_named_system(gpu.name) : box_with_measured_links(gpu, each);
    machine.machines = count;
    if (count > 1) machine.title = fmt::format("{} x {}", count, machine.title);
    note_assumed(machine);
    return machine;
  }

  // By rule, but for links that a machine of the library with such cards has measured.
  [[nodiscard]] HardwareProfile box_with_measured_links(const GpuProfile& gpu, std::int64_t cards) const {
    HardwareProfile box = box_of_cards(library_, gpu, cards);
    if (gpu.peer_access && gpu.peer_access->value == 0) return box;
    const std::optional<HardwareProfile> known = system_with(gpu.name, cards);
    if (known && known->scale_up && !known->scale_up->collectives.empty() && known->scale_up->max_group.value >= cards)
      box.scale_up = known->scale_up;
    return box;
  }

  static HardwareProfile with_gpus(HardwareProfile machine, std::int64_t gpus) {
    if (gpus == machine.gpu_count) return machine;
    machine.title += fmt::format(", {} of the GPUs", gpus);
    machine.gpu_count = gpus;
    assign_slots(machine, true);
    return machine;
  }

  // ---- what is said beside ----

  void add(HardwareProfile& machine, const std::string& extra) const {
    const std::size_t equals = extra.find('=');
    const std::string what = lower(trimmed(std::string_view(extra).substr(0, equals)));
    const std::string value =
        equals == std::string::npos ? "" : std::string(trimmed(std::string_view(extra).substr(equals + 1)));
    if (what == "ram") {
      apply_override(machine, "host.dram", value);
      forget(machine, "host");
    } else if (what == "gpu") {
      machine.gpu = library_.load_gpu(value);
      forget(machine, "GPU");
      machine.title += ", GPU: " + machine.gpu.title;
      return;
    } else if (what == "host") {
      machine.host = library_.load_host(value);
      assign_slots(machine, true);
      forget(machine, "host");
    } else if (what == "p2p" || what == "no-p2p") {
      if (!is_card(machine.gpu) || machine.gpu_count == 1)
        refuse("no cards of it are linked by PCIe", "leave '" + extra + "' out");
      machine.scale_up = card_links(machine, what == "p2p");
      forget(machine, "links");
    } else if (what == "drives") {
      set_drives(machine, value);
    } else if (const auto network = network_between_machines(extra)) {
      machine.scale_out = network;
      forget(machine, "network");
    } else {
      refuse("nothing of a machine is called '" + extra + "'", suggest(extra, known_beside()));
    }
    machine.title += ", " + extra;
  }

  // Not what links the GPUs of one.
  [[nodiscard]] std::optional<NetworkProfile> network_between_machines(std::string_view name) const {
    const std::optional<std::string> found = profile_spelled(ProfileKind::network, name);
    if (!found) return std::nullopt;
    NetworkProfile network = library_.load_network(*found);
    if (network.max_group.value <= most_gpus_of_links) return std::nullopt;
    return network;
  }

  [[nodiscard]] std::vector<std::string> known_beside() const {
    std::vector<std::string> known = {"gpu=", "host=", "ram=", "drives=", "p2p", "no-p2p"};
    for (const ProfileEntry& entry : library_.list())
      if (entry.kind == ProfileKind::network && network_between_machines(entry.name)) known.push_back(entry.name);
    return known;
  }

  void set_drives(HardwareProfile& machine, const std::string& value) const {
    machine.drives.clear();
    forget(machine, "drives");
    if (value != "none") {
      const Counted counted = count_before(value).value_or(Counted{1, value});
      check_count(counted.count);
      DriveGroup group;
      group.name = "scratch";
      group.drive = library_.load_nvme(counted.name);
      group.count = counted.count;
      machine.drives.push_back(std::move(group));
    }
    assign_slots(machine, true);
  }

  void check_network(const HardwareProfile& machine) const {
    if (machine.machines == 1 || machine.scale_out) return;
    refuse(fmt::format("that takes {} machines, and nothing is said of a network between them", machine.machines),
           fmt::format("say which: {0}+ethernet-25, {0}+roce-100, or another of `spillway list networks`", text_));
  }

  // ---- what was not said ----

  void note_assumed(HardwareProfile& machine) const {
    const GpuProfile& gpu = machine.gpu;
    machine.assumed.clear();
    const auto note = [&](const char* what, const std::string& is) { machine.assumed.push_back(what + (": " + is)); };
    note("GPU", gpu.tdp_watts ? fmt::format("{}, {:g} W", gpu.title, gpu.tdp_watts->value) : gpu.title);
    note("host", machine.host.title + " with " + gib_text(machine.host.dram.value));
    std::vector<std::string> drives;
    for (const DriveGroup& group : machine.drives)
      drives.push_back(fmt::format("{}x {}", group.count, group.drive.title));
    note("drives", drives.empty() ? "none" : fmt::format("{}", fmt::join(drives, ", ")));
    if (machine.gpu_count > 1 && machine.scale_up) note("links", machine.scale_up->title);
    if (machine.machines > 1 && machine.scale_out) note("network", machine.scale_out->title);
  }

  static void forget(HardwareProfile& machine, std::string_view what) {
    std::erase_if(machine.assumed, [&](const std::string& line) { return line.starts_with(what); });
  }

  const ProfileLibrary& library_;
  std::string text_;
};

}  // namespace

HardwareProfile machine_called(const ProfileLibrary& library, std::string_view text) {
  return Chooser(library, text).choose();
}

std::string assumed_words(const HardwareProfile& machine) {
  return fmt::format("{}", fmt::join(machine.assumed, "; "));
}

}  // namespace spillway::hwprofiles
