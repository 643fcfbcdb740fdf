#include "plimsoll/formats/inline_model.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/formats/letter_case.hpp"

namespace plimsoll::formats {
namespace {

using network::Family;
using network::NetworkSpec;

// Feed-forward layers are four times as wide as the model, and no size is above 2^53.
constexpr unsigned kMostWidthBits = 51;

// "d=128,L=4" as keys and values. Like ConfigReader it keeps the first problem.
class Options {
 public:
  Options(std::string kind, std::string_view text, std::vector<std::string> keys)
      : kind_(std::move(kind)), keys_(std::move(keys)) {
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      add(text.substr(0, comma));
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
      if (text.empty()) refuse("", "ends with a comma, expected key=value after it");
    }
  }

  // A size of at most 2^`most_bits`.
  std::int64_t size(const std::string& key, std::int64_t standard, unsigned most_bits = 53) {
    if (const auto value = take(key, fmt::format("{}", standard))) {
      return parse(key, *value, most_bits);
    }
    return standard;
  }

  std::vector<std::int64_t> sizes(const std::string& key,
                                  const std::vector<std::int64_t>& standard) {
    const auto value = take(key, fmt::format("{}", fmt::join(standard, "-")));
    if (!value) return standard;
    std::vector<std::int64_t> sizes;
    std::string_view rest = *value;
    for (;;) {
      const std::size_t dash = rest.find('-');
      sizes.push_back(parse(key, rest.substr(0, dash)));
      if (dash == std::string_view::npos) return sizes;
      rest.remove_prefix(dash + 1);
    }
  }

  // Which of two words; the second when the key is absent.
  bool is(const std::string& key, std::string_view yes, std::string_view no) {
    const auto found = values_.find(key);
    if (found == values_.end() || found->second == no) return false;
    if (found->second != yes) {
      refuse(key, fmt::format("{}, expected {} or {}", shown(found->second), yes, no));
    }
    return true;
  }

  void refuse(std::string_view key, std::string what, std::string hint = {}) {
    if (!error_) error_ = Error{where(key), std::move(what), std::move(hint)};
  }

  std::string where(std::string_view key) const {
    return key.empty() ? kind_ : fmt::format("{}:{}", kind_, key);
  }
  const std::optional<Error>& error() const { return error_; }
  std::vector<std::string> take_assumptions() { return std::move(assumptions_); }

 private:
  static std::string shown(std::string_view text) {
    return text.size() <= 40 ? std::string(text) : fmt::format("{}...", text.substr(0, 40));
  }

  void add(std::string_view item) {
    const std::size_t equals = item.find('=');
    const std::string key(item.substr(0, equals));
    if (equals == std::string_view::npos) {
      refuse("", fmt::format("\"{}\", expected key=value", shown(item)), known_keys(key));
    } else if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) {
      refuse(shown(key), "unknown key", known_keys(key));
    } else if (!values_.emplace(key, item.substr(equals + 1)).second) {
      refuse(key, "is given twice, expected each key once");
    }
  }

  std::string known_keys(std::string_view key) const {
    std::string nearest;
    for (const std::string& known : keys_) {
      if (lower_case(known) == lower_case(key)) nearest = known;
    }
    // One-letter keys are all equally near to each other.
    if (nearest.empty() && key.size() > 2) nearest = nearest_name(key.substr(0, 64), keys_);
    const std::string list = fmt::format("keys are {}", fmt::join(keys_, ", "));
    return nearest.empty() ? list : fmt::format("nearest is {}; {}", nearest, list);
  }

  // The text of a key, or nothing and a note of the default.
  std::optional<std::string_view> take(const std::string& key, const std::string& standard) {
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    assumptions_.push_back(fmt::format("{}: absent, default {}", key, standard));
    return std::nullopt;
  }

