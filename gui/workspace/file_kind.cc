#include "gui/workspace/file_kind.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/byte_source.h"
#include "base/named_file.h"
#include "gui/workspace/variant.h"
#include "scenario/scenario.h"

namespace spillway::gui {
namespace {

constexpr std::size_t look_ahead = 64 << 10;

// A line of a sweep's store: eight hexadecimal digits and an object.
bool is_store(std::string_view head) {
  return head.size() > 10 && head.find_first_not_of("0123456789abcdef") == 8 && head.substr(8, 2) == " {";
}

}  // namespace

FileKind kind_of_file(const std::string& path) {
  if (is_folder(path)) return FileKind::trace;
  ByteSource source = ByteSource::open(path, std::uint64_t{1} << 40U);
  const auto bytes = source.peek(look_ahead);
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto holds = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (is_store(head) || holds("\"spillway-sweep\"")) return FileKind::sweep;
  if (is_workspace_text(std::string(head.substr(0, 200)))) return FileKind::workspace;
  if (is_scenario_file(path)) return FileKind::scenario;
  if (holds("\"spillway-hardware-profile/")) return FileKind::hardware;
  const bool is_small = bytes.size() < look_ahead;
  if (is_small && (holds("\"spillway.model\"") || holds("\"model_type\"") || holds("\"architectures\"")))
    return FileKind::model;
  return FileKind::trace;
}

std::string new_scenario(const std::string& model, const std::string& hardware) {
  const nlohmann::ordered_json root = {{"schema", "spillway-scenario"},
                                       {"version", scenario_version},
                                       {"title", std::filesystem::path(model).stem().string() + " on " +
                                                     std::filesystem::path(hardware).stem().string()},
                                       {"model", {{"name", model}}},
                                       {"hardware", {{"profile", hardware}}}};
  return root.dump(2) + "\n";
}

}  // namespace spillway::gui
