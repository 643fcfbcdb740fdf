// plimsoll train --init: a run that begins with exported weights has exactly these, and what is not this
// model's is refused before anything is made. What ranks compute with them: dist/init_ranks.cpp.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/safetensors_reader.hpp"
#include "plimsoll/checkpoint/safetensors_writer.hpp"

#include "tests/cli/call.hpp"
#include "tests/dist/run_ranks.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;
using Bytes = std::vector<std::byte>;

// Sizes that no number of ranks divides; every byte is a token.
const std::string kMiniGpt = "minigpt:d=10,L=2,V=257,s=8,heads=2";
const std::string kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 257, "n_positions": 8, "n_embd": 9,
    "n_layer": 2, "n_head": 3, "n_inner": 14})";
const std::string kLlama = R"({"model_type": "llama", "vocab_size": 257, "hidden_size": 12,
    "intermediate_size": 17, "num_hidden_layers": 2, "num_attention_heads": 3,
    "num_key_value_heads": 1, "max_position_embeddings": 8, "tie_word_embeddings": false})";

void expect_success(const test::Call& call) {
  CAPTURE(call.err);
  REQUIRE(call.code == 0);
}

// Runs that share a text, and the exported weights of a first one.
class Runs {
 public:
  explicit Runs(const std::string& model) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the quick brown fox jumps over the lazy dog. ";
    text_ = folder_.write("text", text);
    model_ = model.starts_with('{') ? folder_.write("config.json", model) : model;
    expect_success(train("first", {"--steps", "3", "--lr", "1e-2", "--ranks", "2", "--zero", "3"}));
    exported("first");
  }

  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string weights(const std::string& run) const { return path(run + "-weights"); }
  const std::string& model() const { return model_; }

  test::Call train(const std::string& run, const Words& more) const {
    Words words = {"train", model_, "--data", text_, "--out", path(run), "--held-out", "0.2"};
    words.insert(words.end(), more.begin(), more.end());
    return test::call(words);
  }
  // One step that changes nothing: the rate is 0 in fp32.
  test::Call train_nothing(const std::string& run, const std::string& init,
                           const Words& more) const {
    Words words = {"--init", init, "--steps", "1", "--lr", "1e-300", "--optimizer", "sgd"};
    words.insert(words.end(), more.begin(), more.end());
    return train(run, words);
  }
  void exported(const std::string& run) const {
    expect_success(test::call({"export", path(run), "--out", weights(run)}));
  }

  // Line `i` of the metrics; negative: from the end.
  json line(const std::string& run, int i) const {
    std::vector<json> lines;
    std::ifstream file(path(run) + "/metrics.jsonl");
    for (std::string text; std::getline(file, text);) lines.push_back(json::parse(text));
    return lines.at(i < 0 ? lines.size() - static_cast<std::size_t>(-i)
                          : static_cast<std::size_t>(i));
  }
  const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
  std::string text_;
  std::string model_;
};

struct Tensors {
  std::vector<checkpoint::OutputTensor> list;
  std::vector<Bytes> data;
  std::map<std::string, Bytes> by_name() const {
    std::map<std::string, Bytes> result;
    for (std::size_t t = 0; t < list.size(); ++t) result[list[t].name] = data[t];
    return result;
  }
};

Tensors tensors_of(const std::string& path) {
  auto reader = checkpoint::SafetensorsReader::open(path);
  if (!reader) FAIL(format_error(reader.error()));
  Tensors tensors;
  for (const formats::TensorEntry& entry : reader->tensors()) {
    REQUIRE(entry.dtype == "F32");
    tensors.list.push_back({entry.name, network::DType::kFloat32, entry.shape});
    tensors.data.emplace_back(static_cast<std::size_t>(entry.bytes));
    REQUIRE(reader->read(entry, {0, entry.bytes}, tensors.data.back()).has_value());
  }
  return tensors;
}

