#include "bench/paced_peer.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

namespace plimsoll::bench {
namespace {

std::string python() {
  const char* named = std::getenv("PLIMSOLL_PYTHON");
  return named == nullptr ? "python3" : named;
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe for a peer");
    read = ends[0];
    write = ends[1];
  }
  int read = -1;
  int write = -1;
};

// Our environment, with one thread and without the profiler's chatter.
std::vector<std::string> single_threaded_environment() {
  std::vector<std::string> result{"OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1", "KINETO_LOG_LEVEL=99"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool threads = text.starts_with("OMP_NUM_THREADS=") || text.starts_with("MKL_NUM_");
    if (!threads) result.push_back(text);
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

PacedPeer::PacedPeer(const std::string& script, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& variables)
    : script_(script) {
  std::vector<std::string> words{python(), std::string(PLIMSOLL_BENCH_PEERS) + "/" + script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = single_threaded_environment();
  environment.insert(environment.begin(), variables.begin(), variables.end());
  const Pipe in;
  const Pipe out;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  const int failed = posix_spawnp(&child_, words[0].c_str(), &actions, nullptr,
                                  pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in.read);
  close(out.write);
  to_peer_ = in.write;
  from_peer_ = out.read;
  if (failed != 0) throw std::runtime_error("cannot start " + words[0]);
}

PacedPeer::~PacedPeer() {
  if (to_peer_ >= 0) close(to_peer_);
  close(from_peer_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::string PacedPeer::read_line() {
  std::size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    char buffer[4096];
    const ssize_t count = read(from_peer_, buffer, sizeof buffer);
    if (count <= 0) throw std::runtime_error("peer " + script_ + " ended early");
    unread_.append(buffer, static_cast<std::size_t>(count));
    end = unread_.find('\n');
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

void PacedPeer::begin_step() {
  if (write(to_peer_, "step\n", 5) != 5) throw std::runtime_error("peer " + script_ + " is gone");
}

Elapsed PacedPeer::end_step() {
  const std::string line = read_line();
  Elapsed time;
  if (std::sscanf(line.c_str(), "%lf %lf", &time.wall, &time.cpu) != 2) {
    throw std::runtime_error("peer " + script_ + " said: " + line);
  }
  return time;
}

void PacedPeer::end_input() {
  if (to_peer_ >= 0) close(std::exchange(to_peer_, -1));
}

nlohmann::json PacedPeer::finish() {
  end_input();
  return nlohmann::json::parse(read_line());
}

PacedGroup::PacedGroup(const std::string& script, const std::vector<std::string>& arguments,
                       int ranks) {
  const int port = 20'000 + getpid() % 20'000;
  for (int rank = 0; rank < ranks; ++rank) {
    peers_.push_back(std::make_unique<PacedPeer>(
        script, arguments,
        std::vector<std::string>{"RANK=" + std::to_string(rank),
                                 "LOCAL_RANK=" + std::to_string(rank),
                                 "WORLD_SIZE=" + std::to_string(ranks), "MASTER_ADDR=127.0.0.1",
                                 "MASTER_PORT=" + std::to_string(port)}));
  }
}

Elapsed PacedGroup::step() {
  for (const auto& peer : peers_) peer->begin_step();
  Elapsed first;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Elapsed one = peers_[rank]->end_step();
    if (rank == 0) first = one;
  }
  return first;
}

nlohmann::json PacedGroup::finish() {
  for (const auto& peer : peers_) peer->end_input();
  return peers_.front()->finish();
}

}  // namespace plimsoll::bench
