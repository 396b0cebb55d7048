# For scripts that test a command line, sourced: tool is the program, refusal the exit code of what it refuses. `failures` counts.
failures=0

fail() {
  echo "FAILED   $*"
  failures=$((failures + 1))
}

# run CODE NAME ARGS...: exit code as promised; out and err keep what was printed.
run() {
  code=$1 name=$2
  shift 2
  "$tool" "$@" >out 2>err </dev/null
  found=$?
  [ "$found" -eq "$code" ] || { fail "$name: exit code $found, expected $code"; cat err; }
}

contains() { # NAME FILE TEXT
  grep -q -e "$3" "$2" || { fail "$1: '$3' is not in $2:"; head -n 5 "$2"; }
}

# A refusal: code $refusal, one line on standard error that names the matter, nothing on standard output.
refused() { # NAME TEXT ARGS...
  name=$1 text=$2
  shift 2
  run "$refusal" "$name" "$@"
  contains "$name" err "$text"
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
  [ ! -s out ] || fail "$name: printed to standard output"
}
