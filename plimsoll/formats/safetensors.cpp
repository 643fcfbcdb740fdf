#include "plimsoll/formats/safetensors.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/formats/json_text.hpp"
#include "plimsoll/formats/shard_index.hpp"
#include "plimsoll/formats/text_file.hpp"

namespace plimsoll::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The format's own limit.
constexpr std::int64_t kLongestHeader = 100'000'000;
constexpr std::int64_t kLengthBytes = 8;

struct DtypeFact {
  std::string_view name;
  std::int64_t bits;
  bool parameters;  // see DtypeCount
};

constexpr std::array<DtypeFact, 22> kDtypes = {{
    {"F64", 64, true},        {"F32", 32, true},        {"F16", 16, true},
    {"BF16", 16, true},       {"F8_E4M3", 8, true},     {"F8_E5M2", 8, true},
    {"F8_E4M3FNUZ", 8, true}, {"F8_E5M2FNUZ", 8, true}, {"F8_E8M0", 8, false},
    {"F6_E2M3", 6, false},    {"F6_E3M2", 6, false},    {"F4", 4, false},
    {"I64", 64, false},       {"U64", 64, false},       {"I32", 32, false},
    {"U32", 32, false},       {"I16", 16, false},       {"U16", 16, false},
    {"I8", 8, false},         {"U8", 8, false},         {"BOOL", 8, false},
    {"C64", 64, true},
}};

const DtypeFact* find_dtype(std::string_view name) {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const DtypeFact& fact) { return fact.name == name; });
  return found == kDtypes.end() ? nullptr : &*found;
}

struct Placed {
  TensorEntry tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Reads one entry of the header; `where` is its JSON path.
class EntryReader {
 public:
  EntryReader(const json& entry, std::string where) : entry_(entry), where_(std::move(where)) {}

  Result<Placed> read(const std::string& name) {
    if (!entry_.is_object()) return refuse("", entry_, "an object");
    Placed placed;
    placed.tensor.name = name;
    return read_dtype(placed)
        .and_then([&] { return read_shape(placed); })
        .and_then([&] { return read_offsets(placed); })
        .map([&] { return placed; });
  }

 private:
  tl::unexpected<Error> refuse(std::string_view path, const json& value,
                               std::string_view expected) const {
    return fail(where_ + std::string(path),
                fmt::format("{}, expected {}", json_value_text(value), expected));
  }

  json member(const char* key) const {
    const auto found = entry_.find(key);
    return found == entry_.end() ? json() : *found;
  }

  Result<void> read_dtype(Placed& placed) const {
    const json dtype = member("dtype");
    if (!dtype.is_string()) return refuse("/dtype", dtype, "the name of a dtype");
    placed.tensor.dtype = dtype.get<std::string>();
    if (find_dtype(placed.tensor.dtype) != nullptr) return {};
    return refuse("/dtype", dtype, "a dtype of the safetensors format");
  }

  Result<void> read_shape(Placed& placed) const {
    const json shape = member("shape");
    if (!shape.is_array()) return refuse("/shape", shape, "a list of sizes");
    try {
      std::int64_t elements = 1;
      for (const json& size : shape) {
        const auto value = whole(size);
        if (value < 0) return refuse("/shape", shape, "whole numbers of at least 0");
        placed.tensor.shape.push_back(value);
        elements = checked_mul(elements, value);
      }
      const std::int64_t bits = checked_mul(elements, find_dtype(placed.tensor.dtype)->bits);
      if (bits % 8 != 0) return refuse("/shape", shape, "elements that fill whole bytes");
      placed.tensor.elements = elements;
      placed.tensor.bytes = bits / 8;
      return {};
    } catch (const OverflowError&) {
      return refuse("/shape", shape, "at most 2^63 bits");
    }
  }

  Result<void> read_offsets(Placed& placed) const {
    const json offsets = member("data_offsets");
    const bool pair = offsets.is_array() && offsets.size() == 2;
    placed.begin = pair ? whole(offsets[0]) : -1;
    placed.end = pair ? whole(offsets[1]) : -1;
    if (placed.begin < 0 || placed.end < placed.begin) {
      return refuse("/data_offsets", offsets, "[begin, end] in bytes");
    }
    if (placed.end - placed.begin == placed.tensor.bytes) return {};
    return refuse("/data_offsets", offsets,
                  fmt::format("{} bytes for shape and dtype", placed.tensor.bytes));
  }

  // -1 for everything that is not a whole number of int64.
  static std::int64_t whole(const json& value) {
    if (!value.is_number_unsigned()) return -1;
    const auto number = value.get<std::uint64_t>();
    constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX);
    return number <= kMost ? static_cast<std::int64_t>(number) : -1;
  }

  const json& entry_;
  std::string where_;
};

