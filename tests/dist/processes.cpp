#include "tests/dist/processes.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace plimsoll::test {

bool is_gone(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(status, text)) return true;
  return text.substr(text.rfind(')') + 2, 1) == "Z";
}

bool is_gone_soon(pid_t pid) {
  for (int i = 0; i < 500; ++i) {
    if (is_gone(pid)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

}  // namespace plimsoll::test
