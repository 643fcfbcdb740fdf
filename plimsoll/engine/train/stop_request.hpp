// SIGTERM and SIGINT as a wish: end after this step, with a checkpoint.
#pragma once

namespace plimsoll::engine {

// While it lives the first of these signals is only noted, and a later one ends the process as if it
// had never been handled. Signals within 300 ms of the first count as the same one: a service manager
// tells every process of a group, and a launcher tells its ranks besides. One per process at a time.
class StopRequest {
 public:
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  bool made() const;
};

}  // namespace plimsoll::engine
