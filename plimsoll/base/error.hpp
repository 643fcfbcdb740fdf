// How plimsoll says that something went wrong. Three kinds, never mixed:
//   bad input            -> Error inside a Result (exit code 2), or 3 when the machine lacks something;
//   arithmetic overflow  -> OverflowError, turned into an Error where the user's numbers come in;
//   our own bug          -> InternalError with a location (exit code 70).
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace plimsoll {

// Process exit codes; docs and cli.md rely on these numbers.
enum class ExitCode : int {
  kOk = 0,
  kCheckFailed = 1,  // does not fit, or an unnamed difference
  kBadInput = 2,     // usage or input
  kEnvironment = 3,  // the machine lacks something
  kInternal = 70,    // our bug
};

// One complaint about the user's input. `where` is an option, a file or a JSON path.
struct Error {
  std::string where;
  std::string what;
  std::string hint;  // may be empty
  ExitCode code = ExitCode::kBadInput;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(std::string where, std::string what, std::string hint = {},
                                  ExitCode code = ExitCode::kBadInput) {
  return tl::unexpected<Error>(Error{std::move(where), std::move(what), std::move(hint), code});
}

// "[where] what. Hint: ..." on one line, control characters of the input escaped.
std::string format_error(const Error& error);

// Byte or element arithmetic left 64 bits: the input described something no machine can hold.
class OverflowError : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

// A place in the sources. std::source_location does the same; clang 14, which builds the fuzzers,
// does not have it.
struct SourceLocation {
  const char* file;
  int line;

  static constexpr SourceLocation here(const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
    return {file, line};
  }
};

// Our own mistake; carries file and line in what().
class InternalError : public std::logic_error {
 public:
  explicit InternalError(std::string_view what, SourceLocation at = SourceLocation::here());
};

// Throws InternalError unless `condition` holds. For programmer errors only, never for input.
inline void check(bool condition, std::string_view what,
                  SourceLocation at = SourceLocation::here()) {
  if (!condition) throw InternalError(what, at);
}

// The candidate nearest to `name` by edit distance, or "" when nothing is near.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace plimsoll
