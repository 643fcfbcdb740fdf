#include "plimsoll/plan/products.hpp"

#include <utility>

#include "plimsoll/base/checked.hpp"

namespace plimsoll::plan {
namespace {

// Every kind is G products [M, K] [K, N].
struct Product {
  std::int64_t batches, rows, inner, columns;
};

Product product_of(ProductKind kind, const std::vector<std::int64_t>& s, std::int64_t scale) {
  const auto size = [&](std::size_t i) { return checked_mul(s.at(i), scale); };
  switch (kind) {
    case ProductKind::kDot:
      return {1, 1, size(0), 1};
    case ProductKind::kMatvec:
      return {1, size(0), size(1), 1};
    case ProductKind::kMatmul:
      return {1, size(0), size(1), size(2)};
    case ProductKind::kBatched:
      return {size(0), size(1), size(3), size(2)};
  }
  return {1, 1, 1, 1};
}

struct Names {
  std::string_view flops, left, right, result;
};

Names names_of(ProductKind kind) {
  switch (kind) {
    case ProductKind::kDot:
      return {"2 P", "P", "P", "1"};
    case ProductKind::kMatvec:
      return {"2 N P", "N P", "P", "N"};
    case ProductKind::kMatmul:
      return {"2 N P M", "N P", "P M", "N M"};
    case ProductKind::kBatched:
      return {"2 G N M K", "G M K", "G N K", "G M N"};
  }
  return {};
}

std::string sum(std::string_view a, std::string_view b) {
  if (a == b) return "2 " + std::string(a);
  return std::string(a) + " + " + std::string(b);
}

}  // namespace

std::string_view name(ProductKind kind) {
  switch (kind) {
    case ProductKind::kDot:
      return "dot";
    case ProductKind::kMatvec:
      return "matvec";
    case ProductKind::kMatmul:
      return "matmul";
    case ProductKind::kBatched:
      return "batched";
  }
  return "?";
}

std::string_view size_names(ProductKind kind) {
  switch (kind) {
    case ProductKind::kDot:
      return "P";
    case ProductKind::kMatvec:
      return "N P";
    case ProductKind::kMatmul:
      return "N P M";
    case ProductKind::kBatched:
      return "G M N K";
  }
  return "?";
}

std::int64_t ProductPass::bytes(std::int64_t item) const {
  return checked_mul(item, checked_add(elements_read, elements_written));
}

double ProductPass::intensity(std::int64_t item) const {
  return static_cast<double>(flops) / static_cast<double>(bytes(item));
}

std::vector<ProductPass> product_passes(ProductKind kind, const std::vector<std::int64_t>& sizes,
                                        std::int64_t scale) {
  const Product p = product_of(kind, sizes, scale);
  const std::int64_t left = checked_mul(p.batches, checked_mul(p.rows, p.inner));
  const std::int64_t right = checked_mul(p.batches, checked_mul(p.inner, p.columns));
  const std::int64_t result = checked_mul(p.batches, checked_mul(p.rows, p.columns));
  const std::int64_t flops = checked_mul(2, checked_mul(left, p.columns));
  const Names n = names_of(kind);
  const std::string formula(n.flops);
  return {{"forward", formula, flops, checked_add(left, right), result, sum(n.left, n.right),
           std::string(n.result)},
          {"backward left", formula, flops, checked_add(result, right), left,
           sum(n.result, n.right), std::string(n.left)},
          {"backward right", formula, flops, checked_add(left, result), right,
           sum(n.left, n.result), std::string(n.right)}};
}

std::string_view growth(ProductKind kind) {
  switch (kind) {
    case ProductKind::kDot:
    case ProductKind::kMatvec:
      return "stays below 2 FLOPs per element however large it is: bound by memory";
    case ProductKind::kMatmul:
    case ProductKind::kBatched:
      return "grows in proportion to the sizes: large ones are bound by compute";
  }
  return "";
}

}  // namespace plimsoll::plan
