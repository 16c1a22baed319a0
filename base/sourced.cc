#include "base/sourced.h"

namespace spillway {

std::string_view provenance_name(OriginKind provenance) {
  switch (provenance) {
    case OriginKind::measured:
      return "measured";
    case OriginKind::datasheet:
      return "datasheet";
    case OriginKind::fitted:
      return "fitted";
    case OriginKind::assumed:
      return "assumed";
  }
  return "assumed";
}

}  // namespace spillway
