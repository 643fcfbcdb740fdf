#include "plimsoll/checkpoint/rank_list.hpp"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/pieces_json.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace plimsoll::checkpoint {
namespace {

using nlohmann::json;

// [position of the tensor, "kind", piece]
void read_listed_piece(const json& value, const std::string& path, const SavePlan& plan,
                       RankList& list, JsonFlaw& flaw) {
  const bool three = value.is_array() && value.size() == 3 && value[1].is_string();
  const std::int64_t tensor = three ? whole_or_minus_one(value[0]) : -1;
  if (tensor < 0 || tensor >= static_cast<std::int64_t>(plan.tensors.size())) {
    return flaw.refuse(path, value, "[tensor, kind, piece]");
  }
  ListedPiece listed;
  listed.tensor = static_cast<std::size_t>(tensor);
  const auto kind = parse_state_kind(value[1].get<std::string>());
  const TensorState* state = kind ? plan.tensors[listed.tensor].find(*kind) : nullptr;
  if (state == nullptr) return flaw.refuse(path, value, "a state of this tensor");
  listed.kind = *kind;
  const auto piece = read_piece(value[2], network::size_of(state->dtype), path, flaw);
  if (!piece) return;
  listed.piece = *piece;
  list.pieces.push_back(listed);
}

RankList read_list(const json& document, const SavePlan& plan, JsonFlaw& flaw) {
  JsonObject object(document, "", flaw);
  RankList list;
  list.step = object.whole("step");
  if (list.step != plan.step) {
    flaw.refuse(object.path("step"), json(list.step), fmt::format("{}", plan.step));
  }
  list.rank = static_cast<std::int32_t>(object.whole("rank"));
  list.file_bytes = object.whole("bytes");
  std::size_t index = 0;
  for (const json& piece : object.list("pieces")) {
    read_listed_piece(piece, fmt::format("/pieces/{}", index++), plan, list, flaw);
  }
  index = 0;
  for (const json& blob : object.list("blobs")) {
    list.blobs.push_back(read_blob(blob, fmt::format("/blobs/{}", index++), flaw));
  }
  object.finish();
  return list;
}

}  // namespace

std::string rank_list_file(std::int32_t rank) { return fmt::format("rank-{:04}.list", rank); }

std::string rank_list_text(const RankList& list) {
  json pieces = json::array();
  for (const ListedPiece& listed : list.pieces) {
    pieces.push_back(json::array({listed.tensor, name(listed.kind), piece_json(listed.piece)}));
  }
  json blobs = json::array();
  for (const Blob& blob : list.blobs) blobs.push_back(blob_json(blob));
  return json_line({{"step", list.step},
                    {"rank", list.rank},
                    {"bytes", list.file_bytes},
                    {"pieces", std::move(pieces)},
                    {"blobs", std::move(blobs)}});
}

Result<RankList> parse_rank_list(std::string_view text, std::string_view where,
                                 const SavePlan& plan) {
  const auto document = formats::parse_json(text, where);
  if (!document) return tl::unexpected<Error>(document.error());
  JsonFlaw flaw(where);
  RankList list = read_list(*document, plan, flaw);
  return flaw.result().map([&] { return std::move(list); });
}

std::string final_folder(const SavePlan& plan) { return plan.folder + "/" + step_name(plan.step); }

std::string temporary_folder(const SavePlan& plan) {
  return final_folder(plan) + std::string(kTemporary);
}

}  // namespace plimsoll::checkpoint
