#include "plimsoll/comm/private_buffer.hpp"

#include <new>

#include "plimsoll/base/error.hpp"

namespace plimsoll::comm {

Buffer private_buffer(std::int64_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  check(bytes > 0, "an empty buffer");
  auto* data = static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), kAlignment));
  return Buffer({data, [](std::byte* p) { ::operator delete(p, kAlignment); }}, bytes, false);
}

}  // namespace plimsoll::comm
