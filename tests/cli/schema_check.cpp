#include "tests/cli/schema_check.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace plimsoll::test {
namespace {

using nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  throw std::runtime_error("unknown type in a schema: " + type);
}

class Checker {
 public:
  explicit Checker(const json& root) : root_(root) {}

  void check(const json& schema, const json& value, const std::string& path) {
    if (schema.contains("$ref")) return check(referenced(schema["$ref"]), value, path);
    for (const auto& [keyword, rule] : schema.items()) apply(keyword, rule, schema, value, path);
  }

  std::vector<std::string> take() { return std::move(violations_); }

 private:
  void expect(bool holds, const std::string& path, const std::string& what) {
    if (!holds) violations_.push_back(path + ": " + what);
  }

  const json& referenced(const std::string& reference) const {
    return root_.at(json::json_pointer(reference.substr(1)));
  }

  void apply(const std::string& keyword, const json& rule, const json& schema, const json& value,
             const std::string& path) {
    if (keyword == "type") return check_type(rule, value, path);
    if (keyword == "const") return expect(value == rule, path, "is not " + rule.dump());
    if (keyword == "enum") {
      return expect(std::find(rule.begin(), rule.end(), value) != rule.end(), path,
                    value.dump() + " is none of " + rule.dump());
    }
    if (keyword == "minimum") {
      return expect(!value.is_number() || value >= rule, path, "is below " + rule.dump());
    }
    if (keyword == "maximum") {
      return expect(!value.is_number() || value <= rule, path, "is above " + rule.dump());
    }
    if (keyword == "required") return check_required(rule, value, path);
    if (keyword == "properties") return check_properties(rule, value, path);
    if (keyword == "additionalProperties") return check_others(rule, schema, value, path);
    if (keyword == "items") return check_items(rule, value, path);
    const bool comment = keyword == "$schema" || keyword == "title" || keyword == "description" ||
                         keyword == "$defs";
    if (!comment) throw std::runtime_error("unknown keyword in a schema: " + keyword);
  }

  void check_type(const json& rule, const json& value, const std::string& path) {
    const json types = rule.is_array() ? rule : json::array({rule});
    const bool holds = std::any_of(types.begin(), types.end(), [&](const json& type) {
      return has_type(value, type.get<std::string>());
    });
    expect(holds, path, value.dump().substr(0, 60) + " is no " + rule.dump());
  }

  void check_required(const json& rule, const json& value, const std::string& path) {
    if (!value.is_object()) return;
    for (const json& key : rule) {
      expect(value.contains(key.get<std::string>()), path, "lacks " + key.dump());
    }
  }

  void check_properties(const json& rule, const json& value, const std::string& path) {
    if (!value.is_object()) return;
    for (const auto& [key, schema] : rule.items()) {
      if (value.contains(key)) check(schema, value[key], path + "/" + key);
    }
  }

  void check_others(const json& rule, const json& schema, const json& value,
                    const std::string& path) {
    if (!value.is_object()) return;
    const json known = schema.value("properties", json::object());
    for (const auto& [key, other] : value.items()) {
      if (known.contains(key)) continue;
      if (rule.is_boolean()) {
        expect(rule.get<bool>(), path, "has the unknown key " + key);
      } else {
        check(rule, other, path + "/" + key);
      }
    }
  }

  void check_items(const json& rule, const json& value, const std::string& path) {
    if (!value.is_array()) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      check(rule, value[i], path + "/" + std::to_string(i));
    }
  }

  const json& root_;
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> schema_violations(const json& schema, const json& value) {
  Checker checker(schema);
  checker.check(schema, value, "");
  return checker.take();
}

json read_schema(const std::string& name) {
  std::ifstream stream("docs/schema/" + name + ".json");
  if (!stream.good()) throw std::runtime_error("no schema " + name);
  return json::parse(stream);
}

}  // namespace plimsoll::test
