// Faults x places in a training step: one run of fault_ranks, and what has to hold after it on any backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/dist/run_ranks.hpp"

namespace plimsoll::test {

struct Fault {
  const char* name;
  const char* text;  // in the document
  const char* type;  // of what survivors get
};

// Every fault in every place where there is one.
struct FaultCase {
  Fault fault;
  std::string place;
};
std::vector<FaultCase> fault_cases();

// Types and times of one run, after the checks of what every fault has in common: an end within 5 s,
// nothing that is left, the checkpoint of step 2 the newest valid one.
struct FaultRun {
  Outcome outcome;
  int survivors = 0;           // who told what they got
  std::string folder;          // of the run; valid during `use`
  bool has_temporary = false;  // a folder of a save that was cut off
};

// `launcher`: words before the program's own, and the first of those ("3", or "mpi" under mpirun).
// `dies`: nobody is left to clean up; then last words and the folder of a save may stay.
void run_fault(const FaultCase& one, std::vector<std::string> launcher, bool dies,
               const std::function<void(const FaultRun&)>& use);

// The first line of stderr, which has to be the only one, without "[comm] " and who noticed. `folder` reads
// as DIR.
std::string cause_in(const std::string& err, const std::string& folder);

// "at once" or "the deadline".
std::string when(const Fault& fault);

}  // namespace plimsoll::test
