// Weights of transformers in and out: names, transposed matrices, files that are not what they should be.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/export.hpp"
#include "plimsoll/checkpoint/pretrained.hpp"
#include "plimsoll/checkpoint/safetensors_writer.hpp"
#include "plimsoll/formats/model_source.hpp"

#include "tests/checkpoint/described_model.hpp"
#include "tests/checkpoint/saved_model.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using checkpoint::OutputTensor;
using checkpoint::PretrainedWeights;
using checkpoint::StateKind;
using network::DType;
using nlohmann::json;

const std::vector<std::string> kModels = {
    R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_embd": 8, "n_layer": 2,
        "n_head": 2, "bos_token_id": 3})",
    R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_embd": 6, "n_layer": 1,
        "n_head": 3, "n_inner": 10, "tie_word_embeddings": false})",
    R"({"model_type": "llama", "vocab_size": 13, "hidden_size": 12, "intermediate_size": 20,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
        "rope_theta": 5000.0, "rms_norm_eps": 1e-5})",
    R"({"model_type": "llama", "vocab_size": 13, "hidden_size": 8, "intermediate_size": 9,
        "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 6, "attention_bias": true,
        "mlp_bias": true, "tie_word_embeddings": true})",
    R"({"model_type": "mistral", "vocab_size": 13, "hidden_size": 8, "intermediate_size": 9,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
        "sliding_window": 4})",
};

std::vector<std::byte> weight(const test::Model& model, std::size_t tensor) {
  return test::bytes_of(model, tensor, StateKind::kWeight,
                        {0, element_count(model.tensors[tensor])});
}

// Element (r, c) of ours at (c, r) of theirs, written out anew.
std::vector<std::byte> turned(const std::vector<std::byte>& bytes, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<std::byte> result(bytes.size());
  const auto size = static_cast<std::int64_t>(bytes.size()) / (rows * columns);
  for (std::int64_t i = 0; i < rows * columns * size; ++i) {
    const std::int64_t row = i / size / columns;
    const std::int64_t column = i / size % columns;
    result[static_cast<std::size_t>((column * rows + row) * size + i % size)] =
        bytes[static_cast<std::size_t>(i)];
  }
  return result;
}

struct Files {
  std::string prefix_removed = {};  // of names: files of the bare model
  std::vector<OutputTensor> more = {};
};

// What transformers would have saved.
std::string write_theirs(const test::TemporaryFolder& folder, const network::NetworkSpec& spec,
                         const test::Model& model, const Files& files = {}) {
  const auto table = checkpoint::weight_table(spec);
  REQUIRE(table.has_value());
  std::vector<OutputTensor> outputs = files.more;
  for (const auto& tensor : model.tensors) {
    const auto* name = table->find(tensor.name);
    REQUIRE(name != nullptr);
    OutputTensor output{name->theirs, DType::kFloat32, tensor.shape};
    if (output.name.starts_with(files.prefix_removed)) {
      output.name = output.name.substr(files.prefix_removed.size());
    }
    if (name->transposed) std::reverse(output.shape.begin(), output.shape.end());
    outputs.push_back(output);
  }
  const std::string path = folder.path() + "/model.safetensors";
  auto writer = checkpoint::SafetensorsWriter::create(path, outputs, test::quick_disk());
  REQUIRE(writer.has_value());
  for (const OutputTensor& more : files.more) {
    std::int64_t bytes = network::size_of(more.dtype);
    for (std::int64_t size : more.shape) bytes *= size;
    REQUIRE(writer->write(std::vector<std::byte>(static_cast<std::size_t>(bytes))).has_value());
  }
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    auto bytes = weight(model, t);
    const auto& shape = model.tensors[t].shape;
    if (table->find(model.tensors[t].name)->transposed) bytes = turned(bytes, shape[0], shape[1]);
    REQUIRE(writer->write(bytes).has_value());
  }
  REQUIRE(writer->finish().has_value());
  return path;
}

