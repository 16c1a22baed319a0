#include "hwprofiles/profile_library.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/byte_source.h"
#include "base/data_folder.h"
#include "base/input_error.h"
#include "base/named_file.h"
#include "base/nearest_name.h"
#include "hwprofiles/machine_choice.h"
#include "hwprofiles/profile_document.h"
#include "hwprofiles/profile_leaves.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_host = "generic-pcie5-host";

// Sorted, so that what hides what never depends on the file system's order.
std::vector<std::string> json_files(const std::string& directory, std::optional<InputError>& unread) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error), end;
  while (!error && it != end) {
    if (it->path().extension() == ".json") files.push_back(it->path().string());
    it.increment(error);
  }
  if (::access(directory.c_str(), R_OK | X_OK) != 0) error = {errno, std::system_category()};
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
    unread.emplace("", "", directory + " can't be searched: " + error.message(),
                   "check its permissions, and the limit on open files (ulimit -n)");
  std::sort(files.begin(), files.end());
  return files;
}

// For its problems alone; of a system without its components.
void read_any(const ProfileDocument& document, std::vector<FieldProblem>& problems) {
  SystemReferences references;
  switch (document.kind()) {
    case ProfileKind::gpu:
      document.gpu(problems);
      break;
    case ProfileKind::nvme:
      document.nvme(problems);
      break;
    case ProfileKind::host:
      document.host(problems);
      break;
    case ProfileKind::network:
      document.network(problems);
      break;
    case ProfileKind::system:
      document.system(references, problems);
      break;
  }
}

class Loader {
 public:
  explicit Loader(const ProfileLibrary& library) : library_(library) {}

  // `beside`: the file that makes the reference; paths are taken from its folder.
  [[nodiscard]] ProfileDocument open(std::string_view name, const std::string& beside = "") const {
    return with_base(ProfileDocument::read(path_of(name, beside)), {});
  }
  [[nodiscard]] ProfileDocument open_file(const std::string& path) const {
    return with_base(ProfileDocument::read(path), {});
  }

  [[nodiscard]] ProfileDocument open_kind(std::string_view name, ProfileKind kind,
                                          const std::string& beside = "") const {
    ProfileDocument document = open(name, beside);
    if (document.kind() == kind) return document;
    throw InputError(document.path(), "/kind",
                     "'" + document.name() + "' is a " + std::string(profile_kind_name(document.kind())) +
                         " profile, not a " + std::string(profile_kind_name(kind)),
                     "name a " + std::string(profile_kind_name(kind)) + " profile");
  }

  template <class Noun>
  [[nodiscard]] Noun load(std::string_view name, ProfileKind kind,
                          Noun (ProfileDocument::*read)(std::vector<FieldProblem>&) const,
                          const std::string& beside = "") const {
    const ProfileDocument document = open_kind(name, kind, beside);
    std::vector<FieldProblem> problems;
    Noun noun = (document.*read)(problems);
    throw_first(problems, document.path());
    return noun;
  }

  [[nodiscard]] HardwareProfile compose(const ProfileDocument& document, std::vector<FieldProblem>& problems) const {
    SystemReferences references;
    HardwareProfile system = document.system(references, problems);
    throw_first(problems, document.path());
    system.gpu = load(references.gpu, ProfileKind::gpu, &ProfileDocument::gpu, document.home_of("/gpu/profile"));
    system.host = load(references.host, ProfileKind::host, &ProfileDocument::host, document.home_of("/host"));
    std::set<std::string> names;
    for (SystemReferences::Drives& drives : references.drives) {
      drives.group.drive = load(drives.profile, ProfileKind::nvme, &ProfileDocument::nvme, document.home_of("/drives"));
      if (!names.insert(drives.group.name).second) {
        throw InputError(document.path(), "/drives", "two groups are named '" + drives.group.name + "'",
                         "name them apart");
      }
      system.drives.push_back(std::move(drives.group));
    }
    const auto network = [&](const std::string& name, const char* place, std::optional<NetworkProfile>& into) {
      if (!name.empty()) into = load(name, ProfileKind::network, &ProfileDocument::network, document.home_of(place));
    };
    network(references.scale_up, "/scale_up", system.scale_up);
    network(references.scale_out, "/scale_out", system.scale_out);
    assign_slots(system, false);
    return system;
  }

  // One GPU of this model in the default host.
  [[nodiscard]] HardwareProfile lone_gpu(const ProfileDocument& document) const {
    HardwareProfile system;
    std::vector<FieldProblem> problems;
    system.gpu = document.gpu(problems);
    throw_first(problems, document.path());
    system.name = document.name();
    system.title = "1x " + document.title();
    system.path = document.path();
    system.host = load(system.gpu.host.empty() ? default_host : system.gpu.host, ProfileKind::host,
                       &ProfileDocument::host, document.home_of("/host"));
    assign_slots(system, false);
    system.assumed = {"host: " + system.host.title, "drives: none"};
    return system;
  }

