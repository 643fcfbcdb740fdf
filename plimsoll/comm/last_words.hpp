// Where each rank was last, kept in files for the case that nobody is left to tell it: on MPI a rank that is
// killed takes all others with it.
//
// In the folder of the run last-words/rank-0002 says which collective the rank began last, the how manieth, and of what. A rank that ends in
// an orderly way, by an error too, removes its own file; a killed one cannot.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/comm/decorator.hpp"

namespace plimsoll::comm {

class LastWords final : public Decorator {
 public:
  // `folder`: of the run. Makes this rank's file. Throws std::runtime_error when they cannot be written.
  LastWords(Communicator& inner, const std::string& folder);

 protected:
  Work begin_call(const Call& call) override;
  std::unique_ptr<Decorator> around(Communicator& inner) override;

 private:
  class File;
  LastWords(Communicator& inner, std::shared_ptr<File> file);

  std::shared_ptr<File> file_;  // shared with splits
};

// What the files of a run that was cut off tell: of the rank that was behind the others, which waited for it.
// The rank is -1 when none was behind. None: there are no files.
std::optional<Cause> last_words(const std::string& folder);

// Of an earlier run. To be called before any rank writes.
void remove_last_words(const std::string& folder);

}  // namespace plimsoll::comm
