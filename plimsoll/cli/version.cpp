#include "plimsoll/cli/version.hpp"

namespace plimsoll::cli {

std::string_view version() { return PLIMSOLL_VERSION; }

}  // namespace plimsoll::cli