// Tensors [first, last) of them.
void write(const std::string& path, const Tensors& tensors, std::size_t first, std::size_t last) {
  const auto begin = tensors.list.begin();
  auto writer = checkpoint::SafetensorsWriter::create(
      path,
      {begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)});
  REQUIRE(writer.has_value());
  for (std::size_t t = first; t < last; ++t) REQUIRE(writer->write(tensors.data[t]).has_value());
  REQUIRE(writer->finish().has_value());
}

// bf16 is the upper half of fp32. Returns the lower half of what is widened as zeros.
Tensors upper_halves(const Tensors& wide, bool widened) {
  Tensors result = wide;
  for (std::size_t t = 0; t < wide.list.size(); ++t) {
    if (!widened) result.list[t].dtype = network::DType::kBFloat16;
    result.data[t].clear();
    for (std::size_t i = 0; i < wide.data[t].size(); i += 4) {
      const Bytes lower(widened ? 2 : 0);
      result.data[t].insert(result.data[t].end(), lower.begin(), lower.end());
      result.data[t].insert(result.data[t].end(),
                            wide.data[t].begin() + static_cast<std::ptrdiff_t>(i) + 2,
                            wide.data[t].begin() + static_cast<std::ptrdiff_t>(i) + 4);
    }
  }
  return result;
}

// What is left of `what` when nothing was to be made.
void check_refused(const Runs& runs, const Words& more, const std::string& says) {
  Words words = {"--steps", "1", "--lr", "1e-3"};
  words.insert(words.end(), more.begin(), more.end());
  const test::Call call = runs.train("refused", words);
  CAPTURE(says);
  CAPTURE(call.err);
  CHECK(call.code == 2);
  CHECK(call.out.empty());
  CHECK(call.err.find(says) != std::string::npos);
  CHECK_FALSE(fs::exists(runs.path("refused")));
}

}  // namespace

TEST_CASE("exported and read again: the same bits and the same losses at every stage") {
  for (const std::string& model : {kMiniGpt, kGpt2, kLlama}) {
    CAPTURE(model);
    const Runs runs(model);
    const auto given = tensors_of(runs.weights("first")).by_name();
    const json evaluated = runs.line("first", -1)["evaluation"];
    json loss;
    std::vector<Words> jobs = {{"--ranks", "2", "--zero", "3"},
                               {"--ranks", "1", "--zero", "0", "--accumulate", "2"}};
    if (model == kGpt2) {
      jobs.push_back({"--ranks", "2", "--zero", "0"});
      jobs.push_back({"--ranks", "2", "--zero", "1"});
      jobs.push_back({"--ranks", "2", "--zero", "2"});
      jobs.push_back({"--ranks", "1", "--zero", "3", "--accumulate", "2"});
    }
    for (const Words& job : jobs) {
      const std::string run = "ranks " + job[1] + " stage " + job[3];
      CAPTURE(run);
      const test::Call call = runs.train_nothing(run, runs.weights("first"), job);
      expect_success(call);
      CHECK(call.err.find("weights of " + runs.weights("first")) != std::string::npos);
      runs.exported(run);
      CHECK(tensors_of(runs.weights(run)).by_name() == given);
      if (loss.is_null()) loss = runs.line(run, 0)["loss"];
      CHECK(runs.line(run, 0)["loss"] == loss);
      if (job[1] == "2") CHECK(runs.line(run, -1)["evaluation"] == evaluated);
    }
  }
}

