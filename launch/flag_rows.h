// Short ways to write rows of the launch table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/launch_facts.h"
#include "launch/launch_table.h"

namespace spillway::launch {

inline constexpr std::string_view whole = "#", on_off = "true=true false=false", if_on = "true=true false=-";

class FlagRows {
 public:
  explicit FlagRows(LaunchFormat format) : format_(format) {}

  // Both ways.
  FlagRows& say(std::string_view flag, std::string_view key, std::string_view values, std::string_view note = {});
  FlagRows& say(std::string_view flag, std::string_view key, std::string_view fact, std::string_view values,
                std::string_view note);
  // Read, never written: another spelling, or one of several flags that decide a key together.
  FlagRows& read(std::string_view flag, std::string_view key, std::string_view values, std::string_view note = {});
  FlagRows& read(std::string_view flag, std::string_view key, std::string_view fact, std::string_view values,
                 std::string_view note);
  FlagRows& file(std::string_view flag, LaunchFormat of, std::string_view note);
  // `flags`: names between blanks, which share the reason.
  FlagRows& as_modelled(std::string_view flags, std::string_view reason);
  FlagRows& as_modelled_if(std::string_view flag, std::string_view value, std::string_view reason);
  FlagRows& no_effect(std::string_view flags, std::string_view reason);
  FlagRows& time(std::string_view flags, std::string_view reason);
  FlagRows& saves(std::string_view flags, std::string_view reason);
  FlagRows& adds(std::string_view flags, std::string_view reason, double bytes_each = 0);
  FlagRows& not_said(std::string_view flags, std::string_view reason);
  // The effect of values that a scenario has nothing for, of the row before.
  FlagRows& or_else(FlagRole role);

  std::vector<LaunchFlag> take() { return std::move(rows_); }

 private:
  FlagRows& each(FlagRole role, std::string_view flags, std::string_view reason, std::string_view values = {});

  LaunchFormat format_;
  std::vector<LaunchFlag> rows_;
};

}  // namespace spillway::launch
