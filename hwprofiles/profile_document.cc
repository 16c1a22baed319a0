#include "hwprofiles/profile_document.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/read_file.h"
#include "hwprofiles/profile_reader.h"

namespace spillway::hwprofiles {

using json = nlohmann::ordered_json;

struct ProfileDocument::Json {
  json root;
  ValueHomes homes;
};

namespace {

constexpr std::size_t size_limit = std::size_t{16} << 20;
constexpr std::size_t unresolved = static_cast<std::size_t>(-1);

// Parent indices from names: dangling names, links of the wrong kind and cycles are problems.
std::vector<std::size_t> resolve_parents(const HostProfile& host, const std::vector<std::string>& parents,
                                         ProfileReader& reader) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < host.pcie.size(); ++i) {
    names.push_back(host.pcie[i].name);
    if (!seen.insert(names[i]).second) {
      reader.problem("/pcie/" + std::to_string(i) + "/name", "name '" + names[i] + "' used twice",
                     "give each node its own");
    }
  }
  std::vector<std::size_t> up(host.pcie.size(), unresolved);
  for (std::size_t i = 0; i < host.pcie.size(); ++i) {
    const std::string place = "/pcie/" + std::to_string(i) + "/up";
    const bool root = host.pcie[i].kind == PcieNodeKind::root_complex;
    if (root != parents[i].empty()) {
      reader.problem(place, root ? "a root complex has nothing above it" : "missing",
                     root ? "remove it" : "name the parent");
      continue;
    }
    if (root) continue;
    for (std::size_t j = 0; j < names.size(); ++j) up[i] = names[j] == parents[i] ? j : up[i];
    if (up[i] == unresolved) {
      reader.problem(place, "no node '" + parents[i] + "'", suggest(parents[i], names, "name a node of this list"));
    } else if (host.pcie[up[i]].kind != PcieNodeKind::root_complex &&
               host.pcie[up[i]].kind != PcieNodeKind::pcie_switch) {
      reader.problem(place, "'" + parents[i] + "' is a slot", "attach to a root complex or a switch");
      up[i] = unresolved;
    }
  }
  return up;
}

// Orders nodes parents first and stores the indices. A node on a cycle is a problem.
void arrange_tree(HostProfile& host, const std::vector<std::string>& parents, ProfileReader& reader) {
  const std::vector<std::size_t> up = resolve_parents(host, parents, reader);
  const std::size_t count = host.pcie.size();
  std::vector<std::size_t> place(count, unresolved);
  std::vector<PcieNode> ordered;
  for (std::size_t round = 0, before = unresolved; before != ordered.size() && round <= count; ++round) {
    before = ordered.size();
    for (std::size_t i = 0; i < count; ++i) {
      const bool ready = up[i] == unresolved || place[up[i]] != unresolved;
      if (place[i] != unresolved || !ready) continue;
      place[i] = ordered.size();
      ordered.push_back(host.pcie[i]);
      if (up[i] != unresolved) ordered.back().up = place[up[i]];
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (place[i] == unresolved) {
      reader.problem("/pcie/" + std::to_string(i) + "/up", "'" + host.pcie[i].name + "' lies on a cycle",
                     "let every chain of 'up' end at a root complex");
    }
    const PcieNode& node = host.pcie[i];
    if (node.kind != PcieNodeKind::root_complex && !node.bandwidth && !(node.generation && node.lanes)) {
      reader.problem("/pcie/" + std::to_string(i), "its link has no rate", "add generation and lanes, or bandwidth");
    }
  }
  host.pcie = std::move(ordered);
}

void check_kernel_kinds(const GpuProfile& gpu, ProfileReader& reader) {
  for (std::size_t i = 0; i < gpu.kernel_efficiency.size(); ++i) {
    const KernelEfficiency& item = gpu.kernel_efficiency[i];
    const std::string place = "/kernel_efficiency/" + std::to_string(i);
    if (item.curve.empty()) reader.problem(place + "/curve", "missing", "add its points");
    for (std::size_t j = 0; j < i; ++j)
      if (gpu.kernel_efficiency[j].kind == item.kind)
        reader.problem(place, "there is another entry of this kind", "keep one");
  }
}

void check_gemm_order(const GpuProfile& gpu, ProfileReader& reader) {
  for (std::size_t i = 0; i < gpu.gemm_efficiency.size(); ++i) {
    const GemmEfficiency& item = gpu.gemm_efficiency[i];
    const std::string place = "/gemm_efficiency/" + std::to_string(i);
    if (item.curve.empty()) reader.problem(place + "/curve", "missing", "add its points");
    for (std::size_t j = 0; j < i; ++j) {
      if (gpu.gemm_efficiency[j].precision == item.precision &&
          gpu.gemm_efficiency[j].smallest_side >= item.smallest_side) {
        reader.problem(place + "/smallest_side", "classes of one precision must rise", "sort them");
      }
    }
  }
}

// Tables that were measured on the base's links say nothing about other ones. places: that the file states itself.
void refuse_tables_of_base(const NetworkProfile& base, const std::vector<std::string>& places,
                           const std::string& path) {
  const auto states = [&](const char* place) { return std::find(places.begin(), places.end(), place) != places.end(); };
  if (base.collectives.empty() || states("/collectives")) return;
  for (const char* place : {"/bandwidth", "/efficiency"})
    if (states(place))
      throw InputError(path, place, "the base's collectives were measured with another one",
                       "add \"collectives\": [] to compute with bandwidth, efficiency and latency, or your own "
                       "measurements");
}

void check_peaks(const GpuProfile& gpu, ProfileReader& reader) {
  bool any = false;
  for (const Maybe<double>& peak : gpu.peak_flops_per_second) any = any || peak.has_value();
  if (!any) reader.problem("/peak_flops", "no precision has a peak", "give at least one");
}

}  // namespace

