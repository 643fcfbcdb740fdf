// Meters a block with the installed library.
#include <cstdio>

#include <plimsoll/meter.hpp>

int main() {
  plimsoll::Meter meter;
  const at::Tensor x = torch::empty({25});
  const plimsoll::Timeline timeline = meter.finish();
  std::printf("%lld bytes\n", static_cast<long long>(timeline.events.at(0).bytes));
}
