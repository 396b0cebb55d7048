# cmake -DBUILD=dir -DSOURCE=dir -DCC=compiler -DCXX=compiler or nothing -P run.cmake: installs into
# an empty folder, and uses the package from there, through CMake and through pkg-config.
set(prefix ${BUILD}/install-test/prefix)
file(REMOVE_RECURSE ${BUILD}/install-test)
set(example ${SOURCE}/tools/examples/gcn_train.c)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${text}")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install -B ${BUILD}/install-test/cmake
  -DCMAKE_PREFIX_PATH=${prefix} -DEXAMPLE=${example} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${BUILD}/install-test/cmake)
run(${BUILD}/install-test/cmake/train)
message(STATUS "through CMake: ${text}")
file(GLOB_RECURSE pc ${prefix}/halfgraph.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
get_filename_component(lib_dir ${pc_dir} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
function(compile program source package)
  set(flags "$(pkg-config --cflags --libs ${package}) -Wl,-rpath,${lib_dir}")
  run(sh -c "${CC} -std=c17 ${source} -o ${BUILD}/install-test/${program} ${flags}")
endfunction()
compile(train ${example} halfgraph)
run(${BUILD}/install-test/train)
message(STATUS "through pkg-config: ${text}")

# The static library, with everything that it links (with CUDA also the libraries of the toolkit).
function(expect_static program)
  run(readelf -d ${program})
  if(text MATCHES "libhalfgraph")
    message(FATAL_ERROR "${program} needs a shared library:\n${text}")
  endif()
endfunction()
function(compile_static program source package)
  run(sh -c "${CC} -std=c17 ${source} -o ${BUILD}/install-test/${program} $(pkg-config --static \
    --cflags --libs ${package} | sed 's/-l\\(halfgraph[a-z_]*\\)/-l:lib\\1.a/g')")
  expect_static(${BUILD}/install-test/${program})
endfunction()
compile_static(train_static ${example} halfgraph)
run(${BUILD}/install-test/train_static)
message(STATUS "through pkg-config --static: ${text}")

# A project without C.
if(CXX)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/cxx -B ${BUILD}/install-test/cxx
    -DCMAKE_PREFIX_PATH=${prefix}
    -DCMAKE_CXX_COMPILER=${CXX})
  run(${CMAKE_COMMAND} --build ${BUILD}/install-test/cxx)
  foreach(kind halfgraph static)
    run(${BUILD}/install-test/cxx/use_${kind})
    message(STATUS "${kind}: ${text}")
  endforeach()
else()
  message(STATUS "Skipped: there is no C++ compiler")
endif()

# Man pages and completion, which the tools print: the installed ones print the same.
file(GLOB tools RELATIVE ${prefix}/bin ${prefix}/bin/*)
if(EXISTS ${BUILD}/manual)
  list(LENGTH tools count)
  if(NOT count EQUAL 4)
    message(FATAL_ERROR "installed in bin: ${tools}, expected 4 tools")
  endif()
  foreach(tool ${tools})
    foreach(file man/man1/${tool}.1:--man
        bash-completion/completions/${tool}:--completion=bash
        zsh/site-functions/_${tool}:--completion=zsh
        fish/vendor_completions.d/${tool}.fish:--completion=fish)
      string(REGEX MATCH "^[^:]*" path ${file})
      string(REGEX REPLACE "^[^:]*:" "" option ${file})
      file(READ ${prefix}/share/${path} installed)
      run(${prefix}/bin/${tool} ${option})
      if(NOT text STREQUAL installed)
        message(FATAL_ERROR "share/${path} is not what ${tool} ${option} prints")
      endif()
    endforeach()
  endforeach()
  message(STATUS "man pages and completion: of ${tools}")
else()
  message(STATUS "Skipped: a build with sanitizers, for another machine or without tools has no "
    "man pages")
endif()

# The Python module finds the libraries beside it.
find_program(python python3)
execute_process(COMMAND ${python} -c "import numpy" RESULT_VARIABLE no_numpy ERROR_QUIET)
if(NOT no_numpy AND EXISTS ${prefix}/share/halfgraph/halfgraph.py)
  run(${CMAKE_COMMAND} -E env --unset=HALFGRAPH_LIB PYTHONPATH=${prefix}/share/halfgraph
    ${python} -c "import halfgraph; print(halfgraph.Context('cpu').name)")
  message(STATUS "from Python: ${text}")
else()
  message(STATUS "Skipped: there is no Python with NumPy, or no dataset library")
endif()

# A project that contains this one. It is only configured, since it would build the same again.
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/parent -B ${BUILD}/install-test/parent
  -DHALFGRAPH=${SOURCE} -DEXAMPLE=${example} -DLANGUAGES=C)
if(CXX)
  run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/parent -B ${BUILD}/install-test/parent_cxx
    -DHALFGRAPH=${SOURCE} -DEXAMPLE=${SOURCE}/tests/install/cxx/use.cpp -DLANGUAGES=CXX
    -DCMAKE_CXX_COMPILER=${CXX})
endif()
message(STATUS "in a parent: configured")
if(EXISTS ${pc_dir}/halfgraph_data.pc)
  compile(data ${SOURCE}/tests/install/data.c halfgraph_data)
  compile_static(data_static ${SOURCE}/tests/install/data.c halfgraph_data)
  expect_static(${BUILD}/install-test/cmake/data_static)
  foreach(program cmake/data data cmake/data_static data_static)
    set(program ${BUILD}/install-test/${program})
    run(${program} ${BUILD}/install-test/planted.h5)
    message(STATUS "datasets: ${text}")
  endforeach()

  # The same training in C, C++ and Python gives the same result, to the last digit.
  set(file ${BUILD}/install-test/planted.h5)
  set(same ${SOURCE}/tests/install/same)
  compile(same_c ${same}/train.c halfgraph_data)
  run(${BUILD}/install-test/same_c ${file})
  set(expected "${text}")
  if(NOT expected MATCHES "^[01][.0-9]* [0-9.e-]+ [0-9]+\n$")
    message(FATAL_ERROR "train.c printed ${expected}, expected an accuracy, a loss and an epoch")
  endif()
  function(expect_same language)
    run(${ARGN})
    if(NOT text STREQUAL expected)
      message(FATAL_ERROR "${language}: ${text}in C: ${expected}")
    endif()
    message(STATUS "the same in ${language}: ${text}")
  endfunction()
  if(CXX)
    run(sh -c "${CXX} -std=c++17 -Wall -Wextra -Werror ${same}/train.cpp \
      -o ${BUILD}/install-test/same_cxx $(pkg-config --cflags --libs halfgraph_data) \
      -Wl,-rpath,${lib_dir}")
    expect_same(C++ ${BUILD}/install-test/same_cxx ${file})
  endif()
  if(NOT no_numpy)
    expect_same(Python ${CMAKE_COMMAND} -E env --unset=HALFGRAPH_LIB
      PYTHONPATH=${prefix}/share/halfgraph PYTHONDONTWRITEBYTECODE=1 ${python} ${same}/train.py
      ${file})
  endif()
endif()
