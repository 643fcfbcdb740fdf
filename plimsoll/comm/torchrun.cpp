#include "plimsoll/comm/torchrun.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace plimsoll::comm {
namespace {

constexpr const char* kHint =
    "torchrun --nproc-per-node N program ..., as many as there are devices on this host";

Result<int> number(const char* variable, int least, int most) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    return fail("nccl", fmt::format("{} is not set, expected torchrun's environment", variable),
                kHint);
  }
  const std::string_view digits = text;
  int value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value < least ||
      value > most) {
    return fail(
        "nccl",
        fmt::format("{}=\"{}\", expected a number from {} to {}", variable, text, least, most),
        kHint);
  }
  return value;
}

}  // namespace

bool started_by_torchrun() {
  return std::getenv("RANK") != nullptr && std::getenv("WORLD_SIZE") != nullptr;
}

Result<TorchrunRank> torchrun_rank() {
  constexpr int kMost = 1 << 20;
  const auto size = number("WORLD_SIZE", 1, kMost);
  if (!size) return tl::unexpected(size.error());
  const auto rank = number("RANK", 0, *size - 1);
  if (!rank) return tl::unexpected(rank.error());
  const auto local_rank = number("LOCAL_RANK", 0, *size - 1);
  if (!local_rank) return tl::unexpected(local_rank.error());
  const auto port = number("MASTER_PORT", 1, 65535);
  if (!port) return tl::unexpected(port.error());
  const char* host = std::getenv("MASTER_ADDR");
  if (host == nullptr) {
    return fail("nccl", "MASTER_ADDR is not set, expected torchrun's environment", kHint);
  }
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const char* attempt = std::getenv("TORCHELASTIC_RESTART_COUNT");
  TorchrunRank result{*rank, *size, *local_rank, host, *port, false, "0"};
  result.agent_serves = agent != nullptr && std::string_view(agent) == "True";
  if (attempt != nullptr) result.attempt = attempt;
  return result;
}

int refuse_torchrun(const std::string& instead) {
  std::fputs(
      fmt::format("[launch] RANK and WORLD_SIZE are set: this process is a rank of torchrun, "
                  "expected a plain start. Hint: {}; torchrun is for the backend nccl\n",
                  instead)
          .c_str(),
      stderr);
  return static_cast<int>(ExitCode::kBadInput);
}

}  // namespace plimsoll::comm
