#include "studies/sweep/sweep_origin.h"

#include <filesystem>

#include "base/field_reader.h"
#include "base/field_writer.h"

namespace spillway::studies {
namespace {

constexpr const char* origin_key = "sweep-file";

void describe(SweepOrigin& origin, FieldVisitor& visitor) {
  visitor.constant({.key = "key", .required = true}, origin_key);
  visitor.constant({.key = "schema"}, "spillway-sweep-store");
  fields::text(visitor, {.key = "folder", .required = true, .even_empty = true}, origin.folder);
  fields::text(visitor, {.key = "path", .required = true, .even_empty = true}, origin.path);
  fields::hex(visitor, {.key = "digest"}, origin.digest);
  fields::text(visitor, {.key = "sweep", .required = true}, origin.sweep);
}

}  // namespace

std::optional<SweepOrigin> origin_in(const SweepStore& results, const std::string& store) {
  const std::optional<std::string> record = results.find(origin_key);
  if (!record) return std::nullopt;
  SweepOrigin origin;
  read_document(
      *record, store, [&](FieldVisitor& visitor) { describe(origin, visitor); }, "make the store again");
  return origin;
}

void append_origin(SweepStore& results, const SweepFile& file) {
  SweepOrigin origin{std::filesystem::absolute(file.path).parent_path().string(), file.path, file.digest, file.text};
  FieldWriter writer;
  describe(origin, writer);
  results.append(origin_key, writer.line());
}

SweepFile parse_sweep(const SweepOrigin& origin, const std::string& name) {
  return parse_sweep(origin.sweep, name, origin.folder);
}

}  // namespace spillway::studies
