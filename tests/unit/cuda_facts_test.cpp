// What CUDA's kernels are taken to choose, save and need; sizes computed by hand from the sources
// that the facts name.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "plimsoll/formats/inline_model.hpp"
#include "plimsoll/network/library_facts.hpp"
#include "plimsoll/network/rules/attention.hpp"
#include "plimsoll/plan/memory.hpp"
#include "plimsoll/plan/plan.hpp"

namespace plimsoll::test {
namespace {

using network::AttentionKernel;
using network::Backend;
using network::DType;
using network::rules::chosen_kernel;
using network::rules::kernel_exists;
using timeline::Phase;
using timeline::Tag;

// One layer, 2 heads of 32; 40 rows are padded to 64 (memory-efficient) and to 128 (flash).
network::NetworkSpec tiny() {
  auto spec = formats::read_inline_model("minigpt:d=64,L=1,V=32,s=40,heads=2");
  REQUIRE(spec.has_value());
  return *spec;
}

plan::Job cuda_job(std::int64_t batch, plan::Precision precision) {
  plan::Job job;
  job.batch = batch;
  job.sequence = 40;
  job.backend = Backend::kCuda;
  job.precision = precision;
  return job;
}

timeline::Timeline run(const network::NetworkSpec& spec, const plan::Job& job) {
  plan::WalkOptions options;
  options.steps = 1;
  return plan::walk_timeline(network::build_network(spec, job.build_options()), job, options);
}

// Bytes of the blocks with this tag that a phase allocates, in order.
std::vector<std::int64_t> scratch(const timeline::Timeline& timeline, Phase phase, Tag tag) {
  std::vector<std::int64_t> bytes;
  Phase now = Phase::kModel;
  for (const timeline::Event& event : timeline.events) {
    if (event.kind == timeline::EventKind::kBeginPhase) now = event.phase.phase;
    const bool wanted = event.kind == timeline::EventKind::kAllocate && event.tag == tag;
    if (wanted && now == phase) bytes.push_back(event.bytes);
  }
  return bytes;
}

using Sizes = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("every fact of both backends has a value, an evidence and a source") {
  for (const Backend backend : {Backend::kCpu, Backend::kCuda}) {
    const auto facts = network::fact_list(backend);
    CHECK(facts.size() >= 7);
    for (const network::Fact& fact : facts) {
      CAPTURE(fact.what);
      CHECK_FALSE(fact.what.empty());
      CHECK_FALSE(fact.value.empty());
      CHECK_FALSE(fact.source.empty());
    }
  }
  const auto cuda = network::fact_list(Backend::kCuda);
  CHECK(std::any_of(cuda.begin(), cuda.end(), [](const network::Fact& fact) {
    return fact.evidence == network::Evidence::kAssumed;
  }));
}

TEST_CASE("which attention kernel a library takes by itself") {
  const network::LibraryFacts cpu = network::cpu_facts();
  const network::LibraryFacts cuda = network::cuda_facts();
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
    CHECK(chosen_kernel(cpu, {dtype}) == AttentionKernel::kFlash);
    CHECK(chosen_kernel(cpu, {dtype, /*dropout=*/true}) == AttentionKernel::kMath);
    CHECK(chosen_kernel(cpu, {dtype, false, /*grouped=*/true}) == AttentionKernel::kFlash);
  }
  for (const bool dropout : {false, true}) {
    CHECK(chosen_kernel(cuda, {DType::kBFloat16, dropout}) == AttentionKernel::kFlash);
    CHECK(chosen_kernel(cuda, {DType::kBFloat16, dropout, true}) == AttentionKernel::kFlash);
    CHECK(chosen_kernel(cuda, {DType::kFloat32, dropout}) == AttentionKernel::kEfficient);
    CHECK(chosen_kernel(cuda, {DType::kFloat32, dropout, true}) == AttentionKernel::kMath);
    CHECK(chosen_kernel(cuda, {DType::kFloat64, dropout}) == AttentionKernel::kMath);
  }
}

TEST_CASE("which attention kernels exist at all") {
  const network::LibraryFacts cpu = network::cpu_facts();
  const network::LibraryFacts cuda = network::cuda_facts();
  CHECK_FALSE(kernel_exists(cpu, AttentionKernel::kEfficient, {DType::kFloat32}));
  CHECK_FALSE(kernel_exists(cuda, AttentionKernel::kFlash, {DType::kFloat32}));
  CHECK_FALSE(kernel_exists(cuda, AttentionKernel::kEfficient, {DType::kFloat64}));
  CHECK(kernel_exists(cuda, AttentionKernel::kEfficient, {DType::kBFloat16}));
  CHECK(kernel_exists(cuda, AttentionKernel::kMath, {DType::kFloat64}));
  // CUDA's flash kernel takes no mask but its own causal one.
  CHECK(kernel_exists(cpu, AttentionKernel::kFlash, {DType::kBFloat16, false, false, true}));
  CHECK_FALSE(kernel_exists(cuda, AttentionKernel::kFlash, {DType::kBFloat16, false, false, true}));
  CHECK(chosen_kernel(cuda, {DType::kBFloat16, false, false, true}) == AttentionKernel::kEfficient);
  CHECK(chosen_kernel(cuda, {DType::kBFloat16, false, true, true}) == AttentionKernel::kMath);
}

TEST_CASE("cards before Ampere have no flash kernel and no bf16 in the memory-efficient one") {
  const network::LibraryFacts turing = network::cuda_facts({75});
  CHECK(chosen_kernel(turing, {DType::kBFloat16}) == AttentionKernel::kMath);
  CHECK(chosen_kernel(turing, {DType::kFloat16}) == AttentionKernel::kEfficient);
  CHECK(chosen_kernel(turing, {DType::kFloat32}) == AttentionKernel::kEfficient);
  CHECK(chosen_kernel(network::cuda_facts({80}), {DType::kBFloat16}) == AttentionKernel::kFlash);
}

TEST_CASE("a job names a kernel that does not exist") {
  plan::Job job = cuda_job(1, plan::Precision::kFp32);
  job.attention = AttentionKernel::kFlash;
  CHECK_FALSE(plan::validate(job, tiny()).has_value());
  job.precision = plan::Precision::kBf16;
  CHECK(plan::validate(job, tiny()).has_value());
  network::NetworkSpec grouped = tiny();
  grouped.family = network::Family::kLlama;
  grouped.kv_heads = 1;
  job.attention = AttentionKernel::kEfficient;
  const auto refused = plan::validate(job, grouped);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().what.find("expected flash or math") != std::string::npos);
}

