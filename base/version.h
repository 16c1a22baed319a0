// The version of this program: the project's version (meson.build) and the commit it was built from.
#pragma once

namespace spillway {

// "0.2.0"
const char* program_version();
// Twelve digits of the commit, with "-dirty" where the sources differed from it; "unknown" where git did not know.
const char* program_commit();

}  // namespace spillway
