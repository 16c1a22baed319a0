#!/bin/sh
# MiniMalloc and spillway side by side on the same tables.
#
#   git clone https://github.com/google/minimalloc        (figures in docs/internals/layout.md: 9f5cf81)
#   bench/peers/minimalloc.sh MINIMALLOC_CHECKOUT SPILLWAY [TABLE...]
#
# Tables default to MiniMalloc's benchmarks/challenging; the capacity is in each file's name (A.1048576.csv). Needs g++
# and libabsl-dev. Debian 12's Abseil has no absl/log, which MiniMalloc uses for messages alone: an empty one stands in.
# Prints processor seconds of both, which a busy machine does not distort as it does elapsed time.
set -eu
checkout=$1 spillway=$2
shift 2
[ $# -gt 0 ] || set -- "$checkout"/benchmarks/challenging/*.csv

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$build/absl/log"
cat >"$build/absl/log/log.h" <<'STUB'
#pragma once
#include <ostream>
struct NoMessage : std::ostream { NoMessage() : std::ostream(nullptr) {} };
#define LOG(severity) NoMessage()
#define DLOG(severity) while (false) NoMessage()
STUB
cat >"$build/absl/log/globals.h" <<'STUB'
#pragma once
#include <absl/base/log_severity.h>
namespace absl {
inline void SetStderrThreshold(LogSeverityAtLeast) {}
inline void InitializeLog() {}
inline void EnableLogPrefix(bool) {}
}
STUB
printf '#pragma once\n' >"$build/absl/log/initialize.h"
cp "$checkout"/src/*.cc "$checkout"/src/*.h "$build"
sed -i 's/std::string_view/absl::string_view/g' "$build/converter.cc"
# shellcheck disable=SC2046
g++ -std=c++17 -O3 -w -I"$build" "$build"/*.cc -o "$build/minimalloc" \
  $(pkg-config --libs absl_flags absl_flags_parse absl_status absl_statusor absl_strings absl_time absl_flat_hash_set)

cpu() { # processor seconds of a command, its output thrown away
  python3 - "$@" <<'PYTHON'
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.3f}{'' if code == 0 else ' (exit ' + str(code) + ')'}")
PYTHON
}

printf '%-40s %12s %14s %14s\n' table capacity "minimalloc s" "spillway s"
for table in "$@"; do
  capacity=$(basename "$table" .csv)
  capacity=${capacity##*.}
  printf '%-40s %12s ' "$(basename "$table")" "$capacity"
  printf '%14s ' "$(cpu "$build/minimalloc" --capacity="$capacity" --timeout=120s --input="$table" --output="$build/out.csv")"
  printf '%14s\n' "$(cpu "$spillway" plan layout "$table" --capacity "$capacity")"
done
