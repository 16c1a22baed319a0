// Names of bundled things (profiles, models, schedules) that may be files instead: one with a '/' or ending in ".json"
// is a path.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

[[nodiscard]] bool names_file(std::string_view name);
// Whether a folder lies at the path; no where nothing can be said, so that what opens it next tells the cause.
[[nodiscard]] bool is_folder(const std::string& path);
// A relative path seen from `folder`; other names as they are.
[[nodiscard]] std::string name_seen_from(const std::string& folder, const std::string& name);

}  // namespace spillway
