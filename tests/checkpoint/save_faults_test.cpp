// Saving on a disk that fails, and by processes that die: what was there before stays whole.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "plimsoll/checkpoint/verify.hpp"

#include "tests/checkpoint/saved_model.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace plimsoll {
namespace {

using checkpoint::Depth;
using shard::Stage;

// Counts the calls; what happens at number `at` is the test's.
class CountingDisk : public test::QuickDisk {
 public:
  ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
    if (due()) return strike();
    return Disk::write(descriptor, data, bytes);
  }
  int fsync(int descriptor) override { return due() ? strike() : QuickDisk::fsync(descriptor); }
  int rename(const char* from, const char* to) override {
    return due() ? strike() : Disk::rename(from, to);
  }

  int calls() const { return calls_; }
  void strike_at(int call) { at_ = call; }

 protected:
  virtual int strike() { return 0; }

 private:
  bool due() { return ++calls_ == at_; }
  int calls_ = 0;
  int at_ = 0;
};

class FailingDisk final : public CountingDisk {
 public:
  explicit FailingDisk(int error_number) : error_number_(error_number) {}

 private:
  int strike() override {
    errno = error_number_;
    return -1;
  }
  int error_number_;
};

// The process is gone, as by SIGKILL: no destructor runs.
class DyingDisk final : public CountingDisk {
  int strike() override { ::_exit(9); }
};

// Takes half of what it is given.
class ShortDisk final : public test::QuickDisk {
 public:
  ssize_t write(int descriptor, const void* data, std::size_t bytes) override {
    return Disk::write(descriptor, data, bytes > 1 ? bytes / 2 : bytes);
  }
};

checkpoint::SavePlan plan_at(const test::Model& model, const std::string& folder,
                             std::int64_t step) {
  return test::plan_of(model, folder, step, 3, Stage::kParameters);
}

void check_whole(const std::string& folder, std::int64_t step) {
  const auto newest = checkpoint::newest_valid(folder, Depth::kContents);
  REQUIRE(newest.has_value());
  REQUIRE(newest->found.has_value());
  CHECK(newest->found->step == step);
}

int calls_of_a_save(const test::Model& model) {
  const test::TemporaryFolder folder;
  CountingDisk disk;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 2), disk).has_value());
  return disk.calls();
}

TEST_CASE("a disk that fails at any call leaves the previous checkpoint and no rest") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 1)).has_value());
  const int calls = calls_of_a_save(model);
  CHECK(calls > 15);
  for (int error_number : {ENOSPC, EIO, EACCES, EDQUOT}) {
    for (int call = 1; call <= calls; ++call) {
      CAPTURE(call);
      CAPTURE(error_number);
      FailingDisk disk(error_number);
      disk.strike_at(call);
      const auto done = test::save(model, plan_at(model, folder.path(), 2), disk);
      REQUIRE(!done.has_value());
      CHECK(done.error().code == ExitCode::kEnvironment);
      CHECK(done.error().where.starts_with(folder.path()));
      CHECK(done.error().what.find(std::strerror(error_number)) != std::string::npos);
      CHECK(test::names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
    }
  }
  check_whole(folder.path(), 1);
  REQUIRE(test::save(model, plan_at(model, folder.path(), 2)).has_value());
  check_whole(folder.path(), 2);
}

TEST_CASE("saving a step again: a failure brings the old one back") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  const checkpoint::SavePlan plan = plan_at(model, folder.path(), 1);
  REQUIRE(test::save(model, plan).has_value());
  for (int call = 1;; ++call) {
    FailingDisk disk(EIO);
    disk.strike_at(call);
    const bool saved = test::save(model, plan, disk).has_value();
    CAPTURE(call);
    CHECK(test::names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
    check_whole(folder.path(), 1);
    if (saved) break;
  }
}

TEST_CASE("the machine's own disk") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 1), checkpoint::real_disk()).has_value());
  check_whole(folder.path(), 1);
}

TEST_CASE("short writes are gone on with") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  ShortDisk disk;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 1), disk).has_value());
  check_whole(folder.path(), 1);
}

// Runs `work` in a process of its own and returns its exit code.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// troubles 35: killed during a save.
TEST_CASE("a process that dies at any call leaves a checkpoint to go on from") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 1)).has_value());
  bool done = false;
  for (int call = 1; !done; ++call) {
    const int code = in_child([&] {
      DyingDisk disk;
      disk.strike_at(call);
      return test::save(model, plan_at(model, folder.path(), 2), disk).has_value() ? 0 : 1;
    });
    CAPTURE(call);
    CHECK((code == 9 || code == 0));
    done = code == 0;
    const auto newest = checkpoint::newest_valid(folder.path(), Depth::kContents);
    REQUIRE(newest.has_value());
    REQUIRE(newest->found.has_value());
    // The marker may have been renamed to its place before its folder was flushed.
    const bool saved = newest->found->step == 2;
    if (done) CHECK(saved);
    if (saved) continue;
    CHECK(newest->found->step == 1);
    for (const checkpoint::Skipped& skipped : newest->skipped) {
      const bool interrupted = skipped.reason == "the save was interrupted";
      const bool unmarked = skipped.reason == "COMPLETE: is missing: the save was not finished";
      CHECK((interrupted || unmarked));
    }
  }
  CHECK(test::names_in(folder.path()) ==
        std::vector<std::string>{"step-00000001", "step-00000002"});
}

