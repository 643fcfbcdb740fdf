// Which libtorch this process runs on.
#pragma once

#include <string>

namespace plimsoll::engine {

// The version of the loaded library, such as "2.13.0" or "2.13.0+cu126". Asked of the library
// itself; the version of the headers when the library does not say.
std::string libtorch_version();

// Whether that is the version whose behaviour network::cpu_facts describes byte by byte. With any
// other version the figures of meters and dry runs stay true, but may differ from the calculated.
bool is_known_libtorch();

}  // namespace plimsoll::engine
