#include "plimsoll/plan/optimizer_states.hpp"

namespace plimsoll::plan {

Factors adafactor_factors(const network::Dims& shape) {
  Factors factors{shape, {}};
  if (shape.size() < 2) return factors;
  factors.columns = shape;
  factors.rows[shape.size() - 1] = 1;
  factors.columns[shape.size() - 2] = 1;
  return factors;
}

}  // namespace plimsoll::plan