void check_weights(PretrainedWeights& weights, const test::Model& model) {
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    CAPTURE(model.tensors[t].name);
    const auto expected = weight(model, t);
    std::vector<std::byte> got(expected.size());
    CHECK(weights.dtype(t) == DType::kFloat32);
    REQUIRE(weights.read(t, {0, element_count(model.tensors[t])}, got).has_value());
    CHECK(got == expected);
  }
}

TEST_CASE("tables name each parameter once, in both directions") {
  for (std::string text : kModels) {
    for (const network::NetworkSpec& spec :
         {test::described_model(text), test::described_model("minigpt:d=8,L=2,V=9,s=4,heads=2")}) {
      const auto table = checkpoint::weight_table(spec);
      REQUIRE(table.has_value());
      std::set<std::string> ours;
      std::set<std::string> theirs;
      for (const auto& name : table->names) {
        CHECK(ours.insert(name.ours).second);
        CHECK(theirs.insert(name.theirs).second);
      }
      for (const auto& zero : table->zeros) CHECK(theirs.insert(zero.theirs).second);
      for (const auto& tensor : test::model_of(spec).tensors) CHECK(ours.contains(tensor.name));
    }
  }
}

TEST_CASE("weights of transformers are read whole and in ranges, on any rank") {
  test::Dice dice(3);
  for (const std::string& text : kModels) {
    const network::NetworkSpec spec = test::described_model(text);
    const test::Model model = test::model_of(spec);
    const test::TemporaryFolder folder;
    const std::string path = write_theirs(folder, spec, model);
    for (const std::string& place : {path, folder.path()}) {
      auto weights = PretrainedWeights::open(place, spec, checkpoint::shapes_of(model.parameters));
      if (!weights) FAIL(format_error(weights.error()));
      check_weights(*weights, model);
    }
    auto weights = PretrainedWeights::open(path, spec, checkpoint::shapes_of(model.parameters));
    for (int round = 0; round < 200; ++round) {
      const auto t = static_cast<std::size_t>(
          dice.between(0, static_cast<std::int64_t>(model.tensors.size()) - 1));
      const std::int64_t count = element_count(model.tensors[t]);
      const std::int64_t begin = dice.between(0, count);
      const shard::Range range{begin, dice.between(begin, count)};
      std::vector<std::byte> got(static_cast<std::size_t>(range.size() * 4));
      const std::int64_t before = weights->bytes_read();
      REQUIRE(weights->read(t, range, got).has_value());
      CHECK(got == test::bytes_of(model, t, StateKind::kWeight, range));
      // A transposed range costs at most the rest of its first and last row.
      const std::int64_t columns =
          model.tensors[t].shape.size() == 2 ? model.tensors[t].shape[1] : 1;
      CHECK(weights->bytes_read() - before <= (range.size() + 2 * columns) * 4);
    }
  }
}

TEST_CASE("files of the bare model, and tensors that are no parameters") {
  const network::NetworkSpec spec = test::described_model(kModels[0]);
  const test::Model model = test::model_of(spec);
  const test::TemporaryFolder folder;
  Files files;
  files.prefix_removed = "transformer.";
  files.more = {{"h.0.attn.bias", DType::kUInt8, {1, 1, 6, 6}},
                {"h.1.attn.masked_bias", DType::kFloat32, {}},
                {"lm_head.weight", DType::kFloat32, {11, 8}}};
  auto weights = PretrainedWeights::open(write_theirs(folder, spec, model, files), spec,
                                         checkpoint::shapes_of(model.parameters));
  if (!weights) FAIL(format_error(weights.error()));
  check_weights(*weights, model);
}

std::string refused(const test::TemporaryFolder& folder, const network::NetworkSpec& spec,
                    const test::Model& model) {
  const auto weights =
      PretrainedWeights::open(folder.path(), spec, checkpoint::shapes_of(model.parameters));
  if (weights) return "accepted";
  CHECK(weights.error().code == ExitCode::kBadInput);
  return weights.error().what;
}

