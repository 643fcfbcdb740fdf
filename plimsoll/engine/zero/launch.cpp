#include "plimsoll/engine/zero/launch.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/engine/library/process_memory.hpp"
#include "plimsoll/engine/torch.hpp"

namespace plimsoll::engine::zero {

std::function<int(comm::Communicator&)> as_rank(std::function<int(comm::Communicator&)> body,
                                                int ranks_here) {
  return [body = std::move(body), ranks_here](comm::Communicator& world) {
    keep_memory();
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    at::set_num_threads(std::max(1, cores / (ranks_here > 0 ? ranks_here : world.size())));
    try {
      return body(world);
    } catch (const c10::Error& error) {
      throw std::runtime_error(error.what_without_backtrace());
    }
  };
}

int launch(int argc, char** argv, int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options) {
  return comm::launch(argc, argv, ranks, as_rank(body), options);
}

int launch(int ranks, const std::function<int(comm::Communicator&)>& body,
           const comm::LaunchOptions& options) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return zero::launch(static_cast<int>(words.size()), pointers.data(), ranks, body, options);
}

}  // namespace plimsoll::engine::zero
