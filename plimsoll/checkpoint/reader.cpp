#include "plimsoll/checkpoint/reader.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/checkpoint/background_checks.hpp"
#include "plimsoll/checkpoint/checksum.hpp"
#include "plimsoll/checkpoint/file.hpp"
#include "plimsoll/checkpoint/verify.hpp"

namespace plimsoll::checkpoint {

struct Reader::State {
  std::string folder;
  Manifest manifest;
  std::map<std::string_view, const Tensor*> by_name = {};
  std::vector<std::optional<InputFile>> files = {};  // by rank, opened when needed
  std::int64_t bytes_read = 0;
  BackgroundChecks checks = {};

  State(std::string path, Manifest read) : folder(std::move(path)), manifest(std::move(read)) {}

  Result<void> read(const Place& place, std::int64_t skipped, std::span<std::byte> out) {
    auto& file = files[static_cast<std::size_t>(place.rank)];
    if (!file) {
      auto opened = InputFile::open(folder + "/" + rank_file(place.rank));
      if (!opened) return tl::unexpected<Error>(opened.error());
      file.emplace(*std::move(opened));
    }
    bytes_read += static_cast<std::int64_t>(out.size());
    return file->read(place.offset + skipped, out);
  }

  // Every piece that has some of the elements gives its part of `out`.
  Result<void> read_pieces(const Tensor& tensor, const TensorState& state,
                           const shard::Range& elements, std::span<std::byte> out) {
    const std::int64_t size = network::size_of(state.dtype);
    auto piece = std::upper_bound(
        state.pieces.begin(), state.pieces.end(), elements.begin,
        [](std::int64_t element, const Piece& p) { return element < p.elements.end; });
    for (; piece != state.pieces.end() && piece->elements.begin < elements.end; ++piece) {
      const shard::Range common = intersection(piece->elements, elements);
      const auto part =
          out.subspan(static_cast<std::size_t>((common.begin - elements.begin) * size),
                      static_cast<std::size_t>(common.size() * size));
      const std::int64_t skipped = (common.begin - piece->elements.begin) * size;
      if (auto done = read(piece->place, skipped, part); !done) {
        // The caller may let go of what earlier pieces were read into.
        static_cast<void>(checks.wait());
        return done;
      }
      if (common != piece->elements) continue;
      checks.add([this, part, &place = piece->place, &tensor, kind = state.kind, common] {
        return compare(place, piece_name(tensor, kind, common), part);
      });
    }
    return {};
  }

  // Also called by the thread of `checks`: reads only what never changes.
  Result<void> compare(const Place& place, const std::string& piece,
                       std::span<const std::byte> bytes) const {
    const std::uint64_t sum = checksum_of(bytes);
    if (sum == place.checksum) return {};
    return fail(folder + "/" + rank_file(place.rank),
                fmt::format("{}: checksum {}, expected {}", piece, checksum_text(sum),
                            checksum_text(place.checksum)),
                "the file is damaged; an earlier checkpoint may be whole");
  }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const std::string& checkpoint_folder) {
  Verification found = verify(checkpoint_folder, Depth::kStructure);
  if (!found.findings.empty()) {
    return fail(checkpoint_folder, finding_text(found.findings.front()));
  }
  auto state = std::make_unique<State>(checkpoint_folder, *std::move(found.manifest));
  for (const Tensor& tensor : state->manifest.tensors) state->by_name[tensor.name] = &tensor;
  state->files.resize(static_cast<std::size_t>(state->manifest.ranks));
  return Reader(std::move(state));
}

const Manifest& Reader::manifest() const { return state_->manifest; }
std::int64_t Reader::bytes_read() const { return state_->bytes_read; }

Result<void> Reader::read(std::string_view tensor, StateKind kind, const shard::Range& elements,
                          std::span<std::byte> out) {
  const auto found = state_->by_name.find(tensor);
  if (found == state_->by_name.end()) {
    return fail(state_->folder, fmt::format("has no tensor {}", tensor),
                "it is a checkpoint of another model");
  }
  const Tensor& whole = *found->second;
  const TensorState* state = whole.find(kind);
  if (state == nullptr) {
    return fail(state_->folder, fmt::format("has no {} of {}", name(kind), tensor),
                "it was written with another optimizer");
  }
  if (elements.empty()) return {};
  if (elements.begin < 0 || elements.end > element_count(whole)) {
    return fail(state_->folder,
                fmt::format("{} is wanted, it has {} elements", piece_name(whole, kind, elements),
                            element_count(whole)),
                "it is a checkpoint of another model");
  }
  check(static_cast<std::int64_t>(out.size()) == elements.size() * network::size_of(state->dtype),
        "the buffer does not fit the range that is read");
  return state_->read_pieces(whole, *state, elements, out);
}

Result<void> Reader::compare_checksums() { return state_->checks.wait(); }

Result<std::vector<std::byte>> Reader::read_blob(std::int32_t rank, std::string_view name) {
  const auto& blobs = state_->manifest.blobs;
  const auto found = std::find_if(blobs.begin(), blobs.end(), [&](const Blob& blob) {
    return blob.place.rank == rank && blob.name == name;
  });
  if (found == blobs.end()) {
    return fail(state_->folder, fmt::format("has no blob {} of rank {}", name, rank));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(found->place.bytes));
  return state_->read(found->place, 0, bytes)
      .and_then([&] {
        return state_->compare(found->place, fmt::format("blob {} of rank {}", name, rank), bytes);
      })
      .map([&] { return std::move(bytes); });
}

}  // namespace plimsoll::checkpoint
