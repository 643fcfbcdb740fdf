#include "plimsoll/comm/last_words.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::comm {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytes = 256;  // of a file: one line of text and zeros

std::string words_in(const std::string& folder) { return folder + "/last-words"; }

struct LastCall {
  int rank = -1;
  long long calls = 0;
  Cause cause;
};

std::optional<LastCall> last_call_in(const fs::path& path) {
  LastCall last;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  long long step = -1;
  char operation[32] = "";
  const int found = std::sscanf(line.c_str(), "calls=%lld step=%lld operation=%31s", &last.calls,
                                &step, operation);
  if (found != 3) return std::nullopt;
  if (std::sscanf(path.filename().c_str(), "rank-%d", &last.rank) != 1) return std::nullopt;
  last.cause.step = step;
  last.cause.operation = operation;
  const std::size_t begin = line.find(" unit=");
  if (begin != std::string::npos) last.cause.unit = line.substr(begin + 6);
  return last;
}

}  // namespace

// A mapped file: what was stored is in it, however the process ends.
class LastWords::File {
 public:
  File(const std::string& folder, int rank)
      : folder_(words_in(folder)), path_(fmt::format("{}/rank-{:04}", folder_, rank)) {
    std::error_code ignored;
    fs::create_directories(folder_, ignored);
    const int descriptor = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0) refuse();
    const bool long_enough = ftruncate(descriptor, kBytes) == 0;
    if (long_enough) {
      memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    close(descriptor);
    if (!long_enough || memory_ == MAP_FAILED) refuse();
  }
  ~File() {
    munmap(memory_, kBytes);
    unlink(path_.c_str());
    rmdir(folder_.c_str());  // by the last one
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void note(const Call& call) {
    char line[kBytes] = "";
    const auto end = fmt::format_to_n(line, kBytes - 2, "calls={} step={} operation={} unit={}",
                                      ++calls_, call.label.step, name(call.kind), call.label.unit);
    *end.out = '\n';
    std::memcpy(memory_, line, kBytes);
  }

 private:
  [[noreturn]] void refuse() const {
    throw std::runtime_error(fmt::format("[{}] {}", path_, std::strerror(errno)));
  }

  const std::string folder_;
  const std::string path_;
  void* memory_ = MAP_FAILED;
  std::int64_t calls_ = 0;
};

LastWords::LastWords(Communicator& inner, const std::string& folder)
    : LastWords(inner, std::make_shared<File>(folder, inner.rank())) {}

LastWords::LastWords(Communicator& inner, std::shared_ptr<File> file)
    : Decorator(inner), file_(std::move(file)) {}

Work LastWords::begin_call(const Call& call) {
  file_->note(call);
  return Decorator::begin_call(call);
}

std::unique_ptr<Decorator> LastWords::around(Communicator& inner) {
  return std::unique_ptr<Decorator>(new LastWords(inner, file_));
}

std::optional<Cause> last_words(const std::string& folder) {
  std::vector<LastCall> all;
  std::error_code problem;
  for (fs::directory_iterator it(words_in(folder), problem);
       !problem && it != fs::directory_iterator(); it.increment(problem)) {
    if (auto last = last_call_in(it->path())) all.push_back(*std::move(last));
  }
  if (all.empty()) return std::nullopt;
  const auto fewer = [](const LastCall& a, const LastCall& b) {
    return std::pair(a.calls, a.rank) < std::pair(b.calls, b.rank);
  };
  const auto [least, most] = std::minmax_element(all.begin(), all.end(), fewer);
  Cause cause = least->cause;
  const bool behind = all.size() == 1 || least->calls < most->calls;
  if (behind) cause.rank = cause.reporter = least->rank;
  cause.text = behind ? "was behind the others when all ended without a word"
                      : "all ranks ended without a word";
  return cause;
}

void remove_last_words(const std::string& folder) {
  std::error_code ignored;
  fs::remove_all(words_in(folder), ignored);
}

}  // namespace plimsoll::comm
