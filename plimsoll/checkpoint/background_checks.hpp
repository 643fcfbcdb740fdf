// Checks that run on one thread of their own, in order, while their owner reads on.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "plimsoll/base/error.hpp"

namespace plimsoll::checkpoint {

class BackgroundChecks {
 public:
  using Check = std::function<Result<void>()>;

  BackgroundChecks() = default;
  BackgroundChecks(const BackgroundChecks&) = delete;
  BackgroundChecks& operator=(const BackgroundChecks&) = delete;
  // Those that have not begun are dropped.
  ~BackgroundChecks();

  // Returns at once; the thread starts with the first check. What the check reads must live until
  // wait() returns or this object ends.
  void add(Check check);
  // Until all are done: the first error since the last call, or none; what a check has thrown is thrown here.
  // Behind an error nothing is checked.
  Result<void> wait();

 private:
  void work();
  Result<void> run(const Check& check) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Check> queue_;  // the one that runs included
  Result<void> result_;
  std::exception_ptr thrown_;  // while no check runs, under the mutex
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace plimsoll::checkpoint
