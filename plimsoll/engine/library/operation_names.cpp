#include "plimsoll/engine/library/operation_names.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include <ATen/record_function.h>

#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine {
namespace {

// Pointers instead of names: reading a name is only paid for when there is an event. No
// destructor, because tensors held by other thread-local objects may die after this one would.
struct RunningOperations {
  std::array<const at::RecordFunction*, 256> stack;
  std::size_t depth;  // may exceed the array: calls deeper than that are counted, not named
};
constinit thread_local RunningOperations running{};

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& operation) {
  if (running.depth < running.stack.size()) running.stack[running.depth] = &operation;
  ++running.depth;
  return nullptr;
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  // An asynchronous operation may end on a thread that did not begin it.
  if (running.depth > 0) --running.depth;
}

std::size_t named_depth() { return std::min(running.depth, running.stack.size()); }

std::string_view node_name(std::string_view name) {
  return name.starts_with(kNodeWrapper) ? name.substr(kNodeWrapper.size()) : name;
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
  const std::size_t depth = named_depth();
  for (std::size_t index = 0; index < depth; ++index) {
    const at::RecordFunction& operation = *running.stack[index];
    if (operation.scope() == at::RecordScope::BACKWARD_FUNCTION) return node_name(operation.name());
  }
  return depth == 0 ? std::string_view() : node_name(running.stack[0]->name());
}

std::string_view innermost_operation() {
  const std::size_t depth = named_depth();
  return depth == 0 ? std::string_view() : node_name(running.stack[depth - 1]->name());
}

std::string_view calling_operation() {
  const std::size_t depth = named_depth();
  return depth < 2 ? std::string_view() : running.stack[depth - 2]->name();
}

bool is_called_by_user_code() {
  const std::size_t depth = named_depth();
  return depth < 2 || running.stack[depth - 2]->scope() == at::RecordScope::BACKWARD_FUNCTION;
}

bool is_inside_node() {
  const auto end = running.stack.begin() + static_cast<std::ptrdiff_t>(named_depth());
  return std::any_of(running.stack.begin(), end, [](const at::RecordFunction* operation) {
    return operation->scope() == at::RecordScope::BACKWARD_FUNCTION;
  });
}

}  // namespace plimsoll::engine
