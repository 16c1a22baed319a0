// FieldVisitor that knows the dotted path of what it visits ("drives.0.drive.capacity").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"

namespace spillway {

class PathVisitor : public virtual FieldVisitor {
 public:
  bool begin_group(const FieldInfo& info) override { return push(info.key); }
  void end_group() override { parts_.pop_back(); }
  std::size_t begin_list(const FieldInfo& info, std::size_t current) override {
    push(info.key);
    return current;
  }
  void begin_element(std::size_t index) override { push(std::to_string(index)); }
  void end_element() override { parts_.pop_back(); }
  void end_list() override { parts_.pop_back(); }
  std::vector<std::string> begin_map(const FieldInfo& info, std::vector<std::string> current) override {
    push(info.key);
    return current;
  }
  void begin_entry(const std::string& name) override { push(name); }
  void end_entry() override { parts_.pop_back(); }
  void end_map() override { parts_.pop_back(); }

 protected:
  [[nodiscard]] std::string path_of(std::string_view key) const {
    std::string path;
    for (const std::string& part : parts_) path += (path.empty() ? "" : ".") + part;
    if (!path.empty() && !key.empty()) path += '.';
    return path + std::string(key);
  }

 private:
  bool push(std::string_view key) {
    parts_.emplace_back(key);
    return true;
  }
  std::vector<std::string> parts_;
};

}  // namespace spillway
