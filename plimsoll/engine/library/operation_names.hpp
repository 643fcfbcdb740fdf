// Which operation of libtorch the calling thread is in: names for events and for saved tensors.
//
// Names come from libtorch's RecordFunction. Watching costs 0.1 to 0.3 us per operation, so it is
// on only while an OperationWatch lives. An operation that was already running when the first
// watch began is not seen. OpenMP worker threads run kernels outside any operation: no name there.
// Names longer than 110 bytes are cut; below a depth of 64 operations have none. An asynchronous
// operation counts as running on the thread that began it until it ends, wherever that is.
#pragma once

#include <string_view>

namespace plimsoll::engine {

// While at least one lives, every thread keeps a stack of its running operations. Thread-safe.
class OperationWatch {
 public:
  OperationWatch();
  ~OperationWatch();
  OperationWatch(const OperationWatch&) = delete;
  OperationWatch& operator=(const OperationWatch&) = delete;
};

// The operation the user called, such as "aten::layer_norm"; inside backward the node that runs,
// such as "MmBackward0". "" outside operations. Valid until this thread begins or ends an operation.
std::string_view outermost_operation();

// The operation that called the innermost one; "" when the user did. Autograd's engine, summing the
// gradients of a value that was used twice, is kNodeWrapper followed by the node's name.
inline constexpr std::string_view kNodeWrapper = "autograd::engine::evaluate_function: ";
std::string_view calling_operation();

// Whether user code called the innermost operation: directly, or from the backward function of an
// own autograd function. (libtorch's own formulas count as such, too.)
bool is_called_by_user_code();

// Whether a backward formula runs.
bool is_inside_node();

}  // namespace plimsoll::engine
