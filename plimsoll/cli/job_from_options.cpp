#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/number_text.hpp"
#include "plimsoll/cli/adaptation_options.hpp"
#include "plimsoll/cli/job_names.hpp"
#include "plimsoll/cli/job_options.hpp"
#include "plimsoll/cli/values.hpp"
#include "plimsoll/plan/inference_job.hpp"
#include "plimsoll/plan/recipe_checks.hpp"

namespace plimsoll::cli {
namespace {

using network::Backend;
using network::Checkpoint;
using network::DType;
using network::Family;
using network::NetworkSpec;
using network::Semantics;
using plan::Job;
using plan::MasterChoice;
using plan::Mode;
using plan::Optimizer;
using plan::OptimizerImpl;
using plan::Precision;

// Reads options one by one and keeps the first problem, like formats::ConfigReader: after it every
// read returns a harmless value.
class JobReader {
 public:
  JobReader(const Given& given, const NetworkSpec& spec, Modes modes)
      : given_(given), spec_(spec), modes_(modes) {}

  Result<Job> read() {
    read_mode();
    read_device();
    read_sizes();
    read_precision();
    read_optimizer();
    read_network_choices();
    read_adaptation();
    read_ranks();
    read_cache();
    if (!given_.has("--mode")) assume("--mode", "train");
    assume_ranks();
    assume_device();
    if (error_) return tl::unexpected<Error>(*error_);
    if (auto valid = plan::validate(job_, spec_); !valid) return tl::unexpected(valid.error());
    assume_kernel();
    for (std::string& line : plan::inference_assumptions(job_)) {
      job_.assumptions.push_back(std::move(line));
    }
    return std::move(job_);
  }

 private:
  bool is_image() const { return spec_.family == Family::kCnn; }

  void refuse(const std::string& option, std::string what, std::string hint = {}) {
    if (!error_) error_ = Error{option, std::move(what), std::move(hint)};
  }

  void keep(const Error& error) {
    if (!error_) error_ = error;
  }

  // "--batch" and "1" -> "batch 1: not given".
  void assume(std::string_view option, std::string_view value, std::string_view more = {}) {
    if (job_.infers() && plan::is_of_training(option)) return;
    job_.assumptions.push_back(fmt::format("{} {}: not given{}", option.substr(2), value, more));
  }

  std::int64_t whole(const std::string& option, std::int64_t standard, std::int64_t most) {
    const std::string* text = given_.find(option);
    if (text == nullptr) {
      assume(option, fmt::format("{}", standard));
      return standard;
    }
    const auto value = parse_whole(option, *text, 1, most);
    if (value) return *value;
    if (!error_) error_ = value.error();
    return standard;
  }

  // The value of `option` among `known`.
  template <class T>
  std::optional<T> find(const std::string& option, std::span<const Named<T>> known) {
    const std::string* text = given_.find(option);
    if (text == nullptr) return std::nullopt;
    std::vector<std::string> names;
    for (const Named<T>& one : known) {
      if (one.name == *text) return one.value;
      names.emplace_back(one.name);
    }
    keep(unknown_value(option, *text, names).value());
    return std::nullopt;
  }

  template <class T>
  T choice(const std::string& option, std::span<const Named<T>> known, std::string_view standard) {
    if (!given_.has(option)) assume(option, standard);
    if (const auto value = find<T>(option, known)) return *value;
    return std::find_if(known.begin(), known.end(),
                        [&](const Named<T>& one) { return one.name == standard; })
        ->value;
  }

  // First: what the others mean depends on it.
  void read_mode() {
    job_.mode = find<Mode>("--mode", kModes).value_or(Mode::kTrain);
    if (!job_.infers() || modes_ == Modes::kAll) return;
    refuse("--mode",
           fmt::format("{} is planned by plan and explain alone, expected train", name(job_.mode)));
  }

  void read_cache() {
    if (given_.has("--context") && job_.mode != Mode::kDecode) {
      refuse("--context", "only decoding has cached tokens, expected --mode decode");
    }
    job_.kv_dtype = find<DType>("--kv-dtype", kCacheDtypes);
    if (!job_.infers() || given_.has("--kv-dtype")) return;
    assume("--kv-dtype", network::name(job_.cache_dtype()));
  }

