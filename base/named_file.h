// Names of bundled things (profiles, models, schedules) that may be files instead: one with a '/' or ending in ".json"
// is a path.
#pragma once

#include <string>
#include <string_view>

namespace spillway {

[[nodiscard]] bool names_file(std::string_view name);
// Whether it may be a thing of an owner, published elsewhere, where nothing lies at the path:
// "meta-llama/Llama-3.1-8B", "hf:meta-llama/Llama-3.1-8B".
[[nodiscard]] bool may_be_published(std::string_view name);
// Whether a folder lies at the path; no where nothing can be said, so that what opens it next tells the cause.
[[nodiscard]] bool is_folder(const std::string& path);
// Whether something lies at the path. It counts without the permission to see it: opening it tells the cause.
[[nodiscard]] bool lies_at(const std::string& path);
// "steps.json.gz", "recording": of a file or a folder, for people.
[[nodiscard]] std::string file_title(const std::string& path);
// A relative path seen from `folder`; other names, and those that may be published and are no path there, as they are.
// In a machine's words ("dgx-h100+gpu=mine.json") so is each file, unless a file has that whole name.
[[nodiscard]] std::string name_seen_from(const std::string& folder, const std::string& name);

}  // namespace spillway
