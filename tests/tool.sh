# For scripts that test a command line, sourced: tool is the program, refusal the exit code of what
# it refuses. `failures` counts.
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

# --help is in out: its lines fit into 100 columns, and a long text continues below its first line.
help_is_wrapped() {
  long=$(awk 'length > 100' out)
  [ -z "$long" ] || fail "help: a line of more than 100 columns: $long"
  contains help out '^ \{27\}[a-z]'
}

# A refusal: code $refusal, one line on standard error that names the matter, nothing on standard
# output.
refused() { # NAME TEXT ARGS...
  name=$1 text=$2
  shift 2
  run "$refusal" "$name" "$@"
  contains "$name" err "$text"
  [ "$(wc -l <err)" -eq 1 ] || { fail "$name: not one line:"; cat err; }
  [ ! -s out ] || fail "$name: printed to standard output"
}

# interrupt NAME SIGNAL CONDITION ARGS...: starts the tool, sends it the signal as soon as the
# condition holds, a minute later at most: it ends with 130. out, err as of run.
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
