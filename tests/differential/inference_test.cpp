// Passes of inference: the calculated run is the measured one and the dry one, and what decode computes
// with the cache is what prefill computes without.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/base/error.hpp"
#include "plimsoll/engine/run/runner.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/inline_model.hpp"

#include "tests/differential/differ.hpp"
#include "tests/differential/family_configs.hpp"

namespace plimsoll {
namespace {

using network::DType;
using network::NetworkSpec;
using plan::Job;
using plan::Mode;
using plan::Precision;

NetworkSpec tiny_gpt() { return *formats::read_inline_model("minigpt:d=16,L=2,V=50,s=12,heads=2"); }

NetworkSpec tiny_llama() {
  return *formats::read_config(
      R"({"model_type": "llama", "hidden_size": 24, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40,
          "vocab_size": 61, "max_position_embeddings": 32, "tie_word_embeddings": false})",
      "config.json");
}

Job pass_of(Mode mode, std::int64_t batch, std::int64_t tokens, Precision precision) {
  Job job;
  job.mode = mode;
  job.batch = batch;
  job.sequence = tokens;
  job.precision = precision;
  return job;
}

void check_events(const NetworkSpec& spec, const Job& job) {
  const auto valid = plan::validate(job, spec);
  REQUIRE_MESSAGE(valid.has_value(), (valid ? "" : format_error(valid.error())));
  for (at::Device device : {at::Device(at::kCPU), at::Device(at::kMeta)}) {
    CAPTURE(device.str());
    CHECK(tests::text_of(tests::calculated_against(spec, job, device)) == "equal");
  }
}

// Decoders of every planned type; `body(spec, number)`.
template <class Body>
void for_each_decoder(int configs_per_type, Body body) {
  std::uint64_t seed = 100;
  int number = 0;
  for (const std::string& type : tests::family_types()) {
    tests::Chooser choose(++seed);
    for (int i = 0; i < configs_per_type; ++i) {
      const nlohmann::json config = tests::random_config(type, choose);
      const auto spec = formats::read_config(config.dump(), "config.json");
      REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : format_error(spec.error())));
      if (!spec->architecture.causal) continue;
      INFO(config.dump());
      body(*spec, number++);
    }
  }
}

// The last rows of what prefill left, as the first rows of decode's cache.
void hand_over(const engine::Runner& from, const engine::Runner& to) {
  for (const network::Buffer& b : to.network().buffers) {
    const at::Tensor filled = from.cache(b.name);
    const at::Tensor cache = to.cache(b.name);
    const std::int64_t rows = cache.size(2) - 1;
    if (rows == 0) continue;
    cache.narrow(2, 0, rows).copy_(filled.narrow(2, filled.size(2) - rows, rows));
  }
}

at::Tensor prefilled(const NetworkSpec& spec, const Job& job, const at::Tensor& ids,
                     const engine::Runner* next) {
  const network::Network net = network::build_network(spec, job.build_options());
  engine::Runner runner(net, job, {});
  runner.input(network::InputKind::kTokens).copy_(ids);
  at::Tensor logits = runner.infer();
  if (next != nullptr) hand_over(runner, *next);
  return logits;
}

// Logits of the last of `tokens` positions, read at once and read one by one behind the others.
void check_decode_continues(const NetworkSpec& spec, std::int64_t tokens) {
  const std::int64_t batch = 2;
  const Job whole = pass_of(Mode::kPrefill, batch, tokens, Precision::kFp64);
  const Job before = pass_of(Mode::kPrefill, batch, tokens - 1, Precision::kFp64);
  const Job last = pass_of(Mode::kDecode, batch, tokens, Precision::kFp64);
  at::manual_seed(5);
  const at::Tensor ids = at::randint(spec.vocabulary, {batch, tokens}, at::kLong);
  const at::Tensor expected = prefilled(spec, whole, ids, nullptr);
  const network::Network net = network::build_network(spec, last.build_options());
  engine::Runner runner(net, last, {});
  prefilled(spec, before, ids.narrow(1, 0, tokens - 1), &runner);
  runner.input(network::InputKind::kTokens).copy_(ids.narrow(1, tokens - 1, 1));
  const at::Tensor seen = runner.infer();
  REQUIRE(seen.sizes() == expected.sizes());
  const double size = expected.abs().max().item<double>();
  // Sums of doubles in another order.
  CHECK((seen - expected).abs().max().item<double>() <= 1e-12 * size);
  CHECK(size > 0);
}

}  // namespace

TEST_CASE("prefill and decode of a GPT and a Llama: calculated = dry-run = measured, every event") {
  tests::prepare_library();
  for (const NetworkSpec& spec : {tiny_gpt(), tiny_llama()}) {
    for (Mode mode : {Mode::kPrefill, Mode::kDecode}) {
      for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kMixed,
                                  Precision::kAutocast, Precision::kFp64}) {
        for (std::int64_t batch : {1, 3}) {
          for (std::int64_t tokens : {1, 2, 12}) {
            CAPTURE(spec.title);
            CAPTURE(network::name(mode));
            CAPTURE(plan::name(precision));
            CAPTURE(batch);
            CAPTURE(tokens);
            check_events(spec, pass_of(mode, batch, tokens, precision));
          }
        }
      }
    }
  }
}

TEST_CASE("caches of every dtype: calculated = dry-run = measured, every event") {
  tests::prepare_library();
  for (DType dtype :
       {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat8, DType::kInt8}) {
    for (Mode mode : {Mode::kPrefill, Mode::kDecode}) {
      for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
        for (auto kernel : {network::AttentionKernel::kFlash, network::AttentionKernel::kMath}) {
          CAPTURE(network::name(dtype));
          CAPTURE(network::name(mode));
          CAPTURE(plan::name(precision));
          Job job = pass_of(mode, 2, 12, precision);
          job.kv_dtype = dtype;
          job.attention = kernel;
          check_events(tiny_gpt(), job);
          check_events(tiny_llama(), job);
        }
      }
    }
  }
}

TEST_CASE("every family of decoders: calculated = dry-run = measured, every event") {
  tests::prepare_library();
  for_each_decoder(3, [](const NetworkSpec& spec, int number) {
    const std::int64_t tokens = std::min<std::int64_t>(spec.positions, 7 + number % 5);
    const auto precision = number % 2 == 0 ? Precision::kFp32 : Precision::kBf16;
    for (Mode mode : {Mode::kPrefill, Mode::kDecode}) {
      CAPTURE(network::name(mode));
      check_events(spec, pass_of(mode, 1 + number % 3, tokens, precision));
    }
  });
}

TEST_CASE("decode behind a prefill of all tokens but one gives the logits of a prefill of all") {
  tests::prepare_library();
  check_decode_continues(tiny_gpt(), 2);
  check_decode_continues(tiny_gpt(), 12);
  check_decode_continues(tiny_llama(), 12);
  for_each_decoder(3, [](const NetworkSpec& spec, int number) {
    if (spec.positions < 2 || spec.width < 2) return;  // norms of one number are 0
    check_decode_continues(spec, std::min<std::int64_t>(spec.positions, 6 + number % 6));
  });
}

}  // namespace plimsoll
