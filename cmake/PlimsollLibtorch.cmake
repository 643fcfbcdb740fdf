# Finds libtorch inside a PyTorch wheel and defines
#
#   plimsoll::libtorch                  IMPORTED INTERFACE target: headers, libraries, run path
#   PLIMSOLL_LIBTORCH_DIR               the folder found (holds include/ and lib/)
#   PLIMSOLL_LIBTORCH_VERSION           such as 2.13.0
#   PLIMSOLL_LIBTORCH_CUDA              TRUE when the wheel carries the CUDA backend
#   plimsoll_use_libtorch(<target>)     links it and shares one precompiled <torch/torch.h>
#
# PyTorch's own CMake package is not used: with a CUDA wheel it stops on every machine without a
# CUDA toolkit, although neither compiling nor linking against that wheel needs one.
include_guard(GLOBAL)

set(PLIMSOLL_LIBTORCH "" CACHE PATH "Folder of libtorch (holds include/ and lib/); empty: search")

function(plimsoll_libtorch_is_at folder result)
  if(EXISTS "${folder}/lib/libtorch.so"
      AND EXISTS "${folder}/include/torch/csrc/api/include/torch/torch.h")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# A folder that the user named is taken or refused; a guess in its place would hide the mistake.
function(plimsoll_find_libtorch result)
  set(named "${PLIMSOLL_LIBTORCH}")
  if(NOT named)
    set(named "$ENV{PLIMSOLL_LIBTORCH}")
  endif()
  if(named)
    plimsoll_libtorch_is_at("${named}" found)
    if(NOT found)
      message(FATAL_ERROR "[PLIMSOLL_LIBTORCH] no libtorch in this folder: ${named}, "
        "expected lib/libtorch.so and include/torch/. Hint: give the folder that "
        "`python3 -c \"import torch; print(torch.__path__[0])\"` prints")
    endif()
    set(${result} "${named}" PARENT_SCOPE)
    return()
  endif()

  file(GLOB candidates "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
  execute_process(
    COMMAND python3 -c
      "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE from_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  foreach(candidate IN LISTS candidates from_python)
    plimsoll_libtorch_is_at("${candidate}" found)
    if(found)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "[libtorch] not found: looked in PLIMSOLL_LIBTORCH, in .venv and where "
    "python3 keeps torch, expected a PyTorch 2 wheel. Hint: `./run test` installs one, "
    "-DPLIMSOLL_LIBTORCH=/path/to/torch names one, "
    "-DPLIMSOLL_ENGINE=OFF (preset core) does without")
endfunction()

# The headers know the version since 2.9; before that the API headers did; build-version is in the
# zip archives of libtorch.
function(plimsoll_libtorch_version folder result)
  foreach(header IN ITEMS headeronly/version.h csrc/api/include/torch/version.h version.h)
    set(header "${folder}/include/torch/${header}")
    if(EXISTS "${header}")
      file(READ "${header}" text)
      if(text MATCHES "define TORCH_VERSION[ \t\\\\\r\n]+\"([0-9]+\\.[0-9]+\\.[0-9]+)")
        set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  foreach(file IN ITEMS version.py build-version)
    if(EXISTS "${folder}/${file}")
      file(READ "${folder}/${file}" text)
      if(text MATCHES "([0-9]+\\.[0-9]+\\.[0-9]+)")
        set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  set(${result} "unknown" PARENT_SCOPE)
endfunction()

# The wheel ships fmt's headers beside its own, newer than the installed fmt library. Found first,
# they would compile against one version and link against the other. A folder of links shows the
# compiler everything else. It is rebuilt on every configure: the wheel may have been replaced.
function(plimsoll_libtorch_headers folder result)
  set(view "${CMAKE_BINARY_DIR}/libtorch-include")
  file(REMOVE_RECURSE "${view}")
  file(MAKE_DIRECTORY "${view}")
  file(GLOB entries LIST_DIRECTORIES true RELATIVE "${folder}/include" "${folder}/include/*")
  list(REMOVE_ITEM entries fmt)
  foreach(entry IN LISTS entries)
    file(CREATE_LINK "${folder}/include/${entry}" "${view}/${entry}" SYMBOLIC)
  endforeach()
  set(${result} "${view}" "${view}/torch/csrc/api/include" PARENT_SCOPE)
endfunction()

function(plimsoll_define_libtorch)
  plimsoll_find_libtorch(folder)
  # A real path: a link to the folder must not become part of the programs' run path.
  file(REAL_PATH "${folder}" folder)
  plimsoll_libtorch_version("${folder}" version)
  plimsoll_libtorch_headers("${folder}" headers)

  set(libraries libtorch.so libtorch_cpu.so libc10.so)
  list(TRANSFORM libraries PREPEND "${folder}/lib/")
  set(cuda FALSE)
  if(EXISTS "${folder}/lib/libtorch_cuda.so")
    set(cuda TRUE)
    # No symbol of it is referenced: without this the linker drops the library and the program has
    # no CUDA backend. One list item, so that CMake neither reorders nor merges the parts.
    set(cuda_libraries "${folder}/lib/libtorch_cuda.so,${folder}/lib/libc10_cuda.so")
    list(APPEND libraries "-Wl,--push-state,--no-as-needed,${cuda_libraries},--pop-state")
  endif()

  add_library(plimsoll::libtorch INTERFACE IMPORTED GLOBAL)
  # Imported targets' include folders are system ones: no warnings from inside libtorch.
  set_target_properties(plimsoll::libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${headers}"
    INTERFACE_LINK_LIBRARIES "${libraries}"
    INTERFACE_LINK_OPTIONS "LINKER:-rpath,${folder}/lib")

  set(PLIMSOLL_LIBTORCH_DIR "${folder}" PARENT_SCOPE)
  set(PLIMSOLL_LIBTORCH_VERSION "${version}" PARENT_SCOPE)
  set(PLIMSOLL_LIBTORCH_CUDA "${cuda}" PARENT_SCOPE)
endfunction()

plimsoll_define_libtorch()
message(STATUS "libtorch ${PLIMSOLL_LIBTORCH_VERSION} (CUDA backend: ${PLIMSOLL_LIBTORCH_CUDA}): "
  "${PLIMSOLL_LIBTORCH_DIR}")

# plimsoll_use_libtorch(<target> [PUBLIC|PRIVATE])
# Links libtorch and takes the shared precompiled header: 5 s a file instead of 30. The header is
# compiled with plimsoll_options alone, so a target that sets other language or code generation
# flags must link plimsoll::libtorch directly.
function(plimsoll_use_libtorch target)
  set(scope ${ARGN})
  if(NOT scope)
    set(scope PRIVATE)
  endif()
  if(NOT TARGET plimsoll_libtorch_pch)
    set(source "${CMAKE_BINARY_DIR}/plimsoll_libtorch_pch.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Carries the precompiled header.\n")
    add_library(plimsoll_libtorch_pch OBJECT "${source}")
    plimsoll_apply_options(plimsoll_libtorch_pch)
    target_link_libraries(plimsoll_libtorch_pch PRIVATE plimsoll::libtorch)
    target_precompile_headers(plimsoll_libtorch_pch PRIVATE <torch/torch.h>)
    # What ccache needs to look through a precompiled header of g++.
    target_compile_options(plimsoll_libtorch_pch PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  target_link_libraries(${target} ${scope} plimsoll::libtorch)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${target} REUSE_FROM plimsoll_libtorch_pch)
endfunction()