TEST_CASE("flash attention's backward sums rows and dq in fp32 over whole tiles") {
  const timeline::Timeline timeline = run(tiny(), cuda_job(3, plan::Precision::kBf16));
  const Sizes expected = {3 * 2 * 128 * 4, 3 * 128 * 2 * 32 * 4};
  CHECK(scratch(timeline, Phase::kBackward, Tag::kWorkspace) == expected);
  CHECK(scratch(timeline, Phase::kBackward, Tag::kAssumedWorkspace) == Sizes{});
}

TEST_CASE("grouped key heads get gradients of their own in flash attention's backward") {
  network::NetworkSpec spec = tiny();
  spec.family = network::Family::kLlama;
  spec.architecture = network::Architecture();
  spec.activation = network::OpKind::kSilu;
  spec.heads = 4;
  spec.head_dim = 16;
  spec.kv_heads = 2;
  spec.feed_forward = 96;
  spec.positions = 40;
  const timeline::Timeline timeline = run(spec, cuda_job(3, plan::Precision::kBf16));
  const Sizes expected = {3 * 4 * 128 * 4, 3 * 128 * 4 * 32 * 4, 3 * 40 * 4 * 16 * 2,
                          3 * 40 * 4 * 16 * 2};
  CHECK(scratch(timeline, Phase::kBackward, Tag::kWorkspace) == expected);
}

TEST_CASE(
    "the memory-efficient backward: gradient times output, its sums, and assumed tiles of dq") {
  const timeline::Timeline timeline = run(tiny(), cuda_job(3, plan::Precision::kFp32));
  const Sizes expected = {3 * 40 * 2 * 32 * 4, 3 * 2 * 40 * 4, 3 * 2 * 40 * 4};
  CHECK(scratch(timeline, Phase::kBackward, Tag::kWorkspace) == expected);
  const Sizes assumed = {3 * 2 * (64 * 64 * 4 + 16)};
  CHECK(scratch(timeline, Phase::kBackward, Tag::kAssumedWorkspace) == assumed);
}

TEST_CASE("embedding's backward sorts from 3,073 indices on") {
  const auto sizes = [](std::int64_t batch) {
    plan::Job job = cuda_job(batch, plan::Precision::kBf16);
    job.attention = AttentionKernel::kFlash;
    Sizes all = scratch(run(tiny(), job), Phase::kBackward, Tag::kWorkspace);
    all.erase(all.begin(), all.begin() + 2);  // attention's
    return all;
  };
  CHECK(sizes(76) == Sizes{});  // 3,040
  const std::int64_t n = 77 * 40;
  const std::int64_t pieces = n / 10 + 32;
  CHECK(sizes(77) ==
        Sizes{8 * n, 8 * n, 8 * n, 8 * n, 8, 8 * 32, 8 * 32, 8, 8 * pieces, pieces * 64 * 4});
}

