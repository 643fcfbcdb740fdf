// Bodies of ranks as threads, and what they threw.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include <doctest/doctest.h>

#include "plimsoll/comm/threads.hpp"

namespace plimsoll::test {

// What a rank threw, in words; "" for none.
inline std::string message_of(const std::exception_ptr& thrown) {
  if (!thrown) return "";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Runs the body on `ranks` threads, none of which may throw.
inline void run_cleanly(int ranks, const std::function<void(comm::Communicator&)>& body) {
  for (const auto& one : comm::run_threads(ranks, body)) CHECK(message_of(one) == "");
}

}  // namespace plimsoll::test