  std::int64_t whole_or(const std::string& option, std::int64_t standard, std::int64_t least,
                        std::int64_t most) {
    const std::string* text = given_.find(option);
    if (text == nullptr) return standard;
    const auto value = parse_whole(option, *text, least, most);
    if (!value && !error_) error_ = value.error();
    return value.value_or(standard);
  }

  void read_ranks() {
    job_.ranks = static_cast<std::int32_t>(whole_or("--ranks", 1, 1, 65536));
    job_.stage = static_cast<shard::Stage>(whole_or("--zero", 0, 0, 3));
    job_.prefetch = static_cast<std::int32_t>(whole_or("--prefetch", 1, 0, 1024));
    job_.reshard_root = given_.has("--reshard-root");
    job_.reduce_each = !given_.has("--no-sync");
    job_.snapshot = given_.has("--snapshot");
  }

  void assume_ranks() {
    const auto assume_absent = [&](const std::string& option, std::string_view value) {
      if (!given_.has(option)) assume(option, value);
    };
    assume_absent("--ranks", "1");
    assume_absent("--zero", "0");
    if (job_.stage == shard::Stage::kParameters) {
      assume_absent("--prefetch", "1");
      assume_absent("--reshard-root", "off");
    }
    if (job_.sharded() && job_.accumulate > 1) assume_absent("--no-sync", "off");
  }

  // First: what the others are when not given depends on it.
  void read_device() {
    const std::string* text = given_.find("--device");
    if (text != nullptr && *text != "none") {
      auto device = parse_device("--device", *text);
      if (device) job_.device = *std::move(device);
      if (!device && !error_) error_ = device.error();
    }
    if (const std::string* reserve = given_.find("--reserve")) {
      const auto bytes =
          *reserve == "0" ? Result<std::int64_t>(0) : parse_size("--reserve", *reserve);
      if (bytes) job_.reserve = *bytes;
      if (!bytes && !error_) error_ = bytes.error();
    }
  }

  void assume_device() {
    if (!job_.device) {
      if (!given_.has("--device")) assume("--device", "none");
      return;
    }
    const hardware::Device& device = *job_.device;
    if (!device.bandwidth.value) {
      job_.assumptions.push_back(fmt::format("device {}: {}, backend cuda unless told otherwise",
                                             device.name, device.title));
    }
    if (device.platform == hardware::Platform::kRocm && job_.backend == Backend::kCuda) {
      job_.assumptions.push_back(
          fmt::format("device {}: planned with CUDA's kernels, ROCm's are not known", device.name));
    }
    if (given_.has("--reserve")) return;
    const auto reserve = hardware::memory_budget(device, job_.reserve).reserve;
    job_.assumptions.push_back(fmt::format("reserve {}: the device's context ({}: {})",
                                           human(Bytes{reserve.value.value_or(0)}),
                                           name(reserve.evidence), reserve.source));
  }

  void read_sizes() {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    job_.batch = whole("--batch", 1, kMost);
    if (!is_image()) {
      read_sequence(kMost);
    } else if (given_.has("--seq")) {
      refuse("--seq", "an image network reads no tokens, expected no --seq");
    }
    job_.accumulate = static_cast<std::int32_t>(whole("--accumulate", 1, 65536));
    job_.threads = static_cast<int>(whole("--threads", 1, 4096));
  }

  // Decoding: the cached tokens, as many as a prompt would have.
  void read_sequence(std::int64_t most) {
    const bool decodes = job_.mode == Mode::kDecode;
    const std::string option = decodes && !given_.has("--seq") ? "--context" : "--seq";
    job_.sequence = tokens(option, most);
    if (decodes && option == "--seq") job_.sequence = whole("--context", job_.sequence, most);
  }

  std::int64_t tokens(const std::string& option, std::int64_t most) {
    constexpr std::int64_t kStandard = 4096;
    if (given_.has(option)) return whole(option, 1, most);
    const bool inline_model = spec_.family == Family::kMiniGpt;
    const std::int64_t chosen =
        inline_model ? spec_.positions : std::min(spec_.positions, kStandard);
    assume(
        option, fmt::format("{}", chosen),
        chosen < spec_.positions ? fmt::format(", the model reads up to {}", spec_.positions) : "");
    return chosen;
  }

