#include "plimsoll/comm/decorator.hpp"

#include <utility>

namespace plimsoll::comm {

std::unique_ptr<Communicator> Decorator::split(std::int64_t colour, const Label& label) {
  auto group = inner_->split(colour, label);
  auto decorated = around(*group);
  decorated->owned_ = std::move(group);
  return decorated;
}

}  // namespace plimsoll::comm
