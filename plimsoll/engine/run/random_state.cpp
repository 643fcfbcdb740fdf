#include "plimsoll/engine/run/random_state.hpp"

#include <cstring>
#include <mutex>
#include <stdexcept>

#include <fmt/format.h>

#include "plimsoll/engine/library/allocators.hpp"
#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {

std::vector<std::byte> random_state() {
  const UnseenScope unseen(Unseen::kEverything);
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor state = generator.get_state();
  std::vector<std::byte> bytes(state.nbytes());
  std::memcpy(bytes.data(), state.data_ptr(), bytes.size());
  return bytes;
}

void set_random_state(std::span<const std::byte> state) {
  const UnseenScope unseen(Unseen::kEverything);
  const at::Tensor tensor =
      at::empty({static_cast<std::int64_t>(state.size())}, at::TensorOptions().dtype(at::kByte));
  if (!state.empty()) std::memcpy(tensor.data_ptr(), state.data(), state.size());
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  try {
    generator.set_state(tensor);
  } catch (const c10::Error&) {
    throw std::invalid_argument(
        fmt::format("[random state] {} bytes, expected a state of libtorch's generator on the CPU",
                    state.size()));
  }
}

}  // namespace plimsoll::engine
