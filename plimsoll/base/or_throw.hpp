// From a Result to an exception, where an error can only end the work: inside the engine's ranks, in
// tests and in benches.
#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "plimsoll/base/error.hpp"

namespace plimsoll {

// The value; an error is thrown as std::runtime_error with the text of format_error.
template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(format_error(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace plimsoll
