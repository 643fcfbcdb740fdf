#include "plimsoll/base/evidence.hpp"

namespace plimsoll {

std::string_view name(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
      return "measured";
    case Evidence::kSource:
      return "source";
    case Evidence::kAssumed:
      return "assumed";
  }
  return "?";
}

}  // namespace plimsoll