  std::int64_t parse(const std::string& key, std::string_view text, unsigned most_bits = 53) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem == std::errc::result_out_of_range || value > std::int64_t{1} << most_bits) {
      refuse(key, fmt::format("{}, expected at most 2^{}", shown(text), most_bits));
    } else if (problem != std::errc{} || end != text.data() + text.size() || value < 1) {
      refuse(key, fmt::format("\"{}\", expected a whole number of at least 1", shown(text)));
    } else {
      return value;
    }
    return 1;
  }

  std::string kind_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string_view> values_;
  std::optional<Error> error_;
  std::vector<std::string> assumptions_;
};

using FieldKeys = std::map<std::string_view, std::string_view>;

Result<NetworkSpec> finish(NetworkSpec spec, Options& options, std::string_view text,
                           const FieldKeys& keys) {
  if (options.error()) return tl::unexpected<Error>(*options.error());
  spec.model_type = network::name(spec.family);
  spec.title = std::string(text);
  spec.assumptions = options.take_assumptions();
  const auto valid = network::validate(spec);
  if (valid) return spec;
  Error error = valid.error();
  const auto key = keys.find(error.where);
  error.where = options.where(key == keys.end() ? "" : key->second);
  return tl::unexpected<Error>(std::move(error));
}

Result<NetworkSpec> read_minigpt(std::string_view text, std::string_view list) {
  Options options("minigpt", list, {"d", "L", "V", "s", "heads"});
  NetworkSpec spec;
  spec.family = Family::kMiniGpt;
  spec.architecture = network::gpt_architecture();
  spec.width = options.size("d", 128, kMostWidthBits);
  spec.layers = options.size("L", 4);
  spec.vocabulary = options.size("V", 1000);
  spec.positions = options.size("s", 64);
  spec.heads = options.size("heads", 4);
  spec.kv_heads = spec.heads;
  spec.head_dim = spec.width / spec.heads;
  spec.feed_forward = 4 * spec.width;
  return finish(std::move(spec), options, text,
                {{"width", "d"},
                 {"layers", "L"},
                 {"vocabulary", "V"},
                 {"positions", "s"},
                 {"heads", "heads"},
                 {"feed_forward", "d"}});
}

Result<NetworkSpec> read_cnn(std::string_view text, std::string_view list) {
  Options options("cnn", list, {"channels", "image", "classes", "norm", "bias", "relu", "pool"});
  NetworkSpec spec;
  spec.family = Family::kCnn;
  spec.channels = options.sizes("channels", {16, 24, 32});
  spec.image = options.size("image", 32);
  spec.classes = options.size("classes", 10);
  spec.batch_norm = options.is("norm", "batch", "none");
  spec.conv_bias = !options.is("bias", "off", "on");
  spec.relu_in_place = options.is("relu", "inplace", "new");
  spec.pool_last = options.is("pool", "last", "none");
  spec.activation = network::OpKind::kRelu;
  return finish(std::move(spec), options, text,
                {{"channels", "channels"}, {"image", "image"}, {"classes", "classes"}});
}

std::string_view kind_of(std::string_view text) { return text.substr(0, text.find(':')); }

}  // namespace

bool is_inline_model(std::string_view text) {
  const std::string kind = lower_case(kind_of(text));
  return kind == "minigpt" || kind == "cnn";
}

std::string nearest_inline_kind(std::string_view text) {
  static const std::vector<std::string> kKinds = {"minigpt", "cnn"};
  const std::string near = nearest_name(lower_case(kind_of(text).substr(0, 64)), kKinds);
  return near.empty() ? near : near + ":";
}

Result<NetworkSpec> read_inline_model(std::string_view text) {
  check(is_inline_model(text), "not an inline model");
  const std::string_view kind = kind_of(text);
  const std::string_view list = text.substr(std::min(text.size(), kind.size() + 1));
  return lower_case(kind) == "cnn" ? read_cnn(text, list) : read_minigpt(text, list);
}

}  // namespace plimsoll::formats
