// The reference figures in tests/truth, copied from the files that the issue names.
#pragma once

#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plimsoll::test {

// One file by its path below tests/truth; the test fails when it is missing.
inline nlohmann::json truth(const std::string& file) {
  std::ifstream stream(std::string(PLIMSOLL_TRUTH_DIR "/") + file);
  REQUIRE_MESSAGE(stream.good(), file);
  return nlohmann::json::parse(stream);
}

}  // namespace plimsoll::test
