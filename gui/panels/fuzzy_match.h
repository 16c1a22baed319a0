// How well a few typed letters name something.
#pragma once

#include <QString>
#include <optional>

namespace spillway::gui {

// Every word typed must be there as letters in order ("mb" in "micro-batch"). Larger is better: letters at the starts
// of words and in a row count most, short names more than long ones. None: not named. Ignores case. O(typed x name).
std::optional<int> fuzzy_match(const QString& typed, const QString& name);

}  // namespace spillway::gui
