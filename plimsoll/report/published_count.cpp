#include "plimsoll/report/published_count.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "plimsoll/base/checked.hpp"
#include "plimsoll/base/number_text.hpp"
#include "plimsoll/network/families/families.hpp"

namespace plimsoll::report {
namespace {

// --- the fewest terms that add up

using Parts = std::vector<DifferencePart>;

// Appends to `chosen` exactly `count` of the habits from `from` on that sum to `rest`.
bool choose(const Parts& habits, std::size_t from, std::size_t count, std::int64_t rest,
            Parts& chosen) {
  if (count == 0) return rest == 0;
  for (std::size_t i = from; i < habits.size(); ++i) {
    chosen.push_back(habits[i]);
    if (choose(habits, i + 1, count - 1, rest - habits[i].count, chosen)) return true;
    chosen.pop_back();
  }
  return false;
}

Parts explain(const Parts& habits, std::int64_t difference) {
  constexpr std::size_t kMostTerms = 5;
  for (std::size_t count = 1; count <= kMostTerms; ++count) {
    Parts chosen;
    if (choose(habits, 0, count, difference, chosen)) return chosen;
  }
  return {};
}

// Half a unit of the last digit that is not 0: 6700000000 -> 50000000.
std::optional<DifferencePart> rounding(std::int64_t published, std::int64_t difference) {
  std::int64_t unit = 1;
  constexpr std::int64_t kLargestUnit = 1'000'000'000'000'000;
  while (unit < kLargestUnit && published % (unit * 10) == 0) unit *= 10;
  if (unit < 1000 || std::abs(difference) > unit / 2) return std::nullopt;
  return DifferencePart{fmt::format("the published count is a multiple of {}", grouped(unit)),
                        "rounding", difference};
}

PublishedCount explained(const Parts& habits, const Parts& rules, std::int64_t calculated,
                         std::int64_t published) {
  PublishedCount result;
  result.published = published;
  result.difference = published - calculated;
  result.unexplained = result.difference;
  if (result.difference == 0) return result;
  result.parts = explain(habits, result.difference);
  if (result.parts.empty()) {
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const DifferencePart& part) {
      return part.count == result.difference;
    });
    if (rule != rules.end()) result.parts.push_back(*rule);
  }
  if (result.parts.empty()) {
    if (auto part = rounding(published, result.difference)) result.parts.push_back(*part);
  }
  for (const DifferencePart& part : result.parts) result.unexplained -= part.count;
  return result;
}

// --- weights files

// Sizes above 1, largest first: transposed and unsqueezed matrices look alike.
std::vector<std::int64_t> shape_key(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  std::sort(shape.begin(), shape.end(), std::greater<>());
  return shape;
}

// "model.layers.12.mlp" -> "model.layers.*.mlp".
std::string pattern(std::string_view name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    const bool begins = i == 0 || name[i - 1] == '.';
    if (digit && begins) result += '*';
    const bool continues = digit && !result.empty() && result.back() == '*';
    if (!continues) result += name[i];
  }
  return result;
}

struct Ours {
  std::string name;
  std::vector<std::int64_t> key;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::int64_t experts_of = -1;  // the layer, of tensors that hold experts
  bool matched = false;
};

template <class Parameters>
std::vector<Ours> listed(const Parameters& parameters) {
  std::vector<Ours> ours;
  for (const auto& p : parameters) {
    const std::vector<std::int64_t> shape(p.shape.begin(), p.shape.end());
    ours.push_back({p.name, shape_key(shape), shape, network::element_count(p.shape), -1, false});
  }
  return ours;
}

std::vector<Ours> counted(const formats::CountedModel& model) {
  if (!model.inventory) {
    network::BuildOptions options;
    options.sequence = 1;  // sizes of a run do not matter here
    return listed(network::build_network(*model.spec, options).parameters);
  }
  const auto& parameters = model.inventory->inventory.parameters;
  std::vector<Ours> ours = listed(parameters);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (parameters[i].role == network::ParameterRole::kExperts) {
      ours[i].experts_of = parameters[i].layer;
    }
  }
  return ours;
}

// "transformer.wte.weight" and "wte.weight" are one: files may leave the model's prefix out.
bool same_name(std::string_view ours, std::string_view theirs) {
  if (ours == theirs) return true;
  const auto ends = [](std::string_view text, std::string_view tail) {
    return text.size() > tail.size() && text.ends_with(tail) &&
           text[text.size() - tail.size() - 1] == '.';
  };
  return ends(ours, theirs) || ends(theirs, ours);
}

