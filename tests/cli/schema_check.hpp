// Checks a JSON value against a JSON Schema, as far as docs/schema uses the language: type, const,
// enum, minimum, required, properties, additionalProperties, items, $ref into $defs. An unknown
// keyword is a fault of the schema, so that nothing goes unchecked.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plimsoll::test {

// Every violation as "/path: what"; empty when the value is valid.
std::vector<std::string> schema_violations(const nlohmann::json& schema,
                                           const nlohmann::json& value);

// The file docs/schema/NAME.json.
nlohmann::json read_schema(const std::string& name);

}  // namespace plimsoll::test