ProfileDocument ProfileDocument::read(const std::string& path) {
  ProfileDocument document;
  document.path_ = path;
  json root = parse_document(read_file(path, size_limit), path);
  if (!root.is_object())
    throw InputError(path, "", "not a JSON object", "start from a file of `spillway profile list`");
  std::vector<FieldProblem> problems;
  FieldReader reader(root, problems);
  ProfileHead head;
  head.origin.source = "not stated in the file";
  describe_head(head, document.kind_, reader);
  throw_first(problems, path);
  document.name_ = head.name;
  document.title_ = head.title;
  document.base_ = head.base;
  document.json_ = std::make_shared<const Json>(Json{std::move(root), ValueHomes({path, head.origin})});
  return document;
}

ProfileDocument ProfileDocument::over(const ProfileDocument& base) const {
  SPILLWAY_ASSERT(base.kind_ == kind_ && base.base_.empty());
  ProfileDocument result = *this;
  result.base_.clear();
  std::vector<std::string> places;
  json root = laid_over(base.json_->root, json_->root, places);
  std::vector<FieldProblem> problems;  // none: the base is sound
  if (kind_ == ProfileKind::network) refuse_tables_of_base(base.network(problems), places, path_);
  ValueHomes homes(base.json_->homes, json_->homes.of(""), std::move(places));
  result.json_ = std::make_shared<const Json>(Json{std::move(root), std::move(homes)});
  return result;
}

const std::string& ProfileDocument::home_of(const std::string& place) const { return json_->homes.of(place).path; }

GpuProfile ProfileDocument::gpu(std::vector<FieldProblem>& problems) const {
  SPILLWAY_ASSERT(kind_ == ProfileKind::gpu);
  GpuProfile gpu;
  gpu.name = name_;
  gpu.title = title_;
  ProfileReader reader(json_->root, json_->homes, problems);
  describe(gpu, reader);
  reader.finish();
  check_kernel_kinds(gpu, reader);
  check_gemm_order(gpu, reader);
  check_peaks(gpu, reader);
  return gpu;
}

NvmeProfile ProfileDocument::nvme(std::vector<FieldProblem>& problems) const {
  SPILLWAY_ASSERT(kind_ == ProfileKind::nvme);
  NvmeProfile drive;
  drive.name = name_;
  drive.title = title_;
  ProfileReader reader(json_->root, json_->homes, problems);
  describe(drive, reader);
  reader.finish();
  if (drive.write_cache && !drive.steady_write_bandwidth) {
    reader.problem("/steady_write_bandwidth", "missing beside write_cache", "give the rate once the cache is full");
  }
  if (drive.folding_write_bandwidth.has_value() != drive.folding_bytes.has_value()) {
    reader.problem("/folding_bytes", "folding needs its rate and its bytes", "give both or none");
  }
  return drive;
}

HostProfile ProfileDocument::host(std::vector<FieldProblem>& problems) const {
  SPILLWAY_ASSERT(kind_ == ProfileKind::host);
  HostProfile host;
  host.name = name_;
  host.title = title_;
  std::vector<std::string> parents;
  ProfileReader reader(json_->root, json_->homes, problems);
  describe(host, parents, reader);
  reader.finish();
  arrange_tree(host, parents, reader);
  return host;
}

NetworkProfile ProfileDocument::network(std::vector<FieldProblem>& problems) const {
  SPILLWAY_ASSERT(kind_ == ProfileKind::network);
  NetworkProfile network;
  network.name = name_;
  network.title = title_;
  ProfileReader reader(json_->root, json_->homes, problems);
  describe(network, reader);
  reader.finish();
  return network;
}

HardwareProfile ProfileDocument::system(SystemReferences& references, std::vector<FieldProblem>& problems) const {
  SPILLWAY_ASSERT(kind_ == ProfileKind::system);
  HardwareProfile system;
  system.name = name_;
  system.title = title_;
  system.path = path_;
  ProfileReader reader(json_->root, json_->homes, problems);
  describe(system, references, reader);
  reader.finish();
  return system;
}

}  // namespace spillway::hwprofiles
