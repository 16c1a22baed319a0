// Where an installed program finds its data: beside itself, so that an installation may be moved, or put together under
// another root (DESTDIR), and never reads the folder it was built in.
#pragma once

namespace spillway::cli {

// Points SPILLWAY_DATA at share/spillway of the program's own prefix, when that is there and the user has set no other.
// A program that was not installed keeps the folders of its source tree. To be called before threads start.
void use_installed_data();

}  // namespace spillway::cli
