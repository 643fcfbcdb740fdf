// A network from the text that a checkpoint keeps of its model.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "plimsoll/formats/model_source.hpp"

namespace plimsoll::test {

inline network::NetworkSpec described_model(const std::string& text) {
  const auto spec = formats::load_described_model(text, "test");
  if (!spec) FAIL(format_error(spec.error()));
  return *spec;
}

}  // namespace plimsoll::test
