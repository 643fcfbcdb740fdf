// Checkpoints of any number of ranks as models of transformers.
#include "plimsoll/checkpoint/export.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <doctest/doctest.h>

#include "plimsoll/checkpoint/pretrained.hpp"
#include "plimsoll/formats/model_source.hpp"

#include "tests/checkpoint/described_model.hpp"
#include "tests/checkpoint/saved_model.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using checkpoint::StateKind;

constexpr const char* kGpt2 = R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 6,
    "n_embd": 8, "n_layer": 2, "n_head": 2, "bos_token_id": 3, "layer_norm_epsilon": 1e-6})";
constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 13, "hidden_size": 12,
    "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 1, "rope_theta": 5000.0, "max_position_embeddings": 32})";
constexpr const char* kMiniGpt = "minigpt:d=8,L=2,V=9,s=4,heads=2";

// A checkpoint of this model by three ranks; returns its folder.
std::string saved(const std::string& text, const test::Model& model, const std::string& folder) {
  checkpoint::RunState run;
  run.model = text;
  const auto elements = [&](std::size_t t, StateKind kind, const shard::Range& range) {
    return test::bytes_of(model, t, kind, range);
  };
  const auto plan = test::plan_of(model, folder, 9, 3, shard::Stage::kParameters);
  REQUIRE(test::save(model, plan, run, elements).has_value());
  return folder + "/step-00000009";
}

checkpoint::Exported exported(const std::string& folder, const std::string& out,
                              bool force = false) {
  const auto done = checkpoint::export_checkpoint(folder, out, force, test::quick_disk());
  if (!done) FAIL(format_error(done.error()));
  return *done;
}

TEST_CASE("an exported model is read back: the same network, the same weights") {
  for (const char* text : {kGpt2, kLlama}) {
    const test::TemporaryFolder folder;
    const network::NetworkSpec spec = test::described_model(text);
    const test::Model model = test::model_of(spec);
    const std::string out = folder.path() + "/model";
    const auto done = exported(saved(text, model, folder.path()), out);
    CHECK(done.step == 9);
    CHECK(done.zeros == 0);
    CHECK(done.dtype == "fp32");
    CHECK(test::names_in(out) == std::vector<std::string>{"config.json", "model.safetensors"});
    const auto again = formats::load_model(out);
    if (!again) FAIL(format_error(again.error()));
    CHECK(again->model_type == spec.model_type);
    CHECK(again->norm_eps == spec.norm_eps);
    CHECK(again->rope_theta == spec.rope_theta);
    CHECK(again->activation == spec.activation);
    CHECK(again->positions == spec.positions);
    CHECK(test::model_of(*again).tensors == model.tensors);
    auto weights =
        checkpoint::PretrainedWeights::open(out, *again, checkpoint::shapes_of(model.parameters));
    if (!weights) FAIL(format_error(weights.error()));
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      const shard::Range all{0, element_count(model.tensors[t])};
      const auto expected = test::bytes_of(model, t, StateKind::kWeight, all);
      std::vector<std::byte> got(expected.size());
      REQUIRE(weights->read(t, all, got).has_value());
      CHECK(got == expected);
    }
  }
}

TEST_CASE("a minigpt becomes a GPT-2 with zero biases") {
  const test::TemporaryFolder folder;
  const test::Model mini = test::model_of(test::described_model(kMiniGpt));
  const std::string out = folder.path() + "/model";
  const auto done = exported(saved(kMiniGpt, mini, folder.path()), out);
  CHECK(done.zeros == 2 * (24 + 8 + 32 + 8));
  const auto gpt2 = formats::load_model(out);
  if (!gpt2) FAIL(format_error(gpt2.error()));
  CHECK(gpt2->family == network::Family::kGpt2);
  CHECK(gpt2->activation == network::OpKind::kGelu);
  const test::Model model = test::model_of(*gpt2);
  auto weights =
      checkpoint::PretrainedWeights::open(out, *gpt2, checkpoint::shapes_of(model.parameters));
  if (!weights) FAIL(format_error(weights.error()));
  const auto table = checkpoint::weight_table(test::described_model(kMiniGpt));
  int compared = 0;
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    const shard::Range all{0, element_count(model.tensors[t])};
    std::vector<std::byte> got(static_cast<std::size_t>(all.size() * 4));
    REQUIRE(weights->read(t, all, got).has_value());
    const auto name = std::find_if(table->names.begin(), table->names.end(), [&](const auto& n) {
      return n.theirs == model.tensors[t].name;
    });
    std::vector<std::byte> expected(got.size());
    for (std::size_t m = 0; name != table->names.end() && m < mini.tensors.size(); ++m) {
      if (mini.tensors[m].name != name->ours) continue;
      expected = test::bytes_of(mini, m, StateKind::kWeight, all);
      ++compared;
    }
    CAPTURE(model.tensors[t].name);
    CHECK(got == expected);
  }
  CHECK(compared == static_cast<int>(mini.tensors.size()));
}

