// The memory notebook's families of saved tensors, by shape: every named one and, by name, those it
// left out, so that all sums close. tests/truth/notebook.json; integers are bytes.
#include "tests/golden/notebook_families.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plimsoll::test {
namespace {

using plan::ShapeFamily;

// Bytes of the families that `matches` accepts, which are taken off `rest`.
template <class Matches>
std::int64_t take(std::vector<ShapeFamily>& rest, Matches matches) {
  std::int64_t bytes = 0;
  const auto end = std::remove_if(rest.begin(), rest.end(), [&](const ShapeFamily& family) {
    if (!matches(family)) return false;
    bytes += family.bytes;
    return true;
  });
  rest.erase(end, rest.end());
  return bytes;
}

std::int64_t sum(const nlohmann::json& figures) {
  std::int64_t total = 0;
  for (const auto& [name, bytes] : figures.items()) total += bytes.get<std::int64_t>();
  return total;
}

}  // namespace

TEST_CASE("notebook: saved tensors by shape at batch 7, named and left out, close") {
  const nlohmann::json& row = notebook().at("families");
  const nlohmann::json& named = row.at("by_shape_at_7");
  const nlohmann::json& left_out = row.at("not_listed_in_by_shape");
  const Families families(7);
  CHECK(families.total == row.at("total").at(0));
  CHECK(sum(named) + sum(left_out) == families.total);

  std::vector<ShapeFamily> rest = families.list;
  for (const auto& [shape, bytes] : named.items()) {
    CAPTURE(shape);
    CHECK(take(rest, [&, wanted = shape](const ShapeFamily& f) {
            return notebook_shape(f) == wanted;
          }) == bytes);
  }
  const auto shaped = [](const char* shape, network::DType dtype) {
    return [=](const ShapeFamily& f) { return notebook_shape(f) == shape && f.dtype == dtype; };
  };
  const auto int64 = network::DType::kInt64;
  CHECK(take(rest, shaped("(7,50,1)", network::DType::kFloat32)) ==
        left_out.at("layer_norm_mean_rstd"));
  CHECK(take(rest, [](const ShapeFamily& f) {
          return f.parameters && f.saved_by == "NativeLayerNorm";
        }) == left_out.at("layer_norm_weights"));
  CHECK(take(rest, shaped("(50)", int64)) == left_out.at("positions"));
  CHECK(take(rest, shaped("(7,50)", int64)) == left_out.at("ids"));
  CHECK(take(rest, shaped("(350)", int64)) == left_out.at("targets"));
  CHECK(take(rest, shaped("()", int64)) == left_out.at("seeds_offsets"));
  CHECK(take(rest, shaped("()", network::DType::kFloat32)) == left_out.at("total_weight"));
  CHECK(rest.empty());
}

TEST_CASE("notebook: constant and growing families, separated by doubling the batch") {
  const nlohmann::json& row = notebook().at("families");
  const Families seven(7);
  const Families fourteen(14);
  CHECK(fourteen.total == row.at("total").at(1));
  // A family whose shape and bytes are the same at twice the batch does not grow.
  std::int64_t constant = 0;
  for (const ShapeFamily& family : seven.list) {
    const bool same =
        std::any_of(fourteen.list.begin(), fourteen.list.end(), [&](const ShapeFamily& other) {
          return other.shape == family.shape && other.dtype == family.dtype &&
                 other.parameters == family.parameters && other.bytes == family.bytes;
        });
    if (same) constant += family.bytes;
  }
  CHECK(constant == row.at("constant"));
  CHECK(seven.total - constant == row.at("growing_at_7"));
  CHECK(fourteen.total - constant == 2 * row.at("growing_at_7").get<std::int64_t>());
  CHECK(4 * parameter_count(notebook_model(row)) == row.at("parameter_bytes"));
}

}  // namespace plimsoll::test
