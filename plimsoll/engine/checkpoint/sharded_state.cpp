#include "plimsoll/engine/checkpoint/sharded_state.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/engine/zero/blocks.hpp"

namespace plimsoll::engine {

using checkpoint::StateKind;

namespace {

network::DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return network::DType::kFloat32;
    case at::kDouble:
      return network::DType::kFloat64;
    case at::kBFloat16:
      return network::DType::kBFloat16;
    case at::kHalf:
      return network::DType::kFloat16;
    case at::kLong:
      return network::DType::kInt64;
    case at::kByte:
      return network::DType::kUInt8;
    case at::kBool:
      return network::DType::kBool;
    default:
      throw InternalError("a type that ranks do not exchange");
  }
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

std::vector<checkpoint::TensorState> states_of(const shard::Parameter& parameter,
                                               const zero::Settings& settings) {
  const auto own = static_cast<at::ScalarType>(parameter.type.code);
  const bool mastered = parameter.trainable && settings.master;
  std::vector<checkpoint::TensorState> states(1);
  states[0].dtype = dtype_of(mastered ? *settings.master : own);
  if (!parameter.trainable) return states;
  const StateKind kinds[] = {StateKind::kFirstMoment, StateKind::kSecondMoment};
  for (int i = 0; i < settings.moments; ++i) {
    states.push_back({kinds[i], dtype_of(settings.moment), {}});
  }
  return states;
}

// Positions of parameters, each tensor once, ascending.
std::vector<std::size_t> listed(const zero::Sharder& sharder) {
  std::vector<std::size_t> result;
  for (const shard::Unit& unit : sharder.units().units) {
    result.insert(result.end(), unit.parameters.begin(), unit.parameters.end());
  }
  std::sort(result.begin(), result.end());
  return result;
}

template <class Use>
void each_state(const zero::OwnedPiece& piece, const Use& use) {
  use(StateKind::kWeight, piece.weights);
  if (piece.first.defined()) use(StateKind::kFirstMoment, piece.first);
  if (piece.second.defined()) use(StateKind::kSecondMoment, piece.second);
}

std::string text_of(const checkpoint::Tensor& tensor) {
  std::string text = fmt::format("[{}]", fmt::join(tensor.shape, ", "));
  for (const checkpoint::TensorState& state : tensor.states) {
    text += fmt::format(" {} {}", checkpoint::name(state.kind), network::name(state.dtype));
  }
  return text;
}

// The tensor of the first buffer is `first`.
void add_buffers(const zero::Sharder& sharder, std::size_t first, std::vector<SavedPiece>& pieces) {
  for (std::size_t b = 0; b < sharder.buffers().size(); ++b) {
    const at::Tensor data = sharder.buffers()[b].tensor.detach().contiguous().view({-1});
    if (data.numel() == 0) continue;
    pieces.push_back({first + b, StateKind::kBuffer, {0, data.numel()}, data});
  }
}

Result<void> read_buffer(checkpoint::Reader& reader, const zero::NamedBuffer& buffer) {
  if (buffer.tensor.numel() == 0) return {};
  const at::Tensor values = at::empty(buffer.tensor.sizes(), buffer.tensor.options());
  auto read = reader.read(buffer.name, StateKind::kBuffer, {0, values.numel()}, bytes_of(values))
                  .and_then([&] { return reader.compare_checksums(); });
  if (read) zero::copy_elements(buffer.tensor, values);
  return read;
}

}  // namespace

std::vector<checkpoint::Tensor> tensors_of(const zero::Sharder& sharder) {
  std::vector<checkpoint::Tensor> tensors;
  for (std::size_t p : listed(sharder)) {
    const shard::Parameter& parameter = sharder.parameters()[p];
    tensors.push_back({parameter.name, parameter.shape, states_of(parameter, sharder.settings())});
  }
  for (const zero::NamedBuffer& buffer : sharder.buffers()) {
    const network::DType dtype = dtype_of(buffer.tensor.scalar_type());
    tensors.push_back(
        {buffer.name, buffer.tensor.sizes().vec(), {{StateKind::kBuffer, dtype, {}}}});
  }
  return tensors;
}

