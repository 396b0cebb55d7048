# cmake -DSOURCE=dir -P locale.cmake: the library reads and writes fractions through hg__number,
# hg__print and hg__vprint (src/core/text.h) and, where files are concerned, hg__number_read,
# hg__data_fail and hg__stream_text. printf and strtod use the decimal separator of the locale of
# the program.
set(text_files src/core/text.c data/message.c data/stream.c data/import/number.c)
set(real "%[-+ #0-9.*]*l?[aAeEfFgG]")
set(count 0)
file(GLOB_RECURSE files RELATIVE ${SOURCE}
  ${SOURCE}/src/*.c ${SOURCE}/src/*.h ${SOURCE}/src/*.cu ${SOURCE}/src/*.cuh
  ${SOURCE}/data/*.c ${SOURCE}/data/*.h)
list(REMOVE_ITEM files ${text_files})
foreach(path ${files})
  file(READ ${SOURCE}/${path} text)
  math(EXPR count "${count} + 1")
  foreach(pattern "[^_a-z]strto(d|f|ld)[(]" "[^_a-z]atof[(]" "[^_a-z]setlocale[(]" 
      "[^_a-z]vsn?printf[(]" "[^_a-z]strn?casecmp[(]"
      "[^_a-z]sn?printf[(][^;]*${real}" "[^_a-z]s?scanf[(][^;]*${real}")
    if(text MATCHES "${pattern}")
      message(FATAL_ERROR "${path} depends on the locale: ${CMAKE_MATCH_0}")
    endif()
  endforeach()
endforeach()
# The tools stay in the locale "C", in which every program starts. There printf and strtod use a
# point.
file(GLOB_RECURSE files ${SOURCE}/tools/*.c ${SOURCE}/tools/*.cu)
foreach(path ${files})
  file(READ ${path} text)
  if(text MATCHES "[^_a-z]setlocale[(]")
    message(FATAL_ERROR "${path} chooses a locale")
  endif()
endforeach()
if(count LESS 200)
  message(FATAL_ERROR "${count} files found: the check has nothing to check")
endif()
message(STATUS "${count} files do not depend on the locale")
