#include "plimsoll/engine/checkpoint/pretrained_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "plimsoll/engine/run/library_calls.hpp"
#include "plimsoll/engine/zero/blocks.hpp"

namespace plimsoll::engine {
namespace {

// Elements that are read at once. Of a transposed matrix each of them costs a read per column.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;

Result<void> read_piece(checkpoint::PretrainedWeights& weights, const zero::OwnedPiece& piece,
                        std::vector<std::byte>& buffer) {
  const network::DType dtype = weights.dtype(piece.parameter);
  const shard::Range& all = piece.in_parameter;
  for (std::int64_t begin = all.begin; begin < all.end; begin += kAtOnce) {
    const shard::Range range{begin, std::min(begin + kAtOnce, all.end)};
    buffer.resize(static_cast<std::size_t>(range.size() * network::size_of(dtype)));
    if (auto read = weights.read(piece.parameter, range, buffer); !read) return read;
    const at::Tensor values = at::from_blob(buffer.data(), {range.size()}, scalar_type(dtype));
    zero::copy_elements(piece.weights.narrow(0, begin - all.begin, range.size()), values);
  }
  return {};
}

}  // namespace

Result<void> read_weights(checkpoint::PretrainedWeights& weights, zero::Sharder& sharder) {
  std::vector<std::byte> buffer;
  for (const zero::OwnedPiece& piece : sharder.held()) {
    if (!weights.has(piece.parameter)) continue;
    if (auto read = read_piece(weights, piece, buffer); !read) return read;
  }
  sharder.adopt_held();
  return {};
}

}  // namespace plimsoll::engine