bool take(std::vector<Ours>& ours, const formats::TensorEntry& tensor, bool by_name) {
  const auto key = shape_key(tensor.shape);
  const auto found = std::find_if(ours.begin(), ours.end(), [&](const Ours& o) {
    return !o.matched && o.key == key && (!by_name || same_name(o.name, tensor.name));
  });
  if (found == ours.end()) return false;
  found->matched = true;
  return true;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// One part per pattern of names, each tensor adding to it.
class Groups {
 public:
  void add(std::string_view what, const std::string& name, const std::vector<std::int64_t>& shape,
           std::int64_t elements) {
    const std::string title = fmt::format("{}: {} {}", what, pattern(name), shape_text(shape));
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const Group& g) { return g.title == title; });
    Group& group = found != groups_.end() ? *found : groups_.emplace_back(Group{title, 0, 0});
    ++group.tensors;
    group.elements = checked_add(group.elements, elements);
  }

  Parts parts() const {
    Parts parts;
    for (const Group& g : groups_) {
      parts.push_back({g.title, fmt::format("{} tensors", g.tensors), g.elements});
    }
    return parts;
  }

 private:
  struct Group {
    std::string title;
    std::int64_t tensors;
    std::int64_t elements;
  };
  std::vector<Group> groups_;
};

// "model.layers.12.mlp.experts.0.w1.weight" -> 12; -1: no expert of a layer.
std::int64_t expert_layer(std::string_view name) {
  const std::size_t experts = name.find(".experts.");
  if (experts == std::string_view::npos) return -1;
  for (std::size_t i = 0; i < experts; ++i) {
    if (name[i] != '.' || i + 1 >= experts || name[i + 1] < '0' || name[i + 1] > '9') continue;
    std::int64_t layer = 0;
    for (std::size_t j = i + 1; j < experts && name[j] >= '0' && name[j] <= '9'; ++j) {
      layer = std::min<std::int64_t>(layer * 10 + (name[j] - '0'), 1'000'000);
    }
    return layer;
  }
  return -1;
}

// Matches the experts of layers whose tensors have as many elements on both sides.
void take_experts(std::vector<Ours>& ours, std::vector<const formats::TensorEntry*>& rest) {
  std::map<std::int64_t, std::int64_t> difference;
  for (const Ours& o : ours) {
    if (o.experts_of >= 0 && !o.matched) difference[o.experts_of] += o.elements;
  }
  for (const formats::TensorEntry* tensor : rest) {
    const auto layer = difference.find(expert_layer(tensor->name));
    if (layer != difference.end()) layer->second -= tensor->elements;
  }
  const auto same = [&](std::int64_t layer) {
    const auto found = difference.find(layer);
    return found != difference.end() && found->second == 0;
  };
  for (Ours& o : ours) {
    if (o.experts_of >= 0 && same(o.experts_of)) o.matched = true;
  }
  std::erase_if(rest, [&](const auto* tensor) { return same(expert_layer(tensor->name)); });
}

bool counts_as_parameters(const formats::TensorEntry& tensor) {
  return formats::count_by_dtype({&tensor, 1}).front().parameters;
}

}  // namespace

PublishedCount explain_number(const formats::CountedModel& model, std::int64_t calculated,
                              std::int64_t published) {
  return explained(counting_habits(model), rules_of_thumb(model, calculated), calculated,
                   published);
}

PublishedCount explain_number(std::int64_t calculated, std::int64_t published) {
  return explained({}, {}, calculated, published);
}

PublishedCount explain_weights(const formats::CountedModel& model,
                               std::span<const formats::TensorEntry> tensors, std::string file) {
  std::vector<Ours> ours = counted(model);
  std::int64_t calculated = 0;
  for (const Ours& o : ours) calculated = checked_add(calculated, o.elements);
  std::vector<const formats::TensorEntry*> rest;
  PublishedCount result;
  result.file = std::move(file);
  for (const formats::TensorEntry& tensor : tensors) {
    if (!counts_as_parameters(tensor)) continue;
    result.published = checked_add(result.published, tensor.elements);
    if (!take(ours, tensor, /*by_name=*/true)) rest.push_back(&tensor);
  }
  take_experts(ours, rest);
  Groups groups;
  for (const formats::TensorEntry* tensor : rest) {
    if (take(ours, *tensor, /*by_name=*/false)) continue;
    groups.add("only in the file", tensor->name, tensor->shape, tensor->elements);
  }
  for (const Ours& o : ours) {
    if (!o.matched) groups.add("not in the file", o.name, o.shape, -o.elements);
  }
  result.difference = result.published - calculated;
  result.parts = groups.parts();
  result.unexplained = result.difference;
  for (const DifferencePart& part : result.parts) result.unexplained -= part.count;
  return result;
}

}  // namespace plimsoll::report
