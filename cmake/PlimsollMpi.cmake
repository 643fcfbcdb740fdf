# Finds the MPI of the optional backend `mpi` and sets
#
#   PLIMSOLL_MPI_FOUND   TRUE when there is one; then MPI::MPI_CXX exists
#   PLIMSOLL_MPIEXEC     its mpiexec, for tests
#
# PLIMSOLL_MPI: AUTO takes MPICH's Python wheel from .venv if it is there; ON any MPI on the PATH,
# else an error; a folder (it holds bin/mpicxx and lib/) that one or an error; OFF none.
include_guard(GLOBAL)

set(PLIMSOLL_MPI "AUTO" CACHE STRING "MPI backend: AUTO (.venv), ON, OFF or a folder")

set(PLIMSOLL_MPI_FOUND FALSE)
set(plimsoll_mpi_home "")
set(plimsoll_mpi_wanted FALSE)
if(PLIMSOLL_MPI STREQUAL "AUTO")
  if(EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/mpicxx")
    set(plimsoll_mpi_home "${PROJECT_SOURCE_DIR}/.venv")
    set(plimsoll_mpi_wanted TRUE)
  endif()
elseif(IS_DIRECTORY "${PLIMSOLL_MPI}")
  set(plimsoll_mpi_home "${PLIMSOLL_MPI}")
  set(plimsoll_mpi_wanted TRUE)
elseif(PLIMSOLL_MPI STREQUAL "ON")
  set(plimsoll_mpi_wanted TRUE)
elseif(NOT PLIMSOLL_MPI STREQUAL "OFF")
  message(FATAL_ERROR "[PLIMSOLL_MPI] no such folder: ${PLIMSOLL_MPI}, "
    "expected AUTO, ON, OFF or a folder that holds bin/mpicxx. "
    "Hint: `pip install mpich` into .venv gives one")
endif()

if(plimsoll_mpi_wanted)
  set(MPI_CXX_SKIP_MPICXX ON)
  if(plimsoll_mpi_home)
    set(MPI_HOME "${plimsoll_mpi_home}")
  endif()
  find_package(MPI REQUIRED COMPONENTS CXX)
  set(PLIMSOLL_MPI_FOUND TRUE)
  message(STATUS "MPI ${MPI_CXX_VERSION}: ${MPIEXEC_EXECUTABLE}")
endif()
# For tests in other folders; empty without MPI.
set(PLIMSOLL_MPIEXEC "${MPIEXEC_EXECUTABLE}" CACHE INTERNAL "")
