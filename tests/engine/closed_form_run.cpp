#include "tests/engine/closed_form_run.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "plimsoll/engine/zero/network_shards.hpp"
#include "plimsoll/network/families/families.hpp"

namespace plimsoll::tests {
namespace {

using nlohmann::json;

std::uint64_t splitmix64(std::uint64_t x) {
  std::uint64_t z = x + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::uint32_t fnv1a(const std::string& name) {
  std::uint32_t hash = 2166136261U;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// Uniform with standard deviation 0.02, one rounding to float; norm weights are 1 + that.
at::Tensor closed_form_weights(const std::string& name, at::IntArrayRef shape, bool norm) {
  constexpr double kScale = 0.034641016151377546 / 8388608.0;
  const std::uint64_t seed = static_cast<std::uint64_t>(fnv1a(name)) << 32;
  at::Tensor t = at::empty(shape, at::kFloat);
  float* data = t.data_ptr<float>();
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const std::uint64_t bits = splitmix64(seed + static_cast<std::uint64_t>(i)) >> 40;
    const double v = (static_cast<double>(bits) - 8388608.0) * kScale;
    data[i] = static_cast<float>(norm ? 1.0 + v : v);
  }
  return t;
}

std::int64_t token(std::uint64_t position, std::uint64_t vocabulary) {
  std::uint64_t t = splitmix64(position / 3 + 12345) % vocabulary;
  for (std::uint64_t k = 0; k < position % 3; ++k) t = (t * 5 + 7) % vocabulary;
  return static_cast<std::int64_t>(t);
}

// transformers' names of our Llama network -> the recorded runs' names.
std::string reference_name(std::string name) {
  static const std::vector<std::pair<std::string, std::string>> kRenames = {
      {"model.embed_tokens", "tok"},
      {"model.layers.", "blocks."},
      {"self_attn.q_proj", "attn.wq"},
      {"self_attn.k_proj", "attn.wk"},
      {"self_attn.v_proj", "attn.wv"},
      {"self_attn.o_proj", "attn.wo"},
      {"mlp.gate_proj", "mlp.w1"},
      {"mlp.up_proj", "mlp.w3"},
      {"mlp.down_proj", "mlp.w2"},
      {"input_layernorm", "norm1"},
      {"post_attention_layernorm", "norm2"},
      {"model.norm", "norm"},
      {"lm_head", "head"}};
  for (const auto& [ours, theirs] : kRenames) {
    const std::size_t at = name.find(ours);
    if (at != std::string::npos) name.replace(at, ours.size(), theirs);
  }
  return name;
}

network::NetworkSpec spec_of(const json& c) {
  network::NetworkSpec spec;
  const bool gpt = c["arch"] == "gpt";
  spec.family = gpt ? network::Family::kMiniGpt : network::Family::kLlama;
  if (gpt) spec.architecture = network::gpt_architecture();
  spec.width = c["dim"];
  spec.layers = c["layers"];
  spec.heads = c["heads"];
  spec.kv_heads = c["kv_heads"];
  spec.head_dim = spec.width / spec.heads;
  spec.feed_forward = c["ffn"];
  spec.vocabulary = c["vocab"];
  spec.positions = c["seq"];
  spec.tied_head = gpt;
  spec.activation = gpt ? network::OpKind::kGelu : network::OpKind::kSilu;
  spec.norm_eps = 1e-5;
  return spec;
}

plan::Job job_of(const json& c, const Sharing& sharing) {
  plan::Job job;
  job.batch = c["global_batch"];
  if (sharing.world != nullptr) {
    job.ranks = sharing.world->size();
    job.batch /= job.ranks;
    job.stage = sharing.stage;
    job.prefetch = sharing.prefetch;
  }
  job.sequence = c["seq"];
  job.token_first = true;  // Python evaluates tok(ids) + pos(ids) from the left
  job.precision = c["dtype"] == "fp64" ? plan::Precision::kFp64 : plan::Precision::kFp32;
  return job;
}

engine::RunnerOptions options_of(const json& c, const Sharing& sharing) {
  engine::RunnerOptions options;
  options.world = sharing.world;
  options.optimizer.learning_rate = c["lr"];
  options.optimizer.beta1 = c["betas"][0];
  options.optimizer.beta2 = c["betas"][1];
  options.optimizer.epsilon = c["eps"];
  options.optimizer.weight_decay = c["weight_decay"];
  return options;
}

}  // namespace

void use_kernels_of_the_record() { setenv("ATEN_CPU_CAPABILITY", "avx2", 0); }

struct ClosedFormRun::State {
  State(const json& config, const Sharing& sharing)
      : world(sharing.world),
        job(job_of(config, sharing)),
        network(network::build_network(spec_of(config), job.build_options())),
        runner(network, job, options_of(config, sharing)),
        vocabulary(config["vocab"].get<std::uint64_t>()) {
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < network.parameters.size(); ++p) {
      const network::Parameter& parameter = network.parameters[p];
      const std::string name = reference_name(parameter.name);
      const bool norm =
          (name.find("ln") != std::string::npos || name.find("norm") != std::string::npos) &&
          name.ends_with("weight");
      at::Tensor t = runner.parameter(parameter.name);
      const at::Tensor values = closed_form_weights(name, t.sizes(), norm);
      if (job.stage == shard::Stage::kParameters) {
        fill_owned(p, values.view({-1}));
      } else {
        t.copy_(values);
      }
    }
  }

