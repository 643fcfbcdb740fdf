#include "plimsoll/cli/adaptation_options.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "plimsoll/cli/values.hpp"

namespace plimsoll::cli {
namespace {

using network::FreezeKind;
using network::FreezeRule;
using network::Matrix;
using network::NetworkSpec;

constexpr const char* kLora = "--lora";
constexpr const char* kFreeze = "--freeze";
constexpr std::int64_t kLargestRank = std::int64_t{1} << 30;

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = text.find(',', begin);
    items.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return items;
    begin = comma + 1;
  }
}

constexpr std::array kMatrices = {Matrix::kQ,   Matrix::kK,      Matrix::kV,
                                  Matrix::kQkv, Matrix::kOutput, Matrix::kGate,
                                  Matrix::kUp,  Matrix::kGateUp, Matrix::kDown};

class LoraReader {
 public:
  explicit LoraReader(const NetworkSpec& spec) : spec_(spec) {}

  Result<LoraChoice> read(const std::string& text) {
    for (const std::string& item : items_of(text)) {
      if (auto ok = read_item(item); !ok) return tl::unexpected(ok.error());
    }
    if (choice_.lora.rank == 0) {
      return fail(kLora, fmt::format("{} has no rank, expected rank=R[,alpha=A][,targets=NAMES]",
                                     in_quotes(text)));
    }
    if (in_targets_ && choice_.lora.targets.empty()) return fail(kLora, "targets= names nothing");
    assume();
    return std::move(choice_);
  }

 private:
  // "key=value", or one more name of the targets.
  Result<void> read_item(const std::string& item) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      if (in_targets_) return add_target(item);
      return unknown_value(kLora, item, {"rank=R", "alpha=A", "targets=NAMES"});
    }
    const std::string key = item.substr(0, equals);
    const std::string value = item.substr(equals + 1);
    if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) {
      return fail(kLora, fmt::format("{} is given more than once", key));
    }
    keys_.push_back(key);
    in_targets_ = key == "targets";
    if (key == "rank") return read_rank(value);
    if (key == "alpha") return read_alpha(value);
    if (in_targets_) return add_target(value);
    return unknown_value(kLora, key, {"rank", "alpha", "targets"});
  }

  Result<void> read_rank(const std::string& value) {
    const auto rank = parse_whole(kLora, value, 1, kLargestRank);
    if (!rank) return tl::unexpected(rank.error());
    choice_.lora.rank = *rank;
    return {};
  }

  Result<void> read_alpha(const std::string& value) {
    const auto alpha = parse_positive(kLora, value);
    if (!alpha) return tl::unexpected(alpha.error());
    alpha_ = *alpha;
    return {};
  }

  Result<void> add_target(const std::string& given) {
    std::vector<Matrix>& targets = choice_.lora.targets;
    if (given == "all" && targets.empty()) {
      targets = network::matrices_of(spec_);
      return {};
    }
    for (Matrix matrix : kMatrices) {
      if (network::name(matrix) != given) continue;
      if (choice_.lora.has(matrix)) {
        return fail(kLora, fmt::format("target {} is given more than once", given));
      }
      targets.push_back(matrix);
      return {};
    }
    std::vector<std::string> known;
    for (Matrix matrix : network::matrices_of(spec_)) known.emplace_back(network::name(matrix));
    known.emplace_back("all");
    return unknown_value(kLora, given, known, "target ");
  }

  void assume() {
    network::Lora& lora = choice_.lora;
    if (!alpha_) choice_.assumptions.push_back("lora alpha: not given, the rank, so a scale of 1");
    lora.scale = alpha_ ? *alpha_ / static_cast<double>(lora.rank) : 1;
    if (!lora.targets.empty()) return;
    const bool separate = spec_.architecture.qkv == network::QkvLayout::kSeparate;
    lora.targets =
        separate ? std::vector<Matrix>{Matrix::kQ, Matrix::kV} : std::vector<Matrix>{Matrix::kQkv};
    choice_.assumptions.push_back(
        fmt::format("lora targets {}: not given, as the LoRA paper's", separate ? "q,v" : "qkv"));
  }

  const NetworkSpec& spec_;
  LoraChoice choice_;
  std::optional<double> alpha_;
  std::vector<std::string> keys_;
  bool in_targets_ = false;
};

Result<FreezeRule> layers_rule(const std::string& item, const NetworkSpec& spec) {
  const std::int64_t last = spec.layers - 1;
  if (last < 0) return fail(kFreeze, fmt::format("{}: the model has no layers", item));
  FreezeRule rule{FreezeKind::kLayers, 0, last, item};
  if (item == "layers") return rule;
  const std::string range = item.substr(item.find(':') + 1);
  const std::size_t dash = range.find('-');
  const auto first = parse_whole(kFreeze, range.substr(0, dash), 0, last);
  if (!first) return tl::unexpected(first.error());
  rule.first = rule.last = *first;
  if (dash == std::string::npos) return rule;
  const auto end = parse_whole(kFreeze, range.substr(dash + 1), *first, last);
  if (!end) return tl::unexpected(end.error());
  rule.last = *end;
  return rule;
}

Result<FreezeRule> rule_of(const std::string& item, const NetworkSpec& spec) {
  if (item == "embeddings") return FreezeRule{FreezeKind::kEmbeddings, 0, 0, item};
  if (item == "head") return FreezeRule{FreezeKind::kHead, 0, 0, item};
  if (item == "layers" || item.starts_with("layers:")) return layers_rule(item, spec);
  if (item.find_first_of("*.") != std::string::npos) {
    return FreezeRule{FreezeKind::kName, 0, 0, item};
  }
  return unknown_value(kFreeze, item,
                       {"embeddings", "head", "layers", "layers:N-M", "a name with * or dots"});
}

}  // namespace

Result<LoraChoice> parse_lora(const std::string& text, const NetworkSpec& spec) {
  return LoraReader(spec).read(text);
}

Result<std::vector<FreezeRule>> parse_freeze(const std::string& text, const NetworkSpec& spec) {
  std::vector<FreezeRule> rules;
  for (const std::string& item : items_of(text)) {
    auto rule = rule_of(item, spec);
    if (!rule) return tl::unexpected(rule.error());
    const bool twice = std::any_of(rules.begin(), rules.end(),
                                   [&](const FreezeRule& other) { return other.text == item; });
    if (twice) return fail(kFreeze, fmt::format("{} is given more than once", in_quotes(item)));
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace plimsoll::cli
