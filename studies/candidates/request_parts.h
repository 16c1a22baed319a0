// Common parts of the requests of studies: sections of a file with the command line's values over them, sizes of
// layouts to be searched, the price list.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/floors.h"

namespace spillway::studies {

inline constexpr double most_request_gpus = 0x1p20;

struct LayoutSizes {
  std::vector<std::int64_t> tensor_parallel, pipeline_parallel, micro_batch;  // empty: not said
};
void describe(LayoutSizes& sizes, FieldVisitor& visitor);

// 1, 2, 4, ... at most `most`.
std::vector<std::int64_t> powers_of_two(std::int64_t most);
// Defaults for sizes not given: a split up to the GPUs of a machine, stages up to 16, micro-batches up to 8.
LayoutSizes or_usual(LayoutSizes said, std::int64_t gpus_in_machine);

// 0: not given.
void describe_limit(double& limit, const FieldInfo& info, FieldVisitor& visitor);
// The file with entries over the bundled price list's.
void describe_prices(std::string& file, FieldVisitor& visitor);

// Puts values that no command line says in the place of defaults.
class Unsaid final : public FieldVisitor {
 public:
  void integer(const FieldInfo&, std::optional<std::int64_t>& value) override {
    if (value) value = std::numeric_limits<std::int64_t>::min();
  }
  void number(const FieldInfo&, std::optional<double>& value) override {
    if (value) value = std::numeric_limits<double>::lowest();
  }
  void word(const FieldInfo&, std::optional<std::size_t>& place, const Words& words) override {
    if (place) place = words.size();
  }
  bool begin_part(const FieldInfo&, bool present) override { return present; }
};
// A section of which the command line says nothing yet.
template <class Section>
Section unsaid() {
  Section section;
  Unsaid visitor;
  describe(section, visitor);
  return section;
}

// A study's section of a scenario or a sweep: what the command line says over what the file says.
class AskedSection {
 public:
  // name: "capacity". text: its JSON; empty: the file has none. said: the command line's, of unsaid(). Reads `section`.
  // Throws InputError (file and JSON pointer, or option).
  template <class Section>
  AskedSection(const std::string& file, const std::string& name, const std::string& text, Section said,
               Section& section)
      : AskedSection(
            file, name, text, [&](FieldVisitor& visitor) { describe(said, visitor); },
            [none = unsaid<Section>()](FieldVisitor& visitor) mutable { describe(none, visitor); },
            [&](FieldVisitor& visitor) { describe(section, visitor); }) {}

  // Names the option where the command line says the key, else its place in the file.
  [[noreturn]] void fail(const std::string& key, const std::string& cause, const std::string& remedy) const;
  [[nodiscard]] bool is_said(const std::string& key) const;   // by the command line
  [[nodiscard]] bool is_given(const std::string& key) const;  // by it or the file
  // The command line's path as it is, the file's seen from its folder.
  [[nodiscard]] std::string path_of(const std::string& key, const std::string& path) const;

 private:
  using Describe = std::function<void(FieldVisitor&)>;
  AskedSection(std::string file, const std::string& name, const std::string& text, const Describe& said,
               const Describe& unsaid, const Describe& section);

  std::string file_, place_;
  std::vector<std::string> said_, given_;  // keys
};

}  // namespace spillway::studies
