// `spillway schema`: what the files that spillway reads may hold, from the descriptions that read them.
#pragma once

namespace spillway::cli {

class Command;

void add_schema_command(Command& app);

}  // namespace spillway::cli
