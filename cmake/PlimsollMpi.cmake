# Finds the MPI of the backend `mpi` and sets
#
#   PLIMSOLL_MPI_FOUND   TRUE when there is one; then plimsoll::mpi exists (headers, libraries, run path)
#   PLIMSOLL_MPIEXEC     its mpiexec, for tests
#
# PLIMSOLL_MPI: AUTO takes MPICH's Python wheel from .venv if it is there; ON any MPI on the PATH, such as
# the distribution's, else an error; a folder (it holds bin/ and lib/) that one or an error; OFF none.
include_guard(GLOBAL)

set(PLIMSOLL_MPI "AUTO" CACHE STRING "MPI backend: AUTO (.venv), ON (any), OFF or a folder")

set(PLIMSOLL_MPI_FOUND FALSE)
set(plimsoll_mpi_home "")
set(plimsoll_mpi_wanted FALSE)
if(PLIMSOLL_MPI STREQUAL "AUTO")
  # MPICH's hooks of memory calls crash ThreadSanitizer when a thread starts.
  if(NOT "thread" IN_LIST PLIMSOLL_SANITIZE AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/mpicxx")
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
    "Hint: `./run test` installs MPICH into .venv, where AUTO finds it")
endif()

# What was found before is of another MPI.
if(NOT "${PLIMSOLL_MPI}|${plimsoll_mpi_home}" STREQUAL "${PLIMSOLL_MPI_SEARCHED}")
  get_cmake_property(plimsoll_cached CACHE_VARIABLES)
  list(FILTER plimsoll_cached INCLUDE REGEX "^(MPI_|MPIEXEC_)")
  foreach(variable IN LISTS plimsoll_cached)
    unset(${variable} CACHE)
  endforeach()
  set(PLIMSOLL_MPI_SEARCHED "${PLIMSOLL_MPI}|${plimsoll_mpi_home}" CACHE INTERNAL "")
endif()

if(plimsoll_mpi_wanted)
  set(MPI_CXX_SKIP_MPICXX ON)
  if(plimsoll_mpi_home)
    set(MPI_HOME "${plimsoll_mpi_home}")
  endif()
  find_package(MPI REQUIRED COMPONENTS CXX)
  set(PLIMSOLL_MPI_FOUND TRUE)
  # The run path stays in installed programs.
  list(GET MPI_CXX_LIBRARIES 0 plimsoll_mpi_library)
  cmake_path(GET plimsoll_mpi_library PARENT_PATH plimsoll_mpi_library)
  add_library(plimsoll::mpi INTERFACE IMPORTED GLOBAL)
  set_target_properties(plimsoll::mpi PROPERTIES
    INTERFACE_LINK_LIBRARIES MPI::MPI_CXX
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${plimsoll_mpi_library}")
  message(STATUS "MPI ${MPI_CXX_VERSION}: ${MPIEXEC_EXECUTABLE}")
endif()
# For tests in other folders; empty without MPI.
set(PLIMSOLL_MPIEXEC "${MPIEXEC_EXECUTABLE}" CACHE INTERNAL "")
