// Which rows of a token file a rank reads, and when.
//
// Row i of a part are its tokens [i T, i T + T], T + 1 of them: the first T are read, the last T are
// what is to be predicted. Rows touch in one token and are otherwise disjoint; tokens behind the last
// whole row are not used.
//
// [Note: Order of rows] Rows come in epochs. Every epoch holds each row exactly once, in an order that
// depends on the seed and the epoch alone. Epochs follow one another without a gap: step s takes the
// R k B rows from position s R k B on, and when an epoch ends inside a step the next one fills it up.
// So no row is dropped, padded or repeated within an epoch, whatever R, k and B are, and runs that
// have the same R k B see the same rows in the same step. Inside a step micro-batch m of rank r starts
// at m R B + r B: the ranks' rows are disjoint, and one process that takes R ranks' rows as R
// micro-batches takes them in rank order.
// Where a run is in this order is one number, the cursor: how many rows it has taken. It knows nothing
// of R, k and B, so a run that goes on with others takes the rows that come next.
#pragma once

#include <cstdint>

namespace plimsoll::engine {

// A stretch of a token file.
struct Part {
  std::int64_t first = 0;  // token
  std::int64_t tokens = 0;

  std::int64_t rows(std::int64_t sequence) const {
    return tokens > 0 ? (tokens - 1) / sequence : 0;
  }
};

struct Split {
  Part training;
  Part held_out;
};

// The last `held_out` share of the tokens (rounded down) is for evaluation and is never trained on.
Split split_tokens(std::int64_t tokens, double held_out);

// A bijection of [0, rows) that needs no memory: position -> row of one epoch.
std::int64_t shuffled(std::int64_t position, std::int64_t rows, std::uint64_t seed,
                      std::int64_t epoch);

// The rows of one run [Note: Order of rows]. Copyable; the same on all ranks.
struct RowOrder {
  std::int64_t rows = 1;  // in the part, at least 1
  std::uint64_t seed = 0;
  std::int64_t ranks = 1;       // R
  std::int64_t accumulate = 1;  // k
  std::int64_t batch = 1;       // B

  std::int64_t rows_per_step() const { return ranks * accumulate * batch; }
  // Row b of micro-batch m of rank r in the step that begins at `cursor`, all from 0. Of a run that
  // never changed, step s begins at s R k B.
  std::int64_t row(std::int64_t cursor, std::int64_t micro_batch, std::int64_t rank,
                   std::int64_t b) const;
};

}  // namespace plimsoll::engine
