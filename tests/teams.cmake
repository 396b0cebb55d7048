# cmake -DSOURCE=dir -P teams.cmake: every parallel region gets its number of threads from
# hg__team() or hg__threads() (src/core/process.h), because in a forked process a team of another
# size waits for ever.
set(count 0)
file(GLOB_RECURSE files ${SOURCE}/src/*.c ${SOURCE}/src/*.h ${SOURCE}/data/*.c)
foreach(path ${files})
  file(STRINGS ${path} lines REGEX "# *pragma omp.*parallel")
  if(NOT lines)
    continue()
  endif()
  file(READ ${path} text)
  foreach(line ${lines})
    math(EXPR count "${count} + 1")
    if(path MATCHES "/core/rounding\\.c$")
      continue() # called by hg__threads() itself
    endif()
    if(line MATCHES "num_threads\\(hg__team\\(ctx, " OR line MATCHES
      "num_threads\\(work->threads\\)")
      continue() # order.c fills work->threads by hg__threads()
    endif()
    if(NOT line MATCHES "num_threads\\(team\\)" OR NOT text MATCHES
      "const int team = hg__team\\(ctx, ")
      message(FATAL_ERROR "${path}: a parallel region without hg__team():\n${line}")
    endif()
  endforeach()
endforeach()
if(count LESS 40)
  message(FATAL_ERROR "${count} parallel regions found: the check has nothing to check")
endif()
message(STATUS "${count} parallel regions ask for their threads")
