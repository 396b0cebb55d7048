#!/bin/sh
# A run that is killed, again and again, at any moment, and continued by the same command, ends with
# the same bits as one that was not: usage: kill.sh HG-TRAIN H5CONVERT DIRECTORY. HG_KILLS is how
# often it is killed (5), HG_BATCH_KILLS how often one in batches of graphs is (2), HG_SEED decides
# when. A full disk leaves the old checkpoint as it was.
# Everything is written below DIRECTORY.
set -u
[ $# -eq 3 ] || { echo "3 arguments, not $#"; exit 1; } # DIRECTORY is removed below
train=$1 convert=$2 dir=$3
tool=$train refusal=2
kills=${HG_KILLS:-5} batch_kills=${HG_BATCH_KILLS:-2} seed=${HG_SEED:-$(date +%s)}
. "$(dirname "$0")/../tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
echo "# seed $seed"
"$convert" --synthetic planted --nodes 600 --classes 4 --features 16 --degree 8 --hubs 2 \
  --hub-degree 100 --scale 1 --seed 3 --quiet -o data.h5 || exit 1
# This one overflows in its first steps, after which the tapes are recorded again.
"$convert" --synthetic planted --nodes 4000 --classes 4 --features 8 --degree 6 --hubs 1 \
  --hub-degree 3500 --scale 32 --seed 1 --features-dtype f16 --quiet -o hub.h5 || exit 1

# graphs NAME LARGEST: 40 stars of 20 to 59 leaves, whose features are at most LARGEST and tell the
# class of the graph.
graphs() {
  mkdir -p "$1"
  awk -v name="$1/$1" -v largest="$2" 'BEGIN {
    srand(1)
    for (g = 1; g <= 40; g++) {
      class = g % 2
      print class >(name "_graph_labels.txt")
      first = ++n
      for (i = 0; i < 20 + g; i++) {
        if (i) { n++; print first ", " n "\n" n ", " first >(name "_A.txt") }
        print g >(name "_graph_indicator.txt")
        print largest * (class + rand()) / 2 ", " largest * rand() >(name "_node_attributes.txt")
      }
    }
  }'
  "$convert" --from tu "$1" --split random:0.6/0.2/0.2 --quiet -o "$1.h5" || exit 1
}
graphs small 1
graphs large 4000 # the sum at a star overflows

# The options, and how many epochs there are.
calm_batches='--data small.h5 --model gin --batch-size 5 --device cpu --seed 4 --eval-every 2'
wild_batches='--data large.h5 --model gin --batch-size 5 --device cpu --dropout 0
  --row-normalize off'
calm='--data data.h5 --model gat --device cpu --seed 4 --eval-every 2'
wild='--data hub.h5 --model gin --dropout 0 --device cpu'
refused 'continue and save' '--continue and --save: expected one' $calm --continue a.h5 --save b.h5
refused 'continue and resume' '--continue and --resume: expected one' $calm --continue a.h5 \
  --resume b.h5
refused 'patience' '--patience counts from where a run began' $calm --continue a.h5 --patience 3
refused 'save nowhere' '--save-every needs --save or --continue' $calm --save-every 3
refused 'many runs' '--continue is for one run, but --seeds' $calm --continue a.h5 --seeds 2
echo 'no checkpoint' >bad.h5
refused 'damaged' 'bad.h5: not an HDF5 file' $calm --continue bad.h5
[ "$(cat bad.h5)" = 'no checkpoint' ] || fail 'damaged: it was overwritten'

# What is saved between overflows does not repeat them.
for options in "$calm" "$wild" "$calm_batches" "$wild_batches"; do
  run 0 'whole' $options --epochs 24 --save whole.h5
  rm -f parts.h5
  for epochs in 2 4 4 10 24; do
    "$train" $options --epochs $epochs --continue parts.h5 >out 2>err
    code=$?
    [ $code -eq 0 ] || { [ $code -eq 3 ] && [ $epochs -lt 9 ]; } ||
      fail "parts: exit code $code: $(cat err)"
  done
  cmp whole.h5 parts.h5 || fail 'parts: another checkpoint'
  run 0 'done' $options --epochs 24 --continue parts.h5
  contains 'done' out 'parts.h5: 24 of 24 epochs are done'
