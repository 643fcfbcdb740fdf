#include "plimsoll/checkpoint/background_checks.hpp"

#include <utility>

namespace plimsoll::checkpoint {

BackgroundChecks::~BackgroundChecks() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundChecks::add(Check check) {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!result_ || thrown_) return;
    queue_.push_back(std::move(check));
  }
  changed_.notify_all();
}

Result<void> BackgroundChecks::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return std::exchange(result_, Result<void>());
}

Result<void> BackgroundChecks::run(const Check& check) noexcept {
  try {
    return check();
  } catch (...) {
    thrown_ = std::current_exception();
    return {};
  }
}

void BackgroundChecks::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const Check check = queue_.front();
    lock.unlock();
    Result<void> done = run(check);
    lock.lock();
    queue_.pop_front();
    if (!done || thrown_) {
      result_ = std::move(done);
      queue_.clear();
    }
    if (queue_.empty()) changed_.notify_all();
  }
}

}  // namespace plimsoll::checkpoint
