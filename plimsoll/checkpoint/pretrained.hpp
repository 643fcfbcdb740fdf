// Weights that transformers saved, as the parameters of plimsoll's model.
//
//   auto weights = checkpoint::PretrainedWeights::open(path, spec, parameters);   // each rank
//   weights->read(p, {0, elements}, out);           // a whole parameter, or the range that is owned
//
// Every rank opens the files itself and reads what it asks for. Of transposed matrices (GPT-2) a range
// that begins or ends inside a row costs up to the rest of two rows; nothing else is read twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/safetensors_reader.hpp"
#include "plimsoll/checkpoint/weight_table.hpp"
#include "plimsoll/shard/units.hpp"

namespace plimsoll::checkpoint {

struct NamedShape {
  std::string name;
  std::vector<std::int64_t> shape;
};
std::vector<NamedShape> shapes_of(const std::vector<shard::Parameter>& parameters);

class PretrainedWeights {
 public:
  // `path`: as SafetensorsReader::open(). `parameters`: the model's, in any order; positions in it are
  // the `parameter` below. Reads headers, and of a minigpt the biases that have to be zero. Errors: a
  // model without a table, a parameter that the files lack or hold in another shape or in no floating
  // type, a tensor in them that the model does not have, a bias of a minigpt that is not zero.
  static Result<PretrainedWeights> open(const std::string& path, const network::NetworkSpec& spec,
                                        const std::vector<NamedShape>& parameters);

  // Whether the files hold it: adapters are not in them.
  bool has(std::size_t parameter) const { return found_[parameter].tensor != nullptr; }
  // Of those that they hold:
  // How the file stores it: fp64, fp32, fp16 or bf16. Widening and rounding are the caller's.
  network::DType dtype(std::size_t parameter) const { return found_[parameter].dtype; }
  // Elements [begin, end) in plimsoll's order, in that dtype.
  Result<void> read(std::size_t parameter, const shard::Range& elements, std::span<std::byte> out);
  std::int64_t bytes_read() const { return reader_.bytes_read(); }

 private:
  struct Found {
    const formats::TensorEntry* tensor = nullptr;
    network::DType dtype = network::DType::kFloat32;
    std::int64_t rows = 0;     // of ours; 0: not transposed
    std::int64_t columns = 0;  // of ours
  };
  explicit PretrainedWeights(SafetensorsReader reader) : reader_(std::move(reader)) {}
  Result<void> find(const NamedShape& parameter, const WeightTable& table);
  Result<void> check_zero(const network::NetworkSpec& spec, const formats::TensorEntry& tensor);
  Result<void> check_rest(const network::NetworkSpec& spec, const WeightTable& table);
  Result<void> read_transposed(const Found& found, const shard::Range& elements,
                               std::span<std::byte> out);

  SafetensorsReader reader_;
  std::vector<Found> found_;  // by parameter
};

}  // namespace plimsoll::checkpoint
