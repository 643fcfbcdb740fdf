#include "plimsoll/formats/json_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/formats/utf8.hpp"

namespace plimsoll::formats {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestShown = 60;

std::string cut(std::string text) {
  if (text.size() <= kLongestShown) return text;
  std::size_t end = kLongestShown;
  // Never cut inside a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? offset : offset - newline - 1;
  return fmt::format("line {}, column {}", lines + 1, column + 1);
}

// Receives nlohmann's parser events and builds the document. The parser itself does not recurse.
class DocumentBuilder {
 public:
  DocumentBuilder(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(json::number_integer_t value) { return put(value); }
  bool number_unsigned(json::number_unsigned_t value) { return put(value); }
  bool number_float(json::number_float_t value, const std::string& /*text*/) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(json::object()); }
  bool start_array(std::size_t /*size*/) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    Level& level = levels_.back();
    level.key = std::move(key);
    if (!level.container->contains(level.key)) return true;
    return refuse("is given twice, expected each key once");
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& exception) {
    return refuse("is not valid JSON at " + complaint(position, exception.what()));
  }

  Result<json> finish() {
    if (error_) return tl::unexpected<Error>(*std::move(error_));
    return std::move(root_);
  }

 private:
  struct Level {
    json* container = nullptr;
    std::string key;  // objects: the key read last
  };

  // Place, reason and the word that the parser stumbled over; it has read `position` bytes.
  std::string complaint(std::size_t position, std::string_view exception) const {
    const std::size_t dash = exception.find(" - ");
    const std::string_view reason =
        dash == std::string_view::npos
            ? "number out of range"
            : exception.substr(dash + 3, exception.find("; last read") - dash - 3);
    if (reason.starts_with("unexpected end of input")) {
      return line_and_column(text_, text_.size()) + ": the text ends too early";
    }
    const std::size_t begin = word_begin(std::min(position, text_.size()));
    const std::string_view rest = text_.substr(begin);
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n,]}"));
    const std::string place = line_and_column(text_, begin);
    if (word == "NaN" || word == "Infinity" || word == "-Infinity") {
      return fmt::format("{}: {} is no JSON value, expected a finite number", place, word);
    }
    const std::string found =
        word.empty() ? "" : fmt::format(" (found {})", cut(std::string(word)));
    return fmt::format("{}: {}{}", place, reason, found);
  }

  // Start of the word whose last byte read is the one before `end`.
  std::size_t word_begin(std::size_t end) const {
    std::size_t begin = end == 0 ? 0 : end - 1;
    constexpr std::string_view kDelimiters = " \t\r\n,:[]{}";
    while (begin > 0 && kDelimiters.find(text_[begin - 1]) == std::string_view::npos) --begin;
    return begin;
  }

  bool refuse(std::string what) {
    if (!error_) error_ = Error{json_where(where_, path()), std::move(what), {}};
    return false;
  }

  std::string path() const {
    std::string path;
    for (const Level& level : levels_) {
      const json& container = *level.container;
      if (container.is_array()) {
        path += fmt::format("/{}", container.empty() ? 0 : container.size() - 1);
      } else if (!level.key.empty()) {
        path += json_step(level.key);
      }
    }
    return path;
  }

  json* put(json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) {
      level.container->push_back(std::move(value));
      return &level.container->back();
    }
    json& slot = (*level.container)[level.key];
    slot = std::move(value);
    return &slot;
  }

  bool open(json container) {
    json* placed = put(std::move(container));
    if (levels_.size() >= kDeepestJson) {
      return refuse(fmt::format("is nested deeper than {} levels", kDeepestJson));
    }
    levels_.push_back({placed, {}});
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view where_;
  json root_;
  std::vector<Level> levels_;
  std::optional<Error> error_;
};

}  // namespace

std::string json_where(std::string_view where, std::string_view path) {
  return path.empty() ? std::string(where) : fmt::format("{}:{}", where, path);
}

std::string json_step(std::string_view key) {
  std::string step = "/";
  for (char c : cut(std::string(key))) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

std::string json_value_text(const json& value) {
  return cut(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<json> parse_json(std::string_view text, std::string_view where) {
  if (const auto bad = first_invalid_utf8(text)) {
    return fail(std::string(where),
                fmt::format("is not UTF-8 at {}: byte 0x{:02x}", line_and_column(text, *bad),
                            static_cast<unsigned char>(text[*bad])),
                "JSON files are UTF-8 text");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return fail(std::string(where), "is empty, expected JSON");
  }
  DocumentBuilder builder(text, where);
  json::sax_parse(text.begin(), text.end(), &builder);
  return builder.finish();
}

}  // namespace plimsoll::formats
