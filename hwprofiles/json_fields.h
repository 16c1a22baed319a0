// FieldVisitor that reads a JSON object, gathering every problem. Internal to this floor.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <vector>

#include "hwprofiles/profile_document.h"

namespace spillway::hwprofiles {

class JsonFieldReader final : public FieldVisitor {
 public:
  JsonFieldReader(const nlohmann::json& object, std::vector<ProfileProblem>& problems);

  // Keys that are read elsewhere.
  void ignore(std::vector<std::string> keys);
  // A key left unread is a problem with the nearest known ones; call once at the end.
  void finish();
  void problem(const std::string& place, std::string cause, std::string remedy);

  void text(std::string_view key, std::string& value, bool required) override;
  void flag(std::string_view key, bool& value) override;
  void choice(std::string_view key, std::size_t& index, const std::vector<std::string>& names) override;
  void number(const FieldInfo& info, Leaf& leaf) override;
  void integer(const FieldInfo& info, std::int64_t& value) override;
  void curve(const FieldInfo& y, Dimension x, Maybe<Curve>& curve) override;
  void family(const FieldInfo& y, Dimension x, std::string_view parameter, Maybe<CurveFamily>& family) override;
  bool begin_group(std::string_view key, bool required) override;
  void end_group() override { pop(); }
  std::size_t begin_list(std::string_view key, std::size_t current) override;
  void begin_element(std::size_t index) override;
  void end_element() override { pop(); }
  void end_list() override { lists_.pop_back(); }

 private:
  struct Frame {
    const nlohmann::json* object;
    std::string place;
    std::set<std::string> used;
  };
  struct List {
    const nlohmann::json* array;
    std::string place;
  };

  const nlohmann::json* take(std::string_view key);  // null when absent
  std::string place_of(std::string_view key) const { return frames_.back().place + "/" + std::string(key); }
  void push(const nlohmann::json& object, std::string place);
  void pop();
  Origin origin_of(const nlohmann::json& object, const std::string& place);
  // The value in base units; problems are recorded and false returned.
  bool quantity(const nlohmann::json& leaf, const FieldInfo& info, const std::string& place, double& value,
                Origin& origin);
  bool in_range(double value, const FieldInfo& info, const std::string& place);
  bool points(const nlohmann::json& object, const FieldInfo& y, double x_factor, double y_factor, Curve::Scale scale,
              const std::string& place, Curve& curve);
  struct Axes {
    double x = 1, y = 1;
    Curve::Scale scale = Curve::Scale::log;
  };
  bool axes(const nlohmann::json& object, const FieldInfo& y, Dimension x, const std::string& place, Axes& axes);
  void check_keys(const nlohmann::json& object, const std::vector<std::string>& known, const std::string& place);

  std::vector<ProfileProblem>& problems_;
  std::vector<Frame> frames_;
  std::vector<List> lists_;
  Origin default_origin_;
};

}  // namespace spillway::hwprofiles
