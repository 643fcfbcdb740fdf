#include "plimsoll/checkpoint/manifest.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/checkpoint/checksum.hpp"

namespace plimsoll::checkpoint {
namespace {

// A place in a rank's file, and whose it is.
struct OwnedPlace {
  Place place;
  std::string owner;
};

// Checks one manifest; `where` leads every message.
class Check {
 public:
  Check(const Manifest& manifest, std::string_view where) : m_(manifest), where_(where) {}

  Result<void> run() {
    if (m_.step < 0) return refuse(fmt::format("step={}, expected at least 0", m_.step));
    if (m_.ranks < 1 || m_.file_bytes.size() != static_cast<std::size_t>(m_.ranks)) {
      return refuse(fmt::format("{} ranks and {} files, expected a file for each of at least one",
                                m_.ranks, m_.file_bytes.size()));
    }
    for (const Tensor& tensor : m_.tensors) {
      if (auto ok = check_tensor(tensor); !ok) return ok;
    }
    for (const Blob& blob : m_.blobs) {
      const std::string owner = fmt::format("blob {} of rank {}", blob.name, blob.place.rank);
      if (!blob_names_.emplace(blob.place.rank, blob.name).second) {
        return refuse(owner + " is there twice");
      }
      if (auto ok = check_place(blob.place, owner); !ok) return ok;
    }
    return check_overlaps();
  }

 private:
  tl::unexpected<Error> refuse(std::string what) const {
    return fail(std::string(where_), std::move(what));
  }

  Result<void> check_tensor(const Tensor& tensor) {
    if (tensor.name.empty()) return refuse("a tensor without a name");
    if (!names_.insert(tensor.name).second) {
      return refuse(fmt::format("tensor {} is there twice", tensor.name));
    }
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](auto n) { return n < 0; })) {
      return refuse(fmt::format("shape of {} has a size below 0", tensor.name));
    }
    std::set<StateKind> kinds;
    for (const TensorState& state : tensor.states) {
      if (!kinds.insert(state.kind).second) {
        return refuse(fmt::format("{} has two states {}", tensor.name, name(state.kind)));
      }
      if (auto ok = check_state(tensor, state); !ok) return ok;
    }
    return {};
  }

  // Its pieces follow one another from the first element to the last.
  Result<void> check_state(const Tensor& tensor, const TensorState& state) {
    std::int64_t next = 0;
    std::int64_t elements = 0;
    try {
      elements = element_count(tensor);
      checked_mul(elements, network::size_of(state.dtype));
    } catch (const OverflowError&) {
      return refuse(fmt::format("{} has more than 2^63 bytes", tensor.name));
    }
    for (const Piece& piece : state.pieces) {
      const std::string owner = piece_name(tensor, state.kind, piece.elements);
      if (piece.elements.begin != next || piece.elements.empty() || piece.elements.end > elements) {
        return refuse(fmt::format("{} does not follow element {} of {}: missing or written twice",
                                  owner, next, elements));
      }
      next = piece.elements.end;
      const std::int64_t bytes = piece.elements.size() * network::size_of(state.dtype);
      if (piece.place.bytes != bytes) {
        return refuse(fmt::format("{} has {} bytes, expected {}", owner, piece.place.bytes, bytes));
      }
      if (auto ok = check_place(piece.place, owner); !ok) return ok;
    }
    if (next == elements) return {};
    return refuse(
        fmt::format("{} is missing", piece_name(tensor, state.kind, shard::Range{next, elements})));
  }

  Result<void> check_place(const Place& place, const std::string& owner) {
    if (place.rank < 0 || place.rank >= m_.ranks) {
      return refuse(fmt::format("{} lies at rank {} of {}", owner, place.rank, m_.ranks));
    }
    const std::int64_t size = m_.file_bytes[static_cast<std::size_t>(place.rank)];
    const bool inside = place.offset >= 0 && place.bytes >= 0 && place.bytes <= size &&
                        place.offset <= size - place.bytes;
    if (!inside || place.offset % kPieceAlignment != 0) {
      return refuse(fmt::format(
          "{} lies at bytes {} + {} of {} with {}, expected inside and at a "
          "multiple of {}",
          owner, place.offset, place.bytes, rank_file(place.rank), size, kPieceAlignment));
    }
    if (place.bytes > 0) places_.push_back({place, owner});
    return {};
  }

  Result<void> check_overlaps() {
    const auto key = [](const OwnedPlace& s) { return std::pair(s.place.rank, s.place.offset); };
    std::sort(places_.begin(), places_.end(),
              [&](const OwnedPlace& a, const OwnedPlace& b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < places_.size(); ++i) {
      const Place& before = places_[i - 1].place;
      const Place& place = places_[i].place;
      if (before.rank != place.rank || before.offset + before.bytes <= place.offset) continue;
      return refuse(fmt::format("{} and {} lie over each other in {}", places_[i - 1].owner,
                                places_[i].owner, rank_file(place.rank)));
    }
    return {};
  }

  const Manifest& m_;
  const std::string_view where_;
  std::set<std::string_view> names_;
  std::set<std::pair<std::int32_t, std::string_view>> blob_names_;
  std::vector<OwnedPlace> places_;
};

}  // namespace

std::string_view name(StateKind kind) {
  switch (kind) {
    case StateKind::kWeight:
      return "weight";
    case StateKind::kFirstMoment:
      return "first_moment";
    case StateKind::kSecondMoment:
      return "second_moment";
    case StateKind::kBuffer:
      return "buffer";
  }
  return "";
}

const TensorState* Tensor::find(StateKind kind) const {
  const auto found = std::find_if(states.begin(), states.end(),
                                  [&](const TensorState& state) { return state.kind == kind; });
  return found == states.end() ? nullptr : &*found;
}

const Tensor* Manifest::find(std::string_view wanted) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == wanted; });
  return found == tensors.end() ? nullptr : &*found;
}

std::int64_t element_count(const Tensor& tensor) {
  std::int64_t count = 1;
  for (std::int64_t size : tensor.shape) count = checked_mul(count, size);
  return count;
}

Result<void> check_manifest(const Manifest& manifest, std::string_view where) {
  return Check(manifest, where).run();
}

std::string step_name(std::int64_t step) { return fmt::format("step-{:08}", step); }
std::string rank_file(std::int32_t rank) { return fmt::format("rank-{:04}.bin", rank); }

std::string marker_text(std::int64_t step, std::string_view manifest) {
  const std::string body =
      fmt::format("{}\nstep {}\n{} {} bytes, xxh3 {}\n", kFormat, step, kManifestFile,
                  manifest.size(), checksum_text(checksum_of(manifest)));
  return body + fmt::format("xxh3 {}\n", checksum_text(checksum_of(body)));
}

std::string piece_name(const Tensor& tensor, StateKind kind, const shard::Range& elements) {
  return fmt::format("{} {} [{}, {})", tensor.name, name(kind), elements.begin, elements.end);
}

}  // namespace plimsoll::checkpoint
