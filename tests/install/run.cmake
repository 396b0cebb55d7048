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
run(sh -c "${CC} -std=c17 ${example} -o ${BUILD}/install-test/train_static \
  $(pkg-config --static --cflags --libs halfgraph | sed 's/-lhalfgraph/-l:libhalfgraph.a/')")
run(${BUILD}/install-test/train_static)
message(STATUS "through pkg-config --static: ${text}")
run(sh -c "readelf -d ${BUILD}/install-test/train_static")
if(text MATCHES "libhalfgraph")
  message(FATAL_ERROR "the static program needs the shared library:\n${text}")
endif()

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

# A project that contains this one. It is only configured, since it would build the same again.
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/install/parent -B ${BUILD}/install-test/parent
  -DHALFGRAPH=${SOURCE} -DEXAMPLE=${example})
message(STATUS "in a parent: configured")
if(EXISTS ${pc_dir}/halfgraph_data.pc)
  compile(data ${SOURCE}/tests/install/data.c halfgraph_data)
  foreach(program ${BUILD}/install-test/cmake/data ${BUILD}/install-test/data)
    run(${program} ${BUILD}/install-test/planted.h5)
    message(STATUS "datasets: ${text}")
  endforeach()
endif()
