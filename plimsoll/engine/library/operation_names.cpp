#include "plimsoll/engine/library/operation_names.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

#include <ATen/record_function.h>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {
namespace {

// A running operation. The name is a copy: an asynchronous operation may end, and its record die, on
// another thread while this one reads.
struct Running {
  static constexpr std::size_t kLongestName = 110;

  const at::RecordFunction* record;  // which one; not to be read through
  at::RecordScope scope;
  std::uint8_t length;
  std::array<char, kLongestName> text;

  std::string_view name() const { return {text.data(), length}; }
};

// No destructor, because tensors held by other thread-local objects may die after this one would.
struct RunningOperations {
  std::array<Running, 64> stack;
  std::size_t depth;  // may exceed the array: calls deeper than that are counted, not named

  std::size_t named() const { return std::min(depth, stack.size()); }
};
constinit thread_local RunningOperations running{};

// Operations that ended on a thread that did not begin them, until the thread that did hears of it.
struct EndedElsewhere {
  struct End {
    std::uint64_t thread;
    const at::RecordFunction* record;
  };
  std::mutex mutex;
  std::vector<End> ends;
  std::atomic<std::size_t> count{0};
};

EndedElsewhere& ended_elsewhere() {
  static auto* ended = new EndedElsewhere;  // operations may end after static destruction
  return *ended;
}

void remove_running(const at::RecordFunction* record) {
  const auto begin = running.stack.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(running.named());
  const auto found = std::find_if(
      begin, end, [record](const Running& operation) { return operation.record == record; });
  if (found == end) return;
  std::move(found + 1, end, found);
  --running.depth;
}

// Takes off this thread's stack what ended elsewhere.
void catch_up() {
  EndedElsewhere& ended = ended_elsewhere();
  if (ended.count.load(std::memory_order_acquire) == 0) return;
  const std::uint64_t thread = at::RecordFunction::currentThreadId();
  const std::lock_guard lock(ended.mutex);
  std::erase_if(ended.ends, [thread](const EndedElsewhere::End& end) {
    if (end.thread == thread) remove_running(end.record);
    return end.thread == thread;
  });
  ended.count.store(ended.ends.size(), std::memory_order_release);
}

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& record) {
  catch_up();
  if (running.depth < running.stack.size()) {
    Running& operation = running.stack[running.depth];
    const std::string_view name = record.name();
    operation.record = &record;
    operation.scope = record.scope();
    operation.length = static_cast<std::uint8_t>(std::min(name.size(), Running::kLongestName));
    std::memcpy(operation.text.data(), name.data(), operation.length);
  }
  ++running.depth;
  return nullptr;
}

void leave(const at::RecordFunction& record, at::ObserverContext*) {
  if (record.threadId() != at::RecordFunction::currentThreadId()) {
    EndedElsewhere& ended = ended_elsewhere();
    const std::lock_guard lock(ended.mutex);
    ended.ends.push_back({record.threadId(), &record});
    ended.count.store(ended.ends.size(), std::memory_order_release);
    return;
  }
  const std::size_t depth = running.depth;
  const bool only_counted = depth > running.stack.size();
  if (only_counted || (depth > 0 && running.stack[depth - 1].record == &record)) {
    --running.depth;
  } else {
    remove_running(&record);  // is not there when it began before the first watch
  }
}

// Of this thread, outermost first.
std::span<const Running> running_operations() {
  catch_up();
  return std::span(running.stack).first(running.named());
}

std::string_view node_name(std::string_view name) {
  return name.starts_with(kNodeWrapper) ? name.substr(kNodeWrapper.size()) : name;
}

bool is_node(const Running& operation) {
  return operation.scope == at::RecordScope::BACKWARD_FUNCTION;
}

struct WatchCount {
  std::mutex mutex;
  int watches = 0;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
};

WatchCount& watch_count() {
  static auto* count = new WatchCount;  // meters may outlive static destruction
  return *count;
}

}  // namespace

OperationWatch::OperationWatch() {
  WatchCount& count = watch_count();
  const std::lock_guard lock(count.mutex);
  if (count.watches++ > 0) return;
  count.callback = at::addGlobalCallback(
      at::RecordFunctionCallback(enter, leave)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OperationWatch::~OperationWatch() {
  WatchCount& count = watch_count();
  const std::lock_guard lock(count.mutex);
  if (--count.watches == 0) at::removeCallback(count.callback);
}

std::string_view outermost_operation() {
  const std::span<const Running> operations = running_operations();
  const auto node = std::find_if(operations.begin(), operations.end(), is_node);
  if (node != operations.end()) return node_name(node->name());
  return operations.empty() ? std::string_view() : node_name(operations[0].name());
}

std::string_view calling_operation() {
  const std::span<const Running> operations = running_operations();
  return operations.size() < 2 ? std::string_view() : operations[operations.size() - 2].name();
}

bool is_called_by_user_code() {
  const std::span<const Running> operations = running_operations();
  return operations.size() < 2 || is_node(operations[operations.size() - 2]);
}

bool is_inside_node() {
  const std::span<const Running> operations = running_operations();
  return std::any_of(operations.begin(), operations.end(), is_node);
}

}  // namespace plimsoll::engine
