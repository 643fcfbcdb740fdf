#include "plimsoll/network/adaptation.hpp"

#include <algorithm>

#include "plimsoll/network/network.hpp"

namespace plimsoll::network {

std::string_view name(Matrix matrix) {
  switch (matrix) {
    case Matrix::kQ:
      return "q";
    case Matrix::kK:
      return "k";
    case Matrix::kV:
      return "v";
    case Matrix::kQkv:
      return "qkv";
    case Matrix::kOutput:
      return "o";
    case Matrix::kGate:
      return "gate";
    case Matrix::kUp:
      return "up";
    case Matrix::kGateUp:
      return "gate_up";
    case Matrix::kDown:
      return "down";
  }
  return "?";
}

std::vector<Matrix> matrices_of(const NetworkSpec& spec) {
  if (spec.family == Family::kCnn) return {};
  const Architecture& a = spec.architecture;
  std::vector<Matrix> result{Matrix::kQkv};
  if (a.qkv == QkvLayout::kSeparate) result = {Matrix::kQ, Matrix::kK, Matrix::kV};
  result.push_back(Matrix::kOutput);
  if (a.fused_gate_up) {
    result.push_back(Matrix::kGateUp);
  } else {
    if (a.gated) result.push_back(Matrix::kGate);
    result.push_back(Matrix::kUp);
  }
  result.push_back(Matrix::kDown);
  return result;
}

bool Lora::has(Matrix matrix) const {
  return std::find(targets.begin(), targets.end(), matrix) != targets.end();
}

bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last * met, and how far it reaches
  std::size_t reach = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      reach = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++reach;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches(const FreezeRule& rule, const Parameter& parameter, std::string_view place) {
  switch (rule.kind) {
    case FreezeKind::kEmbeddings:
      return place == "embeddings";
    case FreezeKind::kHead:
      return place == "head";
    case FreezeKind::kLayers:
      return parameter.unit >= rule.first && parameter.unit <= rule.last;
    case FreezeKind::kName:
      break;
  }
  return matches_pattern(rule.text, parameter.name);
}

}  // namespace plimsoll::network
