// FieldVisitor that knows the dotted path of what it visits ("drives.0.drive.capacity"). Internal to this floor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hwprofiles/fields.h"

namespace spillway::hwprofiles {

class PathVisitor : public FieldVisitor {
 public:
  void text(std::string_view, std::string&, bool) override {}
  void flag(std::string_view, bool&) override {}
  void choice(std::string_view, std::size_t&, const std::vector<std::string>&) override {}
  bool begin_group(std::string_view key, bool) override { return push(key); }
  void end_group() override { parts_.pop_back(); }
  std::size_t begin_list(std::string_view key, std::size_t current) override {
    push(key);
    return current;
  }
  void begin_element(std::size_t index) override { push(std::to_string(index)); }
  void end_element() override { parts_.pop_back(); }
  void end_list() override { parts_.pop_back(); }

 protected:
  [[nodiscard]] std::string path_of(std::string_view key) const {
    std::string path;
    for (const std::string& part : parts_) path += part + ".";
    return path + std::string(key);
  }

 private:
  bool push(std::string_view key) {
    parts_.emplace_back(key);
    return true;
  }
  std::vector<std::string> parts_;
};

}  // namespace spillway::hwprofiles