  void read_precision() {
    job_.precision = choice<Precision>("--precision", kPrecisions, job_.device ? "mixed" : "fp32");
    job_.master = find<MasterChoice>("--master-dtype", kMasters);
    job_.grad_dtype = find<DType>("--grad-dtype", kDtypes);
    job_.state_dtype = find<DType>("--state-dtype", kDtypes);
    job_.loss_dtype = find<DType>("--loss-dtype", kDtypes);
    if (job_.infers()) return;
    for (std::string& line : plan::recipe_assumptions(job_.precision)) {
      job_.assumptions.push_back(std::move(line));
    }
  }

  void read_optimizer() {
    job_.optimizer = choice<Optimizer>("--optimizer", kOptimizers, "adamw");
    job_.optimizer_impl = choice<OptimizerImpl>("--optimizer-impl", kOptimizerImpls,
                                                name(plan::usual_implementation(job_.optimizer)));
    for (std::string& line : plan::optimizer_assumptions(job_.optimizer)) {
      job_.assumptions.push_back(std::move(line));
    }
  }

  void read_network_choices() {
    job_.semantics = choice<Semantics>("--semantics", kSemantics, "plimsoll");
    job_.backend = choice<Backend>("--backend", kBackends, job_.device ? "cuda" : "cpu");
    job_.checkpoint = choice<Checkpoint>("--checkpoint", kCheckpoints, "none");
    job_.loss_chunks =
        static_cast<std::int32_t>(whole_or("--loss-chunks", 1, 1, plan::kMostLossChunks));
    job_.shared_targets = choice<bool>("--targets", kTargets, "separate");
    job_.hold_logits = given_.has("--hold-logits");
    if (!job_.hold_logits) assume("--hold-logits", "off");
    if (is_image() && given_.has("--attention")) {
      refuse("--attention", "an image network has no attention, expected no --attention");
    }
    job_.attention = find<MaybeKernel>("--attention", kAttentions).value_or(std::nullopt);
    read_dropout();
  }

  void read_adaptation() {
    if (const std::string* text = given_.find("--lora")) {
      auto choice = parse_lora(*text, spec_);
      if (!choice) return keep(choice.error());
      job_.lora = choice->lora;
      for (std::string& line : choice->assumptions) job_.assumptions.push_back(std::move(line));
    }
    const std::string* text = given_.find("--freeze");
    if (text == nullptr) return;
    auto rules = parse_freeze(*text, spec_);
    if (!rules) return keep(rules.error());
    job_.freeze = *std::move(rules);
    const bool tied = std::any_of(
        job_.freeze.begin(), job_.freeze.end(),
        [](const network::FreezeRule& r) { return r.kind == network::FreezeKind::kEmbeddings; });
    if (tied && spec_.tied_head) {
      job_.assumptions.emplace_back("freeze embeddings: the head is the same matrix, frozen too");
    }
  }

  void read_dropout() {
    if (const std::string* text = given_.find("--dropout")) {
      const auto value = parse_probability("--dropout", *text);
      if (value) job_.dropout = *value;
      if (!value && !error_) error_ = value.error();
      return;
    }
    const bool asked = spec_.config_dropout > 0;
    assume("--dropout", "0",
           asked ? fmt::format(", the config says {}", spec_.config_dropout) : "");
  }

  void assume_kernel() {
    if (is_image() || job_.attention) return;
    const std::string_view kernel = network::name(job_.kernel(spec_.heads != spec_.kv_heads));
    if (!given_.has("--attention")) {
      assume("--attention", kernel);
    } else {
      job_.assumptions.push_back(fmt::format("attention auto: the library takes {}", kernel));
    }
  }

  const Given& given_;
  const NetworkSpec& spec_;
  const Modes modes_;
  Job job_;
  std::optional<Error> error_;
};

}  // namespace

Result<Job> make_job(const Given& given, const NetworkSpec& spec, Modes modes) {
  return JobReader(given, spec, modes).read();
}

Result<Job> make_job(const Given& given, const formats::LoadedShape& model) {
  if (model.spec) return make_job(given, *model.spec);
  // What a job asks of a model: how many tokens it reads, and whether positions are learned.
  NetworkSpec stand_in;
  stand_in.family = Family::kLlama;
  stand_in.title = model.shape.title;
  stand_in.positions = model.shape.positions;
  return make_job(given, stand_in);
}

}  // namespace plimsoll::cli
