// Where each rank was last, kept in files for the case that nobody is left to tell it: on MPI a rank
// that is killed takes all others with it.
//
// In the folder of the run last-words/rank-0002 says which collective rank 2 began last, of which unit
// and step, and how many it had begun by then. A rank that ends in an orderly way, by an error too,
// removes its own file; a killed one cannot.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

class LastWords final : public Decorator {
 public:
  // `folder`: of the run. Makes this rank's file. Throws std::runtime_error when it cannot be
  // written.
  LastWords(Communicator& inner, const std::string& folder);

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  class File;
  LastWords(Communicator& inner, std::shared_ptr<File> file);

  std::shared_ptr<File> file_;  // shared with splits
};

// What the files of a run that was cut off tell: the last collective of the rank that was behind the
// others, which waited for it. Its rank is -1 when none was behind. None: there are no files.
std::optional<Cause> last_words(const std::string& folder);

// Removes those of an earlier run. To be called by one rank, before any rank writes.
void remove_last_words(const std::string& folder);

}  // namespace plimsoll::comm
