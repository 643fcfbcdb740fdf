// Pieces and blobs as JSON, the same in manifests and in what ranks leave for them.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "plimsoll/checkpoint/json_object.hpp"
#include "plimsoll/checkpoint/manifest.hpp"

namespace plimsoll::checkpoint {

// [rank, begin, end, offset, "checksum"]; bytes follow from the range and `element_bytes`.
nlohmann::json piece_json(const Piece& piece);
std::optional<Piece> read_piece(const nlohmann::json& value, std::int64_t element_bytes,
                                const std::string& path, JsonFlaw& flaw);

nlohmann::json blob_json(const Blob& blob);
Blob read_blob(const nlohmann::json& value, const std::string& path, JsonFlaw& flaw);

std::optional<StateKind> parse_state_kind(std::string_view text);

// Compact JSON with a line end. Names that are not UTF-8 get replacement characters.
std::string json_line(const nlohmann::json& value);

}  // namespace plimsoll::checkpoint
