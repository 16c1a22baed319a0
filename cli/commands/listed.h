// The output of `spillway list`: rows for people and the same for scripts.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/output/table.h"
#include "models/spec/model_alias.h"

namespace spillway::cli {

struct Listed {
  nlohmann::ordered_json items = nlohmann::ordered_json::array();
  Table table;
};

// Every bundled profile of the kind, and those on $SPILLWAY_PROFILE_PATH (list_hardware.cc).
Listed list_machines();
Listed list_gpus();
Listed list_drives();
Listed list_hosts();
Listed list_networks();

// A published model's id, the bundled shape it has and what of that is otherwise.
nlohmann::ordered_json alias_json(const ModelAlias& alias);

}  // namespace spillway::cli
