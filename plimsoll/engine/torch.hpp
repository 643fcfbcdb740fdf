// The one place that includes libtorch, so that every source shares one precompiled header.
#pragma once

#include <torch/torch.h>