 private:
  [[nodiscard]] std::string path_of(std::string_view name, const std::string& beside) const {
    if (!names_file(name)) return library_.find(name).path;
    const fs::path given{std::string(name)};
    if (beside.empty() || given.is_absolute()) return given.string();
    return (fs::path(beside).parent_path() / given).string();
  }

  [[nodiscard]] std::string path_of_base(const ProfileDocument& document) const {
    try {
      return path_of(document.base(), document.path());
    } catch (const InputError& error) {
      throw InputError(document.path(), "/base", error.cause(), error.remedy());
    }
  }

  // `above`: files whose base the document is, or a base's base.
  [[nodiscard]] ProfileDocument with_base(const ProfileDocument& document, std::vector<std::string> above) const {
    if (document.base().empty()) return document;
    above.push_back(fs::weakly_canonical(document.path()).string());
    const std::string path = path_of_base(document);
    if (std::find(above.begin(), above.end(), fs::weakly_canonical(path).string()) != above.end())
      throw InputError(document.path(), "/base", "'" + document.base() + "' is based on this profile itself",
                       "let every chain of bases end at a profile without one");
    const ProfileDocument base = with_base(ProfileDocument::read(path), std::move(above));
    if (base.kind() != document.kind())
      throw InputError(document.path(), "/base",
                       "'" + document.base() + "' is a " + std::string(profile_kind_name(base.kind())) +
                           " profile, this one a " + std::string(profile_kind_name(document.kind())),
                       "name one of the same kind");
    std::vector<FieldProblem> problems;
    read_any(base, problems);
    throw_first(problems, base.path());
    return document.over(base);
  }

  const ProfileLibrary& library_;
};

template <class Noun>
std::vector<ProfileLeaf> list_leaves(Noun noun, bool every_point) {
  LeafLister lister(every_point);
  if constexpr (std::is_same_v<Noun, HostProfile>) {
    std::vector<std::string> parents;
    for (const PcieNode& node : noun.pcie) parents.push_back(node.up ? noun.pcie[*node.up].name : "");
    describe(noun, parents, lister);
  } else {
    describe(noun, lister);
  }
  return lister.take();
}

std::vector<ProfileLeaf> document_leaves(const Loader& loader, const ProfileDocument& document, bool every_point) {
  std::vector<FieldProblem> problems;
  std::vector<ProfileLeaf> leaves;
  switch (document.kind()) {
    case ProfileKind::gpu:
      leaves = list_leaves(document.gpu(problems), every_point);
      break;
    case ProfileKind::nvme:
      leaves = list_leaves(document.nvme(problems), every_point);
      break;
    case ProfileKind::host:
      leaves = list_leaves(document.host(problems), every_point);
      break;
    case ProfileKind::network:
      leaves = list_leaves(document.network(problems), every_point);
      break;
    case ProfileKind::system:
      leaves = list_leaves(loader.compose(document, problems), every_point);
      break;
  }
  throw_first(problems, document.path());
  return leaves;
}

std::string in_a_line(const InputError& error) {
  std::string line = error.file();
  if (!error.place().empty()) line += ": " + error.place();
  line += ": " + error.cause();
  return error.remedy().empty() ? line : line + "; " + error.remedy();
}

std::string printed(const ProfileLeaf& leaf) { return leaf.unit.empty() ? leaf.value : leaf.value + " " + leaf.unit; }

}  // namespace

std::vector<std::string> ProfileLibrary::standard_directories() {
  std::vector<std::string> directories;
  if (const char* given = std::getenv("SPILLWAY_PROFILE_PATH"); given != nullptr) {
    std::string_view rest = given;
    while (!rest.empty()) {
      const std::size_t colon = std::min(rest.find(':'), rest.size());
      if (colon > 0) directories.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(std::min(colon + 1, rest.size()));
    }
  }
  for (std::string& place : data_places("hwprofiles", "hwprofiles/data")) directories.push_back(std::move(place));
  return directories;
}

ProfileLibrary ProfileLibrary::standard() { return ProfileLibrary(standard_directories()); }

const ProfileLibrary& ProfileLibrary::shared() {
  static std::mutex mutex;
  static std::map<std::vector<std::string>, ProfileLibrary> libraries;
  std::vector<std::string> directories = standard_directories();
  const std::lock_guard lock(mutex);
  const auto found = libraries.find(directories);
  if (found != libraries.end()) return found->second;
  const ProfileLibrary library(directories);
  return libraries.emplace(std::move(directories), library).first->second;
}

