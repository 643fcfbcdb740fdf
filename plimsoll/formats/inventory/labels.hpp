// How many classes a classifier's head has.
#pragma once

#include <cstdint>

#include "plimsoll/formats/config_reader.hpp"

namespace plimsoll::formats {

// num_labels, else the entries of id2label, else what the class fills in.
std::int64_t label_count(ConfigReader& reader);

}  // namespace plimsoll::formats
