#include "plimsoll/checkpoint/pieces_json.hpp"

#include <array>
#include <limits>

#include "plimsoll/checkpoint/checksum.hpp"

namespace plimsoll::checkpoint {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostRanks = std::numeric_limits<std::int32_t>::max();

std::int32_t rank_or_minus_one(const json& value) {
  const std::int64_t rank = whole_or_minus_one(value);
  return rank < kMostRanks ? static_cast<std::int32_t>(rank) : -1;
}

std::optional<std::uint64_t> checksum_in(const json& value) {
  return value.is_string() ? parse_checksum(value.get_ref<const std::string&>()) : std::nullopt;
}

}  // namespace

json piece_json(const Piece& piece) {
  return json::array({piece.place.rank, piece.elements.begin, piece.elements.end,
                      piece.place.offset, checksum_text(piece.place.checksum)});
}

std::optional<Piece> read_piece(const json& value, std::int64_t element_bytes,
                                const std::string& path, JsonFlaw& flaw) {
  constexpr std::string_view kExpected = "[rank, begin, end, offset, \"16 hexadecimal digits\"]";
  Piece piece;
  const bool five = value.is_array() && value.size() == 5;
  const auto checksum = five ? checksum_in(value[4]) : std::nullopt;
  if (checksum) {
    piece.place = {rank_or_minus_one(value[0]), whole_or_minus_one(value[3]), 0, *checksum};
    piece.elements = {whole_or_minus_one(value[1]), whole_or_minus_one(value[2])};
  }
  const std::int64_t begin = piece.elements.begin;
  const bool whole = checksum && piece.place.rank >= 0 && piece.place.offset >= 0 && begin >= 0;
  if (!whole || piece.elements.end <= begin ||
      __builtin_mul_overflow(piece.elements.size(), element_bytes, &piece.place.bytes)) {
    flaw.refuse(path, value, kExpected);
    return std::nullopt;
  }
  return piece;
}

json blob_json(const Blob& blob) {
  return {{"rank", blob.place.rank},
          {"name", blob.name},
          {"offset", blob.place.offset},
          {"bytes", blob.place.bytes},
          {"checksum", checksum_text(blob.place.checksum)}};
}

Blob read_blob(const json& value, const std::string& path, JsonFlaw& flaw) {
  JsonObject object(value, path, flaw);
  Blob blob;
  blob.name = object.text("name");
  const std::int64_t rank = object.whole("rank");
  if (rank >= kMostRanks) flaw.refuse(object.path("rank"), "is no rank");
  const std::string checksum = object.text("checksum");
  if (!parse_checksum(checksum)) {
    flaw.refuse(object.path("checksum"), json(checksum), "16 hexadecimal digits");
  }
  blob.place = {static_cast<std::int32_t>(rank), object.whole("offset"), object.whole("bytes"),
                parse_checksum(checksum).value_or(0)};
  object.finish();
  return blob;
}

std::optional<StateKind> parse_state_kind(std::string_view text) {
  for (StateKind kind : std::array{StateKind::kWeight, StateKind::kFirstMoment,
                                   StateKind::kSecondMoment, StateKind::kBuffer}) {
    if (name(kind) == text) return kind;
  }
  return std::nullopt;
}

std::string json_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace plimsoll::checkpoint