TEST_CASE("weights of another model are refused with the tensor's name") {
  const network::NetworkSpec spec = test::described_model(kModels[0]);
  const test::Model model = test::model_of(spec);
  const test::TemporaryFolder folder;
  write_theirs(folder, spec, model, {.more = {{"transformer.extra", DType::kFloat32, {2}}}});
  CHECK(refused(folder, spec, model) == "transformer.extra is no parameter of test");
  write_theirs(folder, spec, model);
  CHECK(refused(folder, test::described_model(kModels[2]),
                test::model_of(test::described_model(kModels[2]))) ==
        "has no tensor model.embed_tokens.weight");
  test::Model wider = model;
  wider.parameters[0].shape = {12, 8};
  CHECK(refused(folder, spec, wider) ==
        "transformer.wte.weight has shape [11, 8], expected [12, 8]");
  const auto bloom =
      test::described_model(R"({"model_type": "bloom", "vocab_size": 11, "hidden_size": 8,
                                 "n_layer": 1, "n_head": 2})");
  const auto table = checkpoint::weight_table(bloom);
  REQUIRE(!table.has_value());
  CHECK(table.error().what.find("expected gpt2, llama, mistral or minigpt") != std::string::npos);
}

// The model is cut after every few tensors, as large ones are.
TEST_CASE("shards with an index") {
  const network::NetworkSpec spec = test::described_model(kModels[2]);
  const test::Model model = test::model_of(spec);
  const test::TemporaryFolder folder;
  json index;
  constexpr std::size_t kEach = 5;
  for (std::size_t first = 0; first < model.tensors.size(); first += kEach) {
    const std::size_t last = std::min(first + kEach, model.tensors.size());
    const std::string file = fmt::format("model-{:05}.safetensors", first / kEach);
    std::vector<OutputTensor> outputs;
    for (std::size_t t = first; t < last; ++t) {
      outputs.push_back({model.tensors[t].name, DType::kFloat32, model.tensors[t].shape});
      index["weight_map"][model.tensors[t].name] = file;
    }
    auto writer = checkpoint::SafetensorsWriter::create(folder.path() + "/" + file, outputs,
                                                        test::quick_disk());
    REQUIRE(writer.has_value());
    for (std::size_t t = first; t < last; ++t) {
      REQUIRE(writer->write(weight(model, t)).has_value());
    }
    REQUIRE(writer->finish().has_value());
  }
  folder.write("model.safetensors.index.json", index.dump());
  auto weights =
      PretrainedWeights::open(folder.path(), spec, checkpoint::shapes_of(model.parameters));
  if (!weights) FAIL(format_error(weights.error()));
  check_weights(*weights, model);
  fs::remove(folder.path() + "/model-00001.safetensors");
  CHECK(!PretrainedWeights::open(folder.path(), spec, checkpoint::shapes_of(model.parameters))
             .has_value());
}

TEST_CASE("a writer that is dropped leaves nothing, and replaces only whole files") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("w.safetensors", "before");
  const std::vector<OutputTensor> tensors = {{"w", DType::kBFloat16, {3}}};
  {
    auto writer = checkpoint::SafetensorsWriter::create(path, tensors, test::quick_disk());
    REQUIRE(writer.has_value());
    REQUIRE(writer->write(std::vector<std::byte>(4)).has_value());
    CHECK_THROWS_AS(static_cast<void>(writer->finish()), InternalError);
  }
  CHECK(test::file_text(path) == "before");
  CHECK(test::names_in(folder.path()).size() == 1);
  auto writer = checkpoint::SafetensorsWriter::create(path, tensors, test::quick_disk());
  REQUIRE(writer->write(std::vector<std::byte>(6)).has_value());
  REQUIRE(writer->finish().has_value());
  const auto header = formats::read_safetensors_header(path);
  REQUIRE(header.has_value());
  CHECK((*header)[0].dtype == "BF16");
}

}  // namespace
}  // namespace plimsoll