TEST_CASE("a limit on the size of files is an error, not a signal's death") {
  const test::Model model = test::small_model();
  const test::TemporaryFolder folder;
  REQUIRE(test::save(model, plan_at(model, folder.path(), 1)).has_value());
  const int code = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{512, 512};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto done = test::save(model, plan_at(model, folder.path(), 2));
    if (done.has_value()) return 1;
    return done.error().what.find(std::strerror(EFBIG)) == std::string::npos ? 2 : 0;
  });
  CHECK(code == 0);
  CHECK(test::names_in(folder.path()) == std::vector<std::string>{"step-00000001"});
  check_whole(folder.path(), 1);
}

TEST_CASE("a path that is no folder") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("file", "text");
  const test::Model model = test::small_model();
  const auto done = test::save(model, plan_at(model, file, 1));
  REQUIRE(!done.has_value());
  CHECK(done.error().code == ExitCode::kEnvironment);
  CHECK(test::file_text(file) == "text");
}

TEST_CASE("ranks that have not finished are named") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  const checkpoint::SavePlan plan = plan_at(model, folder.path(), 1);
  REQUIRE(checkpoint::prepare(plan).has_value());
  const auto done = checkpoint::commit(plan, {});
  REQUIRE(!done.has_value());
  CHECK(done.error().what == "ranks 0, 1, 2 of 3 have not finished their files");
  CHECK(test::names_in(folder.path()).empty());
}

TEST_CASE("a range that nobody wrote, or two ranks, is found before the checkpoint counts") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  const auto says = [&](const shard::Range& first, const shard::Range& second) {
    checkpoint::SavePlan plan = test::plan_of(model, folder.path(), 1, 2, Stage::kParameters);
    plan.tensors = {{"w", {10}, {{checkpoint::StateKind::kWeight, network::DType::kUInt8, {}}}}};
    REQUIRE(checkpoint::prepare(plan).has_value());
    const std::vector<std::byte> bytes(10);
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      const shard::Range& range = rank == 0 ? first : second;
      auto writer = checkpoint::Writer::open(plan, rank);
      REQUIRE(writer.has_value());
      const auto part = std::span(bytes).first(static_cast<std::size_t>(range.size()));
      REQUIRE(writer->add(0, checkpoint::StateKind::kWeight, range, part).has_value());
      REQUIRE(writer->finish().has_value());
    }
    const auto done = checkpoint::commit(plan, {});
    return done ? std::string("saved") : done.error().what;
  };
  CHECK(says({0, 4}, {4, 9}) == "w weight [9, 10) is missing");
  CHECK(says({1, 5}, {5, 10}).find("w weight [1, 5) does not follow element 0") == 0);
  CHECK(says({0, 6}, {5, 10}).find("w weight [5, 10) does not follow element 6") == 0);
  CHECK(says({5, 10}, {0, 5}) == "saved");
}

TEST_CASE("pruning keeps the newest complete ones up to the step just saved") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  for (std::int64_t step : {10, 20, 30, 40, 50}) {
    REQUIRE(test::save(model, plan_at(model, folder.path(), step)).has_value());
  }
  std::filesystem::remove(folder.path() + "/step-00000030/COMPLETE");
  REQUIRE(checkpoint::prune(folder.path(), 40, 2).has_value());
  CHECK(test::names_in(folder.path()) == std::vector<std::string>{"step-00000020", "step-00000030",
                                                                  "step-00000040",
                                                                  "step-00000050"});
  REQUIRE(checkpoint::prune(folder.path(), 40, 1).has_value());
  CHECK(test::names_in(folder.path()) ==
        std::vector<std::string>{"step-00000040", "step-00000050"});
  check_whole(folder.path(), 50);
}

TEST_CASE("the next save removes what interrupted ones left") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  for (const char* name : {"step-00000007.tmp", "step-00000003.removed", "step-00000001.replaced",
                           "notes.tmp", "step-by-step"}) {
    std::filesystem::create_directories(folder.path() + "/" + name + "/inside");
  }
  REQUIRE(test::save(model, plan_at(model, folder.path(), 8)).has_value());
  CHECK(test::names_in(folder.path()) ==
        std::vector<std::string>{"notes.tmp", "step-00000008", "step-by-step"});
}

TEST_CASE("a writer that is dropped removes its file") {
  const test::TemporaryFolder folder;
  const test::Model model = test::small_model();
  const checkpoint::SavePlan plan = plan_at(model, folder.path(), 1);
  REQUIRE(checkpoint::prepare(plan).has_value());
  { auto writer = checkpoint::Writer::open(plan, 1); }
  CHECK(test::names_in(folder.path() + "/step-00000001.tmp").empty());
}

TEST_CASE("the mark of a run's end") {
  const test::TemporaryFolder folder;
  CHECK(!checkpoint::ended_at(folder.path()).has_value());
  REQUIRE(checkpoint::mark_ended(folder.path(), 300).has_value());
  CHECK(checkpoint::ended_at(folder.path()) == 300);
  REQUIRE(checkpoint::clear_ended(folder.path()).has_value());
  REQUIRE(checkpoint::clear_ended(folder.path()).has_value());
  CHECK(!checkpoint::ended_at(folder.path()).has_value());
}

}  // namespace
}  // namespace plimsoll
