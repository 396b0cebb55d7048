# Functions for scripts that test a command line, which read this file with ".". Before that they
# set `tool`, the program, and `refusal`, its exit code for a command line that it refuses.
# `failures` counts the failed checks.
failures=0

fail() {
  echo "FAILED   $*"
  failures=$((failures + 1))
}

# run CODE NAME ARGS...: runs the tool, which must end with this exit code. What it prints is in out
# and err.
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

# Checks the output of --help in out: its lines fit into 100 columns, and a long text continues
# below its first line.
help_is_wrapped() {
  long=$(awk 'length > 100' out)
  [ -z "$long" ] || fail "help: a line of more than 100 columns: $long"
  contains help out '^ \{27\}[a-z]'
}

# The tool must refuse these arguments: exit code $refusal, one line on standard error that contains
# TEXT, and nothing on standard output.
refused() { # NAME TEXT ARGS...
  name=$1 text=$2
  shift 2
  run "$refusal" "$name" "$@"
  contains "$name" err "$text"
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
  [ ! -s out ] || fail "$name: printed to standard output"
}

# interrupt NAME SIGNAL CONDITION ARGS...: starts the tool and sends it the signal as soon as the
# condition holds, or after a minute. It must end with 130. out and err are those of run.
interrupt() {
  name=$1 signal=$2 condition=$3
  shift 3
  "$tool" "$@" >out 2>err &
  child=$!
  tries=0
  until eval "$condition" || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  kill "-$signal" $child
  wait $child
  found=$?
  [ $found -eq 130 ] || { fail "$name: exit code $found, expected 130"; cat err; }
}
