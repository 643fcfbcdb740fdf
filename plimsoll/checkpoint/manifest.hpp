// What a sharded checkpoint consists of: the manifest that lies in each of them as manifest.json.
//
//   DIR/step-00000120/          one checkpoint
//     rank-0000.bin ...         what each rank wrote, one piece after the other
//     manifest.json             which tensors there are, and where each of their elements lies
//     COMPLETE                  written last; a folder without it is no checkpoint
//   DIR/step-00000120.tmp/      one that is being written, or what an interrupted save left
//
// [Note: pieces] A tensor is its elements in row-major order, whatever its shape. A piece is a stretch
// of them in one file, at a multiple of 64 bytes, with a checksum of its own; the bytes between pieces
// are zero. State is found by name, kind and range, never by position. The pieces of a state cover
// it exactly once, so whoever needs any range of it, at any number of ranks and any stage, intersects
// ranges; nothing of how the writers were divided has to be known.
//
// Elements are little-endian, as in memory. Everything here speaks of all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/error.hpp"
#include "plimsoll/network/dtype.hpp"
#include "plimsoll/shard/partition.hpp"
#include "plimsoll/shard/stage.hpp"

namespace plimsoll::checkpoint {

// A version that changes what files mean gets another number. Other numbers are refused.
inline constexpr std::string_view kFormat = "plimsoll.checkpoint/1";
inline constexpr std::int64_t kPieceAlignment = 64;            // bytes
inline constexpr std::int64_t kLargestManifest = 256LL << 20;  // bytes

enum class StateKind : std::uint8_t {
  kWeight,  // what the optimizer updates: masters where there are some, else the parameter itself
  kFirstMoment,
  kSecondMoment,
  kBuffer,  // of a module: no parameter, the same on all ranks (running means)
};
std::string_view name(StateKind kind);  // "weight", "first_moment", "second_moment", "buffer"

// Where bytes lie.
struct Place {
  std::int32_t rank = 0;  // file rank-NNNN.bin
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3, 64 bits
  bool operator==(const Place&) const = default;
};

struct Piece {
  shard::Range elements;  // of the tensor
  Place place;
  bool operator==(const Piece&) const = default;
};

struct TensorState {
  StateKind kind = StateKind::kWeight;
  network::DType dtype = network::DType::kFloat32;
  std::vector<Piece> pieces;  // ascending; in a list of what is to be saved: none
  bool operator==(const TensorState&) const = default;
};

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;  // {} is a scalar; sizes of 0 are allowed
  std::vector<TensorState> states;  // each kind at most once
  bool operator==(const Tensor&) const = default;

  const TensorState* find(StateKind kind) const;  // null: it has none
};
// Product of the shape. OverflowError when it leaves 64 bits.
std::int64_t element_count(const Tensor& tensor);

// Bytes of one rank that are no tensor: "random" is the state of its generators.
struct Blob {
  std::string name;
  Place place;
  bool operator==(const Blob&) const = default;
};

// Names and values, spelled by who writes them (numbers with fmt's "{}", which reads back exactly).
using Fields = std::map<std::string, std::string>;

// What a run has to know beside its tensors.
struct RunState {
  // formats::describe_model(MODEL): load_described_model() makes the spec of it, without other files.
  std::string model;
  std::int64_t optimizer_steps = 0;  // taken so far, skipped ones not counted
  Fields schedule;                   // of the learning rate
  Fields data;                       // the cursor: seed, position, which file
  Fields settings;                   // the job and the options
  Fields progress;                   // tokens seen, losses, ...
  bool operator==(const RunState&) const = default;
};

struct Manifest {
  std::int64_t step = 0;  // steps that the run has made
  std::int32_t ranks = 1;
  shard::Stage stage = shard::Stage::kNothing;
  std::vector<std::int64_t> file_bytes;  // by rank
  std::vector<Tensor> tensors;
  std::vector<Blob> blobs;
  RunState run;
  bool operator==(const Manifest&) const = default;

  const Tensor* find(std::string_view name) const;  // null: there is none
};

// Whether the pieces of each state cover it exactly once, lie aligned inside their files and do not
// overlap there, names are unique, ...: the first flaw as an Error at `where`.
Result<void> check_manifest(const Manifest& manifest, std::string_view where);

// JSON and back. Reading is strict: unknown and missing keys, other formats, everything that
// check_manifest() refuses and more than kLargestManifest bytes are Errors that name the JSON path.
std::string manifest_text(const Manifest& manifest);
Result<Manifest> parse_manifest(std::string_view text, std::string_view where);

// --- names of files

std::string step_name(std::int64_t step);  // "step-00000120"
std::string rank_file(std::int32_t rank);  // "rank-0003.bin"
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kMarkerFile = "COMPLETE";

inline constexpr std::string_view kEndedFile = "ENDED";  // in DIR, see mark_ended()
inline constexpr std::string_view kTemporary = ".tmp";   // behind the name of a folder

// What the marker says: format, step, size and checksum of the manifest, checksum of itself.
std::string marker_text(std::int64_t step, std::string_view manifest);

// "blocks.0.attn.qkv.weight first_moment [128, 256)", for messages.
std::string piece_name(const Tensor& tensor, StateKind kind, const shard::Range& elements);

}  // namespace plimsoll::checkpoint