done

# prepare OPTIONS...: the checkpoint without a kill, and the seconds that a run with many saves
# takes.
prepare() {
  run 0 'not killed' "$@" --save whole.h5
  began=$(date +%s.%N)
  run 0 'saved often' "$@" --save often.h5 --save-every 1
  seconds=$(date +%s.%N | awk -v b="$began" '{ print $1 - b }')
  cmp whole.h5 often.h5 || fail 'saved often: another checkpoint'
}

# finish OPTIONS...: lets the run end, compares it, and begins anew.
finish() {
  run 0 'the end' "$@"
  cmp -s whole.h5 killed.h5 || fail "round $rounds: other bits than without a kill"
  rm -f killed.h5
  rounds=$((rounds + 1))
}

# kill_often COUNT OPTIONS...: kills the run COUNT times after times below half of what it takes, so
# that most kills hit the training and the saving, some the start.
kill_often() {
  count=$1 killed=0 rounds=1 tries=0
  shift
  prepare "$@"
  awk -v seed="$seed" -v s="$seconds" \
    'BEGIN { srand(seed); for (k = 0; k < 5000; k++) printf "%.3f\n", s / 2 * rand() }' >delays
  while read -r delay <&3 && [ $killed -lt "$count" ]; do
    "$train" "$@" --continue killed.h5 --save-every 1 >out 2>err &
    child=$!
    sleep "$delay"
    kill -KILL $child 2>/dev/null
    wait $child 2>/dev/null
    code=$?
    case $code in
    137) killed=$((killed + 1)) ;;
    0) finish "$@" --continue killed.h5 --save-every 1 ;;
    *) fail "kill $killed: exit code $code: $(cat err)"; break ;;
    esac
  done 3<delays
  [ $killed -eq "$count" ] || fail "$killed of $count kills"
  finish "$@" --continue killed.h5 --save-every 1
  echo "# $killed of $count kills in $((rounds - 1)) rounds; every round ended with the same bits"
  [ -z "$(find . -name 'killed.h5*.tmp')" ] || fail 'a temporary file was left behind'
}
kill_often $(((kills + 1) / 2)) $calm --epochs 40
kill_often $((kills / 2)) $wild --epochs 20
kill_often $(((batch_kills + 1) / 2)) $calm_batches --epochs 30
kill_often $((batch_kills / 2)) $wild_batches --epochs 20

# A full disk: the checkpoint is as before, the training goes on, and its end is a failure. With
# room the same command finishes.
run 0 'whole' $calm --epochs 12 --save whole.h5
size=$(wc -c <whole.h5)
mkdir -p full
if mount -t tmpfs -o size=$((size + size / 2)) tmpfs full 2>/dev/null; then
  trap 'umount full' EXIT
  run 0 'room' $calm --epochs 4 --continue full/c.h5
  cp full/c.h5 before.h5
  run 1 'no room' $calm --epochs 12 --continue full/c.h5 --save-every 2
  contains 'no room' err \
    'c.h5: cannot be written: No space left on device: the training goes on, and the file is as'
  [ "$(grep -c 'the training goes on' err)" -eq 1 ] || fail 'no room: told more than once'
  cmp before.h5 full/c.h5 || fail 'no room: another checkpoint'
  [ -z "$(find full -name '*.tmp')" ] || fail 'no room: a temporary file was left behind'
  mount -o remount,size=$((size * 4)) full
  run 0 'room again' $calm --epochs 12 --continue full/c.h5
  cmp whole.h5 full/c.h5 || fail 'room again: another checkpoint'
else
  echo '# skipped: a full disk, which takes the permission to mount'
fi
exit $((failures > 0))