class ProfileLibrary::Files {
 public:
  explicit Files(const std::vector<std::string>& directories) {
    for (const std::string& directory : directories) by_directory_.push_back(json_files(directory, unread_));
  }

  const std::vector<ProfileEntry>& list() {
    const std::lock_guard lock(mutex_);
    if (is_listed_) return listed_;
    std::set<std::string> seen;
    for (const std::vector<std::string>& paths : by_directory_)
      for (const bool called_after_it : {true, false})
        for (const std::string& path : paths)
          if (const auto& entry = read(path); entry && (stem(path) == entry->name) == called_after_it)
            if (seen.insert(entry->name).second) listed_.push_back(*entry);
    std::sort(listed_.begin(), listed_.end(), [](const ProfileEntry& a, const ProfileEntry& b) {
      return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
    });
    is_listed_ = true;
    return listed_;
  }

  std::optional<ProfileEntry> find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    for (const std::vector<std::string>& paths : by_directory_)
      for (const bool called_after_it : {true, false})
        for (const std::string& path : paths)
          if ((stem(path) == name) == called_after_it)
            if (const auto& entry = read(path); entry && entry->name == name) return entry;
    return std::nullopt;
  }

  std::optional<HardwareProfile> machine(const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto found = machines_.find(text);
    return found == machines_.end() ? std::nullopt : std::optional(found->second);
  }
  HardwareProfile keep(const std::string& text, const HardwareProfile& machine) {
    const std::lock_guard lock(mutex_);
    return machines_.try_emplace(text, machine).first->second;
  }

  const std::vector<HardwareProfile>* systems() {
    const std::lock_guard lock(mutex_);
    return systems_ ? &*systems_ : nullptr;
  }
  const std::vector<HardwareProfile>& keep(std::vector<HardwareProfile> systems) {
    const std::lock_guard lock(mutex_);
    if (!systems_) systems_ = std::move(systems);
    return *systems_;
  }

  // The first folder or file that the system would not open.
  std::optional<InputError> unread() {
    const std::lock_guard lock(mutex_);
    return unread_;
  }

 private:
  static std::string_view stem(std::string_view path) {
    path.remove_prefix(path.rfind('/') + 1);
    return path.substr(0, path.rfind('.'));
  }

  // None where the file is no profile, or can't be read.
  const std::optional<ProfileEntry>& read(const std::string& path) {
    const auto [found, is_new] = entries_.try_emplace(path);
    if (!is_new) return found->second;
    try {
      const ProfileDocument document = ProfileDocument::read(path);
      found->second = {document.name(), document.title(), path, document.kind()};
    } catch (const InputError&) {
      // Not a profile: check() on the file says why. Or one that can't be read.
      try {
        static_cast<void>(ByteSource::open(path, 1));
      } catch (const InputError& error) {
        if (!unread_) unread_.emplace("", "", path + " " + error.cause(), error.remedy());
      }
    }
    return found->second;
  }

  std::mutex mutex_;
  std::vector<std::vector<std::string>> by_directory_;
  std::map<std::string, std::optional<ProfileEntry>> entries_;  // by path: what was read so far
  std::vector<ProfileEntry> listed_;
  bool is_listed_ = false;
  std::optional<std::vector<HardwareProfile>> systems_;
  std::map<std::string, HardwareProfile> machines_;  // by what they are called in a few letters
  std::optional<InputError> unread_;
};

ProfileLibrary::ProfileLibrary(const std::vector<std::string>& directories)
    : files_(std::make_shared<Files>(directories)) {}

const std::vector<ProfileEntry>& ProfileLibrary::list() const { return files_->list(); }

ProfileEntry ProfileLibrary::find(std::string_view name) const {
  if (std::optional<ProfileEntry> found = files_->find(name)) return *std::move(found);
  std::vector<std::string> names;
  for (const ProfileEntry& entry : list()) names.push_back(entry.name);
  check_readable(name);
  throw InputError(
      "", "", "no hardware profile '" + std::string(name) + "'",
      suggest(name, names,
              "see `spillway list` machines, gpus, drives, hosts or networks, or give the path of a file"));
}

void ProfileLibrary::check_readable(std::string_view name) const {
  if (const std::optional<InputError> unread = files_->unread())
    throw InputError("", "", "no hardware profile '" + std::string(name) + "' is found, and " + unread->cause(),
                     unread->remedy());
}