  // At stage 3 there is no whole parameter to fill.
  void fill_owned(std::size_t parameter, const at::Tensor& values) {
    engine::zero::Sharder& sharder = runner.shards()->sharder();
    const auto unit = static_cast<shard::UnitIndex>(sharder.units().unit_of[parameter]);
    for (const engine::zero::OwnedPiece& piece : sharder.owned(unit)) {
      if (piece.parameter != parameter) continue;
      const shard::Range& range = piece.in_parameter;
      at::Tensor weights = piece.weights;
      weights.copy_(values.narrow(0, range.begin, range.size()));
    }
  }

  std::size_t find(const std::string& name) const {
    for (std::size_t p = 0; p < network.parameters.size(); ++p) {
      if (reference_name(network.parameters[p].name) == name) return p;
    }
    throw std::out_of_range("no parameter " + name);
  }

  // Row g of step t starts at stream position (t G + g) (T + 1); targets are one column on.
  void fill() {
    const at::Tensor ids = runner.input(network::InputKind::kTokens);
    const at::Tensor targets = runner.input(network::InputKind::kTargets);
    const std::int64_t columns = ids.size(1);
    const std::int64_t ranks = job.ranks;
    const std::int64_t rank = world == nullptr ? 0 : world->rank();
    for (std::int64_t row = 0; row < ids.size(0); ++row) {
      const std::int64_t together = (steps * ranks + rank) * ids.size(0) + row;
      const std::int64_t start = together * (columns + 1);
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto position = static_cast<std::uint64_t>(start + c);
        ids.data_ptr<std::int64_t>()[row * columns + c] = token(position, vocabulary);
        targets.data_ptr<std::int64_t>()[row * columns + c] = token(position + 1, vocabulary);
      }
    }
    ++steps;
  }

  comm::Communicator* const world;
  const plan::Job job;
  const network::Network network;
  engine::Runner runner;
  const std::uint64_t vocabulary;
  std::int64_t steps = 0;
};

ClosedFormRun::ClosedFormRun(const json& config, const Sharing& sharing)
    : state_(std::make_unique<State>(config, sharing)) {}
ClosedFormRun::~ClosedFormRun() = default;

double ClosedFormRun::step() {
  return state_->runner.step([this](int) { state_->fill(); });
}

double ClosedFormRun::gradient_norm() const {
  if (state_->world == nullptr) return state_->runner.gradient_norm();
  return std::sqrt(state_->runner.shards()->sharder().squared_norm_of_sums()) / state_->job.ranks;
}

at::Tensor ClosedFormRun::parameter(const std::string& name) const {
  const std::string& own = state_->network.parameters[state_->find(name)].name;
  const at::Tensor value = state_->runner.parameter(own).detach();
  if (state_->world == nullptr) return value;
  engine::zero::Sharder& sharder = state_->runner.shards()->sharder();
  sharder.gather_everything();
  at::Tensor copy = value.clone();
  sharder.release_everything();
  return copy;
}

at::Tensor ClosedFormRun::gradient(const std::string& name) const {
  const std::size_t p = state_->find(name);
  if (state_->world == nullptr) {
    return state_->runner.parameter(state_->network.parameters[p].name).grad();
  }
  return state_->runner.shards()->sharder().gathered_sum(p).div(state_->job.ranks);
}

std::vector<std::string> ClosedFormRun::parameter_names() const {
  std::vector<std::string> names;
  for (const network::Parameter& p : state_->network.parameters) {
    names.push_back(reference_name(p.name));
  }
  return names;
}

const network::Network& ClosedFormRun::network() const { return state_->network; }

}  // namespace plimsoll::tests