// Data lies in one piece: tensor after tensor, to the end of the file.
Result<void> check_layout(const std::vector<Placed>& placed, std::int64_t data_bytes,
                          std::string_view where) {
  std::int64_t end = 0;
  for (const Placed& p : placed) {
    const std::string place = json_where(where, json_step(p.tensor.name) + "/data_offsets");
    if (p.begin != end) {
      return fail(place, fmt::format("begins at {}, expected {}: data has a gap or overlaps",
                                     p.begin, end));
    }
    end = p.end;
  }
  if (end == data_bytes) return {};
  return fail(std::string(where),
              fmt::format("the tensors need {} bytes of data, the file has {}", end, data_bytes),
              end > data_bytes ? "the file is cut off" : "");
}

Result<std::string> read_header_text(const std::string& path, std::int64_t file_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, kLengthBytes> raw{};
  if (!file.read(reinterpret_cast<char*>(raw.data()), kLengthBytes)) {
    return fail(path,
                fmt::format("{} bytes, expected a header length of 8 bytes first", file_bytes));
  }
  std::uint64_t length = 0;
  for (std::size_t i = raw.size(); i-- > 0;) length = (length << 8U) | raw[i];
  const auto most = static_cast<std::uint64_t>(std::min(kLongestHeader, file_bytes - kLengthBytes));
  if (length > most) {
    return fail(path, fmt::format("a header of {} bytes, expected at most {}", length, most),
                "is it a .safetensors file, and whole?");
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  if (!file.read(header.data(), static_cast<std::streamsize>(length))) {
    return fail(path, "cannot be read: input error");
  }
  return header;
}

}  // namespace

Result<std::vector<TensorEntry>> parse_safetensors_header(std::string_view header,
                                                          std::int64_t data_bytes,
                                                          std::string_view where) {
  const auto document = parse_json(header, where);
  if (!document) return tl::unexpected<Error>(document.error());
  if (!document->is_object()) return fail(std::string(where), "expected a JSON object as header");
  std::vector<Placed> placed;
  for (const auto& item : document->items()) {
    if (item.key() == "__metadata__") continue;
    EntryReader reader(item.value(), json_where(where, json_step(item.key())));
    auto entry = reader.read(item.key());
    if (!entry) return tl::unexpected<Error>(entry.error());
    placed.push_back(*std::move(entry));
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  if (auto layout = check_layout(placed, data_bytes, where); !layout) {
    return tl::unexpected<Error>(layout.error());
  }
  std::vector<TensorEntry> tensors;
  for (Placed& p : placed) tensors.push_back(std::move(p.tensor));
  return tensors;
}

Result<std::vector<TensorEntry>> read_safetensors_header(const std::string& path) {
  std::error_code problem;
  const fs::file_type type = fs::status(path, problem).type();
  if (type == fs::file_type::not_found) return fail(path, "no such file");
  if (type != fs::file_type::regular) {
    return fail(path, fmt::format("is {}, expected a regular file", kind_of_file(type)));
  }
  const auto file_bytes = static_cast<std::int64_t>(fs::file_size(path, problem));
  if (problem) return fail(path, "cannot be read: " + problem.message());
  const auto header = read_header_text(path, file_bytes);
  if (!header) return tl::unexpected<Error>(header.error());
  const auto length = static_cast<std::int64_t>(header->size());
  return parse_safetensors_header(*header, file_bytes - kLengthBytes - length, path);
}

Result<std::vector<TensorEntry>> read_safetensors_folder(const std::string& path) {
  std::vector<fs::path> files;
  std::error_code problem;
  for (fs::directory_iterator it(path, problem); !problem && it != fs::directory_iterator();
       it.increment(problem)) {
    if (it->path().extension() == ".safetensors") files.push_back(it->path());
  }
  if (problem) return fail(path, "cannot be read: " + problem.message());
  if (files.empty()) return fail(path, "has no .safetensors file");
  std::sort(files.begin(), files.end());
  std::vector<TensorEntry> all;
  std::set<std::string> names;
  for (const fs::path& file : files) {
    auto tensors = read_safetensors_header(file.string());
    if (!tensors) return tensors;
    for (TensorEntry& tensor : *tensors) {
      if (!names.insert(tensor.name).second) {
        return fail(file.string(), fmt::format("{} is in an earlier file too", tensor.name),
                    "a folder should hold the shards of one model");
      }
      all.push_back(std::move(tensor));
    }
  }
  if (auto index = check_shard_index(path, all); !index) {
    return tl::unexpected<Error>(index.error());
  }
  return all;
}

std::vector<DtypeCount> count_by_dtype(std::span<const TensorEntry> tensors) {
  std::vector<DtypeCount> counts;
  for (const TensorEntry& tensor : tensors) {
    auto found = std::find_if(counts.begin(), counts.end(),
                              [&](const DtypeCount& count) { return count.dtype == tensor.dtype; });
    if (found == counts.end()) {
      const DtypeFact* fact = find_dtype(tensor.dtype);
      counts.push_back({.dtype = tensor.dtype, .parameters = fact != nullptr && fact->parameters});
      found = counts.end() - 1;
    }
    ++found->tensors;
    found->elements = checked_add(found->elements, tensor.elements);
    found->bytes = checked_add(found->bytes, tensor.bytes);
  }
  return counts;
}

}  // namespace plimsoll::formats