bool ProfileLibrary::has(std::string_view name_or_path) const {
  if (!names_file(name_or_path)) return files_->find(name_or_path).has_value();
  std::error_code none;
  return fs::exists(name_or_path, none);
}

HardwareProfile ProfileLibrary::load_system(std::string_view machine) const {
  if (has(machine)) return load_named_system(machine);
  const std::string text(machine);
  if (text.find(".json") != std::string::npos || text.find('/') != std::string::npos)
    return machine_called(*this, text);
  if (std::optional<HardwareProfile> known = files_->machine(text)) return *std::move(known);
  return files_->keep(text, machine_called(*this, text));
}

HardwareProfile ProfileLibrary::load_named_system(std::string_view name_or_path) const {
  const Loader loader(*this);
  const ProfileDocument document = loader.open(name_or_path);
  if (document.kind() == ProfileKind::gpu) return loader.lone_gpu(document);
  std::vector<FieldProblem> problems;
  return loader.compose(loader.open_kind(name_or_path, ProfileKind::system), problems);
}

GpuProfile ProfileLibrary::load_gpu(std::string_view name_or_path) const {
  return Loader(*this).load(name_or_path, ProfileKind::gpu, &ProfileDocument::gpu);
}

NvmeProfile ProfileLibrary::load_nvme(std::string_view name_or_path) const {
  return Loader(*this).load(name_or_path, ProfileKind::nvme, &ProfileDocument::nvme);
}

HostProfile ProfileLibrary::load_host(std::string_view name_or_path) const {
  return Loader(*this).load(name_or_path, ProfileKind::host, &ProfileDocument::host);
}

NetworkProfile ProfileLibrary::load_network(std::string_view name_or_path) const {
  return Loader(*this).load(name_or_path, ProfileKind::network, &ProfileDocument::network);
}

const std::vector<HardwareProfile>& ProfileLibrary::systems() const {
  if (const std::vector<HardwareProfile>* known = files_->systems()) return *known;
  std::vector<HardwareProfile> all;
  for (const ProfileEntry& entry : list()) {
    if (entry.kind != ProfileKind::system) continue;
    try {
      all.push_back(load_named_system(entry.name));
    } catch (const InputError&) {
      continue;  // told where it is named
    }
  }
  return files_->keep(std::move(all));
}

std::vector<std::string> ProfileLibrary::check(const std::string& path) const {
  std::vector<std::string> found;
  std::vector<FieldProblem> problems;
  try {
    const Loader loader(*this);
    const ProfileDocument document = loader.open_file(path);
    if (document.kind() == ProfileKind::system)
      static_cast<void>(loader.compose(document, problems));
    else
      read_any(document, problems);
  } catch (const InputError& error) {
    if (problems.empty()) found.push_back(in_a_line(error));
  }
  for (const FieldProblem& problem : problems) {
    found.push_back(in_a_line({path, problem.place, problem.cause, problem.remedy}));
  }
  return found;
}

std::vector<ProfileLeaf> ProfileLibrary::show(std::string_view name_or_path) const {
  if (!has(name_or_path)) return leaves_of(load_system(name_or_path));
  const Loader loader(*this);
  return document_leaves(loader, loader.open(name_or_path), false);
}

std::vector<ProfileDifference> ProfileLibrary::diff(std::string_view left, std::string_view right) const {
  const Loader loader(*this);
  const ProfileDocument a = loader.open(left);
  const ProfileDocument b = loader.open_kind(right, a.kind());
  const std::vector<ProfileLeaf> shown_a = document_leaves(loader, a, false), full_a = document_leaves(loader, a, true);
  const std::vector<ProfileLeaf> shown_b = document_leaves(loader, b, false), full_b = document_leaves(loader, b, true);
  const auto find_in = [](const std::vector<ProfileLeaf>& leaves, const std::string& path) {
    const auto same = [&path](const ProfileLeaf& leaf) { return leaf.path == path; };
    return static_cast<std::size_t>(std::find_if(leaves.begin(), leaves.end(), same) - leaves.begin());
  };
  std::vector<ProfileDifference> rows;
  for (std::size_t i = 0; i < shown_a.size(); ++i) {
    const std::size_t j = find_in(full_b, shown_a[i].path);
    const bool missing = j == full_b.size();
    if (!missing && printed(full_a[i]) == printed(full_b[j])) continue;
    rows.push_back({shown_a[i].path, printed(shown_a[i]), missing ? "-" : printed(shown_b[j])});
  }
  for (const ProfileLeaf& leaf : shown_b) {
    if (find_in(full_a, leaf.path) == full_a.size()) rows.push_back({leaf.path, "-", printed(leaf)});
  }
  return rows;
}

}  // namespace spillway::hwprofiles
