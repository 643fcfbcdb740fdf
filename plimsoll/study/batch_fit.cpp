// A over batches: A = A0 + k B.
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/study/runs.hpp"
#include "plimsoll/study/studies.hpp"

namespace plimsoll::study {

Result<report::AffineFit> fit_batch(const network::NetworkSpec& spec, const plan::Job& job,
                                    const Options&, Progress& progress) {
  return guarded<report::AffineFit>([&] {
    prepare_library(job);
    std::vector<report::AffinePoint> points;
    for (std::int64_t batch : {1, 2, 4, 8}) {
      progress.update(fmt::format("fit over batches: batch {} of 8", batch));
      const plan::Job changed = with_batch(job, batch);
      const network::Network net = network_of(spec, changed);
      points.push_back(
          {batch, calculated_activations(net, changed), measured_activations(net, changed), 0});
    }
    return report::fit_affine(std::move(points));
  });
}

}  // namespace plimsoll::study
