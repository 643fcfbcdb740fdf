// The memory notebook's saved tensors by shape, at a batch of its choice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/notebook.hpp"

namespace plimsoll::test {

struct Families {
  std::vector<plan::ShapeFamily> list;
  std::int64_t total = 0;

  explicit Families(std::int64_t batch) {
    const nlohmann::json& row = notebook().at("families");
    const Run run(notebook_model(row), notebook_job(batch, row.at("s")));
    list = plan::shape_families(run.saved());
    total = run.ledger().as_saved.bytes;
  }
};

// "(350, 997)" -> "(350,997)", as the notebook prints shapes.
inline std::string notebook_shape(const plan::ShapeFamily& family) {
  std::string text = to_text(family.shape);
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

}  // namespace plimsoll::test
