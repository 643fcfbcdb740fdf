#include "plimsoll/base/terminal.hpp"

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace plimsoll {
namespace {

// Narrower terminals would break tables anyway; wider lines are hard to read.
constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 100;

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

bool environment_says(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* kind = std::getenv("TERM");
  return kind == nullptr || std::string_view(kind) == "dumb";
}

std::size_t terminal_width(int descriptor) {
  ::winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kWidest;
  return std::clamp(std::size_t{size.ws_col}, kNarrowest, kWidest);
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::string wrapped_in(std::string_view code, std::string_view text, const TextStyle& style) {
  if (!style.colour || text.empty()) return std::string(text);
  std::string result = "\x1b[";
  result += code;
  result += 'm';
  result += text;
  result += "\x1b[0m";
  return result;
}

// The first `width` characters, the last of them an ellipsis when something was cut.
std::string elided(std::string_view text, std::size_t width) {
  if (text_width(text) <= width) return std::string(text);
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if (continues_character(text[end])) continue;
    if (++shown > width - 3) break;
  }
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

TextStyle style_of(int descriptor) {
  if (!is_terminal(descriptor)) return {};
  return {terminal_width(descriptor), !environment_says("NO_COLOR") && !is_dumb()};
}

std::string bold(std::string_view text, const TextStyle& style) {
  return wrapped_in("1", text, style);
}

std::string dim(std::string_view text, const TextStyle& style) {
  return wrapped_in("2", text, style);
}

std::size_t text_width(std::string_view text) {
  const auto characters =
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); });
  return static_cast<std::size_t>(characters);
}

std::string visible(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return result;
}

LinePrinter::LinePrinter(int descriptor) : descriptor_(is_terminal(descriptor) ? descriptor : -1) {}

LinePrinter::~LinePrinter() {
  if (drawn_) write("\r\x1b[K");
}

void LinePrinter::update(std::string_view what) {
  if (descriptor_ < 0 || is_dumb()) return;
  write("\r" + elided(visible(what), terminal_width(descriptor_) - 1) + "\x1b[K");
  drawn_ = true;
}

// Talk may be lost; nothing depends on it.
void LinePrinter::write(std::string_view text) const {
  while (!text.empty()) {
    const ::ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace plimsoll