TEST_CASE("bf16 files, whole and in shards: fp32 weights and masters are the widened values") {
  for (const std::string& model : {kGpt2, kLlama}) {
    CAPTURE(model);
    const Runs runs(model);
    const Tensors wide = tensors_of(runs.weights("first"));
    const Tensors narrow = upper_halves(wide, false);
    const auto expected = upper_halves(wide, true).by_name();
    const std::string whole = runs.path("narrow.safetensors");
    write(whole, narrow, 0, narrow.list.size());
    const std::string shards = runs.path("shards");
    fs::create_directory(shards);
    write(shards + "/a.safetensors", narrow, 0, 5);
    write(shards + "/b.safetensors", narrow, 5, narrow.list.size());
    json index;
    for (std::size_t t = 0; t < narrow.list.size(); ++t) {
      index["weight_map"][narrow.list[t].name] = t < 5 ? "a.safetensors" : "b.safetensors";
    }
    const std::string index_file = shards + "/model.safetensors.index.json";
    std::ofstream(index_file) << index;
    int number = 0;
    const auto check = [&](const std::string& init, const Words& job) {
      const std::string run = "narrow " + std::to_string(++number);
      CAPTURE(run);
      expect_success(runs.train_nothing(run, init, job));
      runs.exported(run);
      CHECK(tensors_of(runs.weights(run)).by_name() == expected);
    };
    check(whole, {"--ranks", "3", "--zero", "3"});
    check(shards, {"--ranks", "2", "--zero", "2", "--precision", "mixed"});
    // A folder of a model may hold its weights in another form, too: the index says which files count.
    fs::copy_file(whole, shards + "/consolidated.safetensors");
    check_refused(runs, {"--init", shards}, "is in an earlier file too");
    check(index_file, {"--precision", "mixed"});
  }
}

TEST_CASE("ranks compute the same bits from the same weights, and read no more than they hold") {
  for (const std::string& model : {kMiniGpt, kGpt2, kLlama}) {
    CAPTURE(model);
    const Runs runs(model);
    for (const std::string precision : {"fp32", "mixed"}) {
      std::string expected;
      std::vector<Words> jobs = {{"1", "0"}, {"3", "3"}};
      if (model == kGpt2) jobs.insert(jobs.end(), {{"1", "3"}, {"2", "1"}, {"3", "2"}});
      for (const Words& job : jobs) {
        CAPTURE(job[0]);
        CAPTURE(job[1]);
        const std::string out = runs.path("logits");
        test::Started ranks({PLIMSOLL_ENGINE_RANKS, "init_ranks", job[0], job[1], precision,
                             runs.model(), runs.weights("first"), out},
                            {});
        const test::Outcome outcome = ranks.finish(std::chrono::seconds(60));
        CAPTURE(outcome.err);
        REQUIRE(outcome.code == 0);
        for (int rank = 0; rank < std::stoi(job[0]); ++rank) {
          std::ifstream file(out + "." + std::to_string(rank), std::ios::binary);
          const std::string logits((std::istreambuf_iterator<char>(file)), {});
          CHECK(logits.size() == 2 * 7 * 257 * sizeof(double));
          if (expected.empty()) expected = logits;
          CHECK(logits == expected);
        }
      }
    }
  }
}

TEST_CASE("adapters begin as they would beside random weights; a run goes on without --init") {
  const Runs runs(kLlama);
  const std::string init = runs.weights("first");
  const test::Call call =
      runs.train("adapted", {"--init", init, "--steps", "2", "--lr", "1e-3", "--lora", "rank=2",
                             "--ranks", "2", "--zero", "3"});
  expect_success(call);
  // The second matrices are zeros at first, so the loss is that of the weights alone.
  expect_success(runs.train_nothing("plain", init, {"--ranks", "2"}));
  CHECK(runs.line("adapted", 0)["loss"] == runs.line("plain", 0)["loss"]);
  expect_success(
      runs.train("adapted", {"--steps", "3", "--lr", "1e-3", "--lora", "rank=2", "--resume"}));
}

