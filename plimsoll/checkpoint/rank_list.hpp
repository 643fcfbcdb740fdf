// What a rank leaves for rank 0 beside its file: where its pieces lie. Gone when the checkpoint is
// complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/checkpoint/writer.hpp"

namespace plimsoll::checkpoint {

struct ListedPiece {
  std::size_t tensor = 0;  // position in SavePlan::tensors
  StateKind kind = StateKind::kWeight;
  Piece piece;
};

struct RankList {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::int64_t file_bytes = 0;
  std::vector<ListedPiece> pieces;
  std::vector<Blob> blobs;
};

std::string rank_list_file(std::int32_t rank);  // "rank-0003.list"
std::string rank_list_text(const RankList& list);
// Errors: no list of this plan.
Result<RankList> parse_rank_list(std::string_view text, std::string_view where,
                                 const SavePlan& plan);

std::string temporary_folder(const SavePlan& plan);
std::string final_folder(const SavePlan& plan);

}  // namespace plimsoll::checkpoint