TEST_CASE("what exists is kept unless forced, and forcing touches the two files alone") {
  const test::TemporaryFolder folder;
  const test::Model model = test::model_of(test::described_model(kLlama));
  const std::string from = saved(kLlama, model, folder.path());
  const std::string out = folder.path() + "/model/";
  fs::create_directory(out);
  exported(from, out);
  test::overwrite(out + "config.json", "old");
  test::overwrite(out + "notes", "mine");
  const auto refused = checkpoint::export_checkpoint(from, out, false, test::quick_disk());
  REQUIRE(!refused.has_value());
  CHECK(refused.error().what == "exists and is not empty, expected a new folder");
  CHECK(test::file_text(out + "config.json") == "old");
  exported(from, out, true);
  CHECK(test::file_text(out + "config.json").find("LlamaForCausalLM") != std::string::npos);
  CHECK(test::file_text(out + "notes") == "mine");
  CHECK(test::names_in(folder.path()) == std::vector<std::string>{"model", "step-00000009"});
  const auto file = checkpoint::export_checkpoint(from, out + "notes", true, test::quick_disk());
  REQUIRE(!file.has_value());
  CHECK(file.error().what == "is a file, expected a folder or a new name");
}

class FullDisk final : public test::QuickDisk {
 public:
  explicit FullDisk(int at) : at_(at) {}
  ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
    return due() ? -1 : Disk::write(descriptor, data, bytes);
  }
  int fsync(int) override { return due() ? -1 : 0; }
  int rename(const char* from, const char* to) override {
    return due() ? -1 : Disk::rename(from, to);
  }

 private:
  bool due() {
    errno = ENOSPC;
    return ++calls_ == at_;
  }
  int at_;
  int calls_ = 0;
};

TEST_CASE("a disk that fails at any call leaves no half of a model") {
  const test::TemporaryFolder folder;
  const test::Model model = test::model_of(test::described_model(kLlama));
  const std::string from = saved(kLlama, model, folder.path());
  const std::string out = folder.path() + "/model";
  bool done = false;
  for (int call = 1; !done; ++call) {
    CAPTURE(call);
    FullDisk disk(call);
    const auto result = checkpoint::export_checkpoint(from, out, false, disk);
    done = result.has_value();
    if (!done) CHECK(result.error().code == ExitCode::kEnvironment);
    CHECK(fs::exists(out) == done);
    CHECK(!fs::exists(out + ".tmp"));
    CHECK(call < 100);
  }
}

TEST_CASE("damage is found on the way, and nothing is written") {
  const test::TemporaryFolder folder;
  const test::Model model = test::model_of(test::described_model(kLlama));
  const std::string from = saved(kLlama, model, folder.path());
  std::string bytes = test::file_text(from + "/rank-0001.bin");
  bytes[1] = static_cast<char>(bytes[1] ^ 2);
  test::overwrite(from + "/rank-0001.bin", bytes);
  const auto done =
      checkpoint::export_checkpoint(from, folder.path() + "/model", false, test::quick_disk());
  REQUIRE(!done.has_value());
  CHECK(done.error().where == from + "/rank-0001.bin");
  CHECK(!fs::exists(folder.path() + "/model"));
  const auto none = checkpoint::export_checkpoint(folder.path(), folder.path() + "/model", false,
                                                  test::quick_disk());
  REQUIRE(!none.has_value());
}

}  // namespace
}  // namespace plimsoll
