# hg_commit_of(folder result): sets `result` to the git commit of the sources in `folder`. It is
# "unknown" if the folder is not the top of a git repository: for example a copy without .git,
# which may lie inside another project's repository.
function(hg_commit_of folder result)
  set(${result} unknown PARENT_SCOPE)
  execute_process(COMMAND git rev-parse --show-toplevel WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE
    top
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    return()
  endif()
  file(REAL_PATH ${top} top)
  file(REAL_PATH ${folder} here)
  if(NOT top STREQUAL here)
    return()
  endif()
  execute_process(COMMAND git describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${folder}
    OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(${result} ${commit} PARENT_SCOPE)
  endif()
endfunction()
