// What a stream of text may look like, and the one place that draws on a terminal.
//
// Results are plain text of at most 100 columns unless the stream is a terminal: then they follow
// its width and use bold and dim type, except under NO_COLOR or TERM=dumb. Not counted: characters
// that take two columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/progress.hpp"

namespace plimsoll {

struct TextStyle {
  std::size_t width = 100;  // columns of a line
  bool colour = false;      // escape codes allowed
};

// The style for a file descriptor, from the descriptor and the environment.
TextStyle style_of(int descriptor);

// `text` in bold or dim type, or unchanged without colour.
std::string bold(std::string_view text, const TextStyle& style);
std::string dim(std::string_view text, const TextStyle& style);

// How many characters a UTF-8 text has; bytes that are no UTF-8 count one each.
std::size_t text_width(std::string_view text);

// `text` with control characters replaced by '?': names of files may hold anything.
std::string visible(std::string_view text);

// Progress on one line of stderr that overwrites itself. On anything but a terminal it stays silent,
// so that logs and pipes hold results and errors only.
class LinePrinter final : public Progress {
 public:
  explicit LinePrinter(int descriptor);
  ~LinePrinter() override;
  LinePrinter(const LinePrinter&) = delete;
  LinePrinter& operator=(const LinePrinter&) = delete;

  void update(std::string_view what) override;

 private:
  void write(std::string_view text) const;

  const int descriptor_;
  bool drawn_ = false;
};

}  // namespace plimsoll
