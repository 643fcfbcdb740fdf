// A config.json of arbitrary bytes: a valid spec and a countable inventory, or one Error each; never a
// crash or an exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plimsoll/formats/class_config.hpp"
#include "plimsoll/formats/config.hpp"
#include "plimsoll/formats/inventory/inventory.hpp"
#include "plimsoll/formats/json_text.hpp"

namespace {

using namespace plimsoll;

void count(std::string_view text) {
  const auto document = formats::parse_json(text, "config.json");
  if (!document) return;
  const auto config = formats::class_config(*document, "config.json");
  if (!config) return;
  const auto model = formats::read_inventory(*config);
  if (!model) {
    check(!format_error(model.error()).empty(), "an Error without a message");
    return;
  }
  const auto& inventory = model->inventory;
  check(inventory.elements() > 0, "a model without parameters");
  check(inventory.active_elements() <= inventory.elements(),
        "more parameters in use than there are");
  check(inventory.ties_counted() >= inventory.elements(), "ties that take parameters away");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = formats::read_config(text, "config.json");
  if (spec) {
    check(validate(*spec).has_value(), "read_config returned an invalid spec");
  } else {
    check(!format_error(spec.error()).empty(), "an Error without a message");
  }
  count(text);
  return 0;
}
