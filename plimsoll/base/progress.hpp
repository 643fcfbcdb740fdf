// How long work tells what it is doing. Libraries never print: they are handed one of these.
#pragma once

#include <string_view>

namespace plimsoll {

class Progress {
 public:
  virtual ~Progress() = default;
  // What is happening now; each call replaces the one before. Cheap enough for every step.
  virtual void update(std::string_view what) = 0;
};

// For callers who do not want to know.
class NoProgress final : public Progress {
 public:
  void update(std::string_view) override {}
};

}  // namespace plimsoll
