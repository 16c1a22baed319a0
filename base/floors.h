// The floors' namespaces, lowest first. A floor sees the names of the floors below it without a prefix. A name of a
// floor above would need one, and no include brings it. base/ itself is in spillway.
#pragma once

namespace spillway {

namespace traces {}
namespace hwprofiles {}
namespace models {
using namespace traces;
using namespace hwprofiles;
}  // namespace models
namespace sim {
using namespace models;
}  // namespace sim
namespace planners {
using namespace sim;
}  // namespace planners
namespace scenario {
using namespace planners;
}  // namespace scenario
namespace launch {
using namespace scenario;
}  // namespace launch
namespace studies {
using namespace launch;
}  // namespace studies
namespace reports {
using namespace studies;
}  // namespace reports
namespace validation {
using namespace reports;
}  // namespace validation
namespace cli {
using namespace validation;
}  // namespace cli
namespace gui {
using namespace reports;
}  // namespace gui
namespace bench {
using namespace gui;
}  // namespace bench

}  // namespace spillway
