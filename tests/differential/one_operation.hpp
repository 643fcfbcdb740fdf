// Networks of one operation each: every kind, for several layouts of its operand.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/network/network.hpp"

namespace plimsoll::tests {

// How the operand of the operation lies in memory.
enum class Layout { kContiguous, kTransposed, kSliced, kOneRow };
inline constexpr std::array kLayouts = {Layout::kContiguous, Layout::kTransposed, Layout::kSliced,
                                        Layout::kOneRow};
std::string_view name(Layout layout);

struct OneOperation {
  std::string variant;  // what sets it apart from the others of its kind
  network::Network network;
};

// All networks of a kind. Each ends in a cross entropy, and every parameter reaches the loss. Empty
// for a kind without a case, and for images that do not lie contiguous, which no network here makes.
std::vector<OneOperation> networks_of(network::OpKind kind, Layout layout, network::DType dtype);

}  // namespace plimsoll::tests
