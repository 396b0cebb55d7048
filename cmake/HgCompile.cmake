# How every target of the project is compiled: language level, warnings as errors, hidden symbols,
# optional sanitizers, and which folders each layer may include.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# -ffp-contract=off: a product and a sum are two roundings everywhere, so that results do not depend
# on compiler or machine.
set(HG_C_FLAGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off)
# Warnings are errors for developers only. A newer compiler may have new warnings, and these should
# not stop a user's build.
option(HG_WERROR "Warnings are errors: for developers; the presets say ON" OFF)
if(HG_WERROR)
  list(APPEND HG_C_FLAGS -Werror)
endif()
set(HG_SANITIZE_FLAGS "")
if(HG_SANITIZE)
  set(HG_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
elseif(HG_SANITIZE_THREAD)
  set(HG_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
endif()

# hg_layer(name REACH folder...): an object library for src/<name>. Its sources may include headers
# of include/, of their own folder and of the named folders, as "folder/file.h". The include path
# has one directory for each of these folders, with nothing in it but a link to the folder, so an
# include of any other layer does not compile.
function(hg_layer name)
  cmake_parse_arguments(ARG "" "" "REACH;SOURCES" ${ARGN})
  add_library(hg_${name} OBJECT ${ARG_SOURCES})
  hg_compile(hg_${name})
  target_compile_definitions(hg_${name} PRIVATE HG_BUILDING)
  hg_reach(hg_${name} ${name} ${ARG_REACH})
endfunction()

function(hg_reach target)
  foreach(folder ${ARGN})
    set(view ${PROJECT_BINARY_DIR}/view/${folder})
    if(NOT EXISTS ${view}/${folder})
      file(MAKE_DIRECTORY ${view})
      file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${folder} ${view}/${folder} SYMBOLIC)
    endif()
    target_include_directories(${target} PRIVATE ${view})
  endforeach()
endfunction()

function(hg_compile target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C>:${HG_C_FLAGS}>
    $<$<COMPILE_LANGUAGE:C>:${HG_SANITIZE_FLAGS}>)
  target_link_options(${target} PRIVATE ${HG_SANITIZE_FLAGS})
endfunction()
