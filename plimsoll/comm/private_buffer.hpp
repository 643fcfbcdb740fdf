// Memory of backends that share none.
#pragma once

#include "plimsoll/comm/communicator.hpp"

namespace plimsoll::comm {

// `bytes` > 0 of this process's own memory, aligned to 64 bytes.
Buffer private_buffer(std::int64_t bytes);

}  // namespace plimsoll::comm
