# What `cmake --install` puts where, and the package that find_package(plimsoll) reads.
#
#   find_package(plimsoll REQUIRED COMPONENTS core engine)
#   target_link_libraries(mine PRIVATE plimsoll::plan plimsoll::formats)   # or plimsoll::engine
#
# Components: core (the default; the planner's rooms) and engine (needs libtorch: the one it was
# built with, or PLIMSOLL_LIBTORCH). Programs go to bin/; the command line's rooms are not installed.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(plimsoll_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll")

# plimsoll_install_room(<target> <room>): adds the library to its component; called for every room.
function(plimsoll_install_room target room)
  # Nor are the backends of MPI and NCCL: whose they were built with cannot be told to another project.
  if(room MATCHES "^(cli|study|comm_mpi|engine_nccl)(_|$)")
    return()
  endif()
  set(component core)
  if(room MATCHES "^engine(_|$)")
    set(component engine)
  endif()
  install(TARGETS ${target} EXPORT plimsoll-${component}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${component})
endfunction()

# Headers lie as in the sources, so that includes read the same everywhere.
function(plimsoll_install_headers)
  install(DIRECTORY plimsoll DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT core
    FILES_MATCHING PATTERN "*.hpp"
    PATTERN "plimsoll/cli" EXCLUDE
    PATTERN "plimsoll/study" EXCLUDE
    PATTERN "plimsoll/comm/mpi" EXCLUDE
    PATTERN "plimsoll/engine" EXCLUDE
    PATTERN "plimsoll/meter.hpp" EXCLUDE)
  if(PLIMSOLL_ENGINE)
    install(DIRECTORY plimsoll/engine DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/plimsoll"
      COMPONENT engine FILES_MATCHING PATTERN "*.hpp" PATTERN "plimsoll/engine/nccl" EXCLUDE)
    install(FILES plimsoll/meter.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/plimsoll"
      COMPONENT engine)
  endif()
endfunction()

function(plimsoll_install_programs)
  install(TARGETS plimsoll RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT core)
  if(PLIMSOLL_ENGINE)
    install(TARGETS plimsoll-engine RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT engine)
  endif()
endfunction()

function(plimsoll_install_package)
  set(exports core)
  if(PLIMSOLL_ENGINE)
    list(APPEND exports engine)
    install(FILES cmake/PlimsollLibtorch.cmake DESTINATION "${plimsoll_package_folder}"
      COMPONENT engine)
  endif()
  foreach(component IN LISTS exports)
    install(EXPORT plimsoll-${component} NAMESPACE plimsoll::
      DESTINATION "${plimsoll_package_folder}" COMPONENT ${component})
  endforeach()
  configure_package_config_file(cmake/plimsoll-config.cmake.in plimsoll-config.cmake
    INSTALL_DESTINATION "${plimsoll_package_folder}"
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(plimsoll-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES
    "${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/plimsoll-config-version.cmake"
    DESTINATION "${plimsoll_package_folder}" COMPONENT core)
endfunction()

# Called once, when all rooms and programs are declared.
function(plimsoll_install_all)
  plimsoll_install_headers()
  plimsoll_install_programs()
  plimsoll_install_package()
endfunction()