TEST_CASE("what is not this model's is refused, and nothing is left") {
  const Runs runs(kGpt2);
  const std::string init = runs.weights("first");
  check_refused(runs, {"--init", ""}, "[--init] is missing, expected");
  check_refused(runs, {"--init", init, "--resume"},
                "[--init] together with --resume, expected one of them");
  check_refused(runs, {"--init", runs.path("nowhere")}, "nowhere");
  check_refused(runs, {"--init", runs.path("first")}, "has no .safetensors file");
  const Runs other(kLlama);
  check_refused(runs, {"--init", other.weights("first")}, "has no tensor transformer.wte.weight");
  check_refused(other, {"--init", init}, "has no tensor model.embed_tokens.weight");

  Tensors tensors = tensors_of(init);
  const auto refused = [&](const Tensors& changed, const std::string& says) {
    const std::string file = runs.path("changed.safetensors");
    write(file, changed, 0, changed.list.size());
    check_refused(runs, {"--init", file}, says);
  };
  Tensors changed = tensors;
  changed.list.push_back({"transformer.extra", network::DType::kFloat32, {2}});
  changed.data.emplace_back(8);
  refused(changed, "transformer.extra is no parameter of");
  changed = tensors;
  std::swap(changed.list[0].shape[0], changed.list[0].shape[1]);
  refused(changed, "expected [257, 9]");
  changed = tensors;
  changed.list.pop_back();
  changed.data.pop_back();
  refused(changed, "has no tensor ");
  fs::resize_file(init + "/model.safetensors", fs::file_size(init + "/model.safetensors") - 1);
  check_refused(runs, {"--init", init}, "model.safetensors");
}

TEST_CASE("a minigpt has no biases: only zeros may stand for them") {
  const Runs runs(kMiniGpt);
  Tensors tensors = tensors_of(runs.weights("first"));
  for (std::size_t t = 0; t < tensors.list.size(); ++t) {
    if (tensors.list[t].name == "transformer.h.1.mlp.c_fc.bias") tensors.data[t][3] = std::byte{1};
  }
  const std::string file = runs.path("biased.safetensors");
  write(file, tensors, 0, tensors.list.size());
  check_refused(runs, {"--init", file},
                "transformer.h.1.mlp.c_fc.bias is not zero, expected zeros");
}

TEST_CASE("a checkpoint knows its model however it is spelled") {
  const test::TemporaryFolder folder;
  const std::string text = folder.write("text", std::string(400, 'x'));
  const auto train = [&](const std::string& model, const Words& more,
                         const std::string& run = "/run") {
    Words words = {"train", model, "--data", text, "--lr", "1e-3", "--out", folder.path() + run};
    words.insert(words.end(), more.begin(), more.end());
    return test::call(words);
  };
  const std::string config = folder.write("a.json", kLlama);
  json document = json::parse(kLlama);
  const std::string spelled = folder.write("b.json", document.dump(4) + "\n\n");
  document["rope_theta"] = 5000.0;
  const std::string turned = folder.write("c.json", document.dump());
  expect_success(train(config, {"--steps", "1"}));
  expect_success(train(spelled, {"--steps", "2", "--resume"}));
  const test::Call refused = train(turned, {"--steps", "3", "--resume"});
  CHECK(refused.code == 2);
  CAPTURE(refused.err);
  CHECK(refused.err.find("[--resume] MODEL has \"rope_theta\": 5000.0, expected \"rope_theta\": "
                         "10000.0 as in the checkpoint") != std::string::npos);
  // A type that transformers' spelling is not written for.
  json qwen = json::parse(kLlama);
  qwen["model_type"] = "qwen2";
  const auto resume_qwen = [&] {
    return train(folder.write("q.json", qwen.dump()), {"--steps", "2", "--resume"}, "/qwen");
  };
  expect_success(train(folder.write("q.json", qwen.dump(2)), {"--steps", "1"}, "/qwen"));
  expect_success(resume_qwen());
  qwen["rope_theta"] = 5000.0;
  CHECK(resume_qwen().err.find("MODEL computes another function") != std::string::npos);
  // The checkpoint needs the file no more.
  fs::remove(config);
  fs::remove(spelled);
  expect_success(test::call({"export", folder.path() + "/run", "--out", folder.path() + "/out"}));
}

}  // namespace plimsoll