TEST_CASE("torch.optim on CUDA updates lists: one temporary of every parameter") {
  plan::Job job = cuda_job(1, plan::Precision::kFp32);
  job.optimizer_impl = plan::OptimizerImpl::kTorchPython;
  for (const plan::Optimizer optimizer :
       {plan::Optimizer::kAdamW, plan::Optimizer::kSgd, plan::Optimizer::kSgdMomentum}) {
    job.optimizer = optimizer;
    const auto made = plan::make_plan(tiny(), job);
    REQUIRE(made.has_value());
    const timeline::PhaseFigures& step = made->steady.phases.back();
    CHECK(step.peak - step.start == made->posts.parameters);
    CHECK(step.end == step.start);
  }
  job.optimizer = plan::Optimizer::kAdamW;
  job.optimizer_impl = plan::OptimizerImpl::kTorchFused;
  const auto fused = plan::make_plan(tiny(), job);
  REQUIRE(fused.has_value());
  CHECK(fused->steady.phases.back().peak == fused->steady.phases.back().start);
}

TEST_CASE("libraries' workspaces: two of cuBLAS by card, cuBLASLt's where a product has a bias") {
  CHECK(network::cuda_facts({86}).blas_workspace == 8'519'680);
  CHECK(network::cuda_facts({90}).blas_workspace == 32 << 20);
  CHECK(network::cuda_facts().blas_workspace_evidence == network::Evidence::kAssumed);
  const plan::Job job = cuda_job(1, plan::Precision::kFp32);
  network::NetworkSpec biased = tiny();
  biased.family = network::Family::kGpt2;
  biased.attention_bias = biased.mlp_bias = true;
  const auto bytes = [&](const network::NetworkSpec& spec) {
    return plan::library_blocks(network::build_network(spec, job.build_options()), job).bytes();
  };
  CHECK(bytes(tiny()) == 2 * 8'519'680);
  CHECK(bytes(biased) == 2 * 8'519'680 + (1 << 20));
}

TEST_CASE("a plan on CUDA says which bytes are only assumed, and that a card is missing") {
  const auto made = plan::make_plan(tiny(), cuda_job(3, plan::Precision::kFp32));
  REQUIRE(made.has_value());
  const plan::Memory& memory = made->memory;
  CHECK(memory.assumed_bytes >= 2 * 8'519'680);  // the card is not known
  CHECK_FALSE(memory.device_used.bytes.has_value());
  CHECK(memory.device_used.reason == "no device was asked for");
  REQUIRE(memory.lines.size() == 4);
  CHECK(memory.lines[2].name == "library_workspace");
  CHECK(*memory.lines[2].size.bytes == 2 * 8'519'680);
}

TEST_CASE("with a card, device used is reserved and its context; a full card is found") {
  plan::Job job = cuda_job(3, plan::Precision::kFp32);
  hardware::Device card = hardware::device_of_size(std::int64_t{1} << 30, "1GiB");
  card.context = {300 << 20, Evidence::kSource, "this test"};
  card.compute_capability = {90, Evidence::kSource, "this test"};
  job.device = std::make_shared<const hardware::Device>(card);
  const auto fits = plan::make_plan(tiny(), job);
  REQUIRE(fits.has_value());
  REQUIRE(fits->memory.device_used.bytes.has_value());
  CHECK(*fits->memory.device_used.bytes == *fits->memory.reserved.bytes + (300 << 20));
  CHECK(*fits->memory.lines[2].size.bytes == 2 * (32 << 20));
  CHECK(fits->memory.lines[2].evidence == Evidence::kSource);
  CHECK_FALSE(fits->memory.out_of_memory.has_value());
  job.reserve = (std::int64_t{1} << 30) - (60 << 20);  // 60 MiB are left
  const auto full = plan::make_plan(tiny(), job);
  REQUIRE(full.has_value());
  REQUIRE(full->memory.out_of_memory.has_value());
  CHECK(full->memory.out_of_memory->at.phase.phase == Phase::kBackward);
  CHECK(full->memory.out_of_memory->request == 32 << 20);
  CHECK(*full->memory.reserved.bytes == *fits->memory.reserved.bytes);
}

}  // namespace plimsoll::test