std::vector<SavedPiece> share_of(const zero::Sharder& sharder) {
  const std::vector<std::size_t> order = listed(sharder);
  std::vector<SavedPiece> pieces;
  for (const zero::OwnedPiece& piece : sharder.share()) {
    const auto place = std::lower_bound(order.begin(), order.end(), piece.parameter);
    const auto tensor = static_cast<std::size_t>(place - order.begin());
    each_state(piece, [&](StateKind kind, const at::Tensor& data) {
      pieces.push_back({tensor, kind, piece.in_parameter, data});
    });
  }
  if (sharder.world().rank() == 0) add_buffers(sharder, order.size(), pieces);
  return pieces;
}

void copy_into(const at::Tensor& memory, std::vector<SavedPiece>& pieces) {
  std::size_t used = 0;
  for (SavedPiece& piece : pieces) {
    const std::span<const std::byte> from = bytes_of(piece.data);
    check(used + from.size() <= memory.nbytes(), "a snapshot that is too small");
    std::memcpy(bytes_of(memory).data() + used, from.data(), from.size());
    piece.data =
        memory.narrow(0, static_cast<std::int64_t>(used), static_cast<std::int64_t>(from.size()));
    used += from.size();
  }
}

Result<void> write_share(const checkpoint::SavePlan& plan, std::int32_t rank,
                         const std::vector<SavedPiece>& pieces, std::span<const std::byte> random) {
  auto writer = checkpoint::Writer::open(plan, rank);
  if (!writer) return tl::unexpected(writer.error());
  for (const SavedPiece& piece : pieces) {
    const std::span<const std::byte> data = bytes_of(piece.data);
    if (auto added = writer->add(piece.tensor, piece.kind, piece.elements, data); !added) {
      return added;
    }
  }
  if (auto added = writer->add_blob("random", random); !added) return added;
  return writer->finish();
}

Result<void> check_tensors(const checkpoint::Manifest& manifest, const zero::Sharder& sharder) {
  const std::vector<checkpoint::Tensor> tensors = tensors_of(sharder);
  const auto refuse = [&](const std::string& what, const char* expected) {
    return fail("--resume", fmt::format("{}, expected {}", what, expected),
                "MODEL, --precision and --optimizer have to be those of the checkpoint");
  };
  for (const checkpoint::Tensor& tensor : tensors) {
    const checkpoint::Tensor* saved = manifest.find(tensor.name);
    if (saved == nullptr) {
      return refuse(fmt::format("{} is not in the checkpoint", tensor.name), "all of the model");
    }
    const std::string is = text_of(tensor);
    const std::string was = text_of(*saved);
    if (is != was) {
      return refuse(fmt::format("{}: {} in the checkpoint", tensor.name, was), is.c_str());
    }
  }
  if (manifest.tensors.size() == tensors.size()) return {};
  return refuse(fmt::format("tensors={} in the checkpoint", manifest.tensors.size()),
                fmt::format("{}", tensors.size()).c_str());
}

Result<void> read_state(checkpoint::Reader& reader, zero::Sharder& sharder) {
  Result<void> result;
  for (const zero::OwnedPiece& piece : sharder.held()) {
    if (piece.in_parameter.empty()) continue;
    const std::string& name = sharder.parameters()[piece.parameter].name;
    each_state(piece, [&](StateKind kind, const at::Tensor& data) {
      if (result) result = reader.read(name, kind, piece.in_parameter, bytes_of(data));
    });
    if (!result) return result;
  }
  if (result = reader.compare_checksums(); !result) return result;
  for (const zero::NamedBuffer& buffer : sharder.buffers()) {
    if (auto read = read_buffer(reader, buffer); !read) return read;
  }
  sharder.adopt_held();
  return {};
}

}  // namespace plimsoll::engine
