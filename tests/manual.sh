#!/bin/sh
# The man page and the completion of one tool: usage: manual.sh TOOL DIRECTORY WORD. Every option of
# --help is in all of them; they are valid where a program is installed that can say so; bash offers
# options, choices and files, and WORD, or nothing for "", where no option is typed. Everything is
# written below DIRECTORY.
set -u
[ $# -eq 3 ] || { echo "3 arguments, not $#"; exit 1; } # DIRECTORY is removed below
tool=$1 dir=$2 word=$3
program=$(basename "$tool") refusal=2
. "$(dirname "$0")/tool.sh"
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir" || exit 1
have() { command -v "$1" >/dev/null 2>&1; }

for shell in bash zsh fish; do
  run 0 $shell --completion $shell
  mv out "script.$shell"
  run 0 "$shell as one word" --completion=$shell
  cmp out "script.$shell" || fail "$shell: as one word it is another script"
done
run 0 man --man
mv out page.1
refused 'no shell' '--completion is "", expected one of bash|zsh|fish and no other' --completion
refused 'another shell' '--completion is "csh", expected one of' --completion csh
refused 'more options' '--completion is "", expected one of' --completion bash --help
[ -z "$(grep -i "$(dirname "$tool")" page.1 script.*)" ] || fail 'a path of this machine'

# Every option, exactly.
run 0 help --help
sed -n 's/^  \(--*[a-z][-a-z0-9]*\).*/\1/p' out >options
[ "$(wc -l <options)" -gt 15 ] || fail "--help lists $(wc -l <options) options"
while read -r option; do
  roff=$(echo "$option" | sed 's/-/\\\\-/g')
  [ "$(grep -c "^\\\\fB$roff\\\\fR" page.1)" -eq 1 ] || fail "man: $option is not there once"
  grep -q -e "[ \"]$option[ \"]" script.bash || fail "bash: no $option"
  [ "$(grep -c -e "^  '$option[=[]" script.zsh)" -eq 1 ] || fail "zsh: $option is not there once"
  flag=$(echo "$option" | sed 's/^--/-l /; s/^-\([a-z]\)$/-s \1/')
  [ "$(grep -c -e "^complete -c $program $flag " script.fish)" -eq 1 ] ||
    fail "fish: $option is not there once"
done <options
[ "$(grep -c '^\.TP$' page.1)" -ge "$(wc -l <options)" ] || fail 'man: too few paragraphs'

# valid NAME COMMAND...: the command, where it is installed, ends with 0 and complains of nothing
valid() {
  what=$1
  shift
  have "$1" || { echo "# skipped: there is no $1"; return; }
  "$@" >printed 2>complaints </dev/null || fail "$what: $* failed"
  [ ! -s complaints ] || { fail "$what: $*"; head -n 5 complaints; }
}
valid man groff -man -ww -Tutf8 page.1
valid man mandoc -Tlint -Wwarning page.1
if have man; then
  MANWIDTH=80 man -l --warnings=w page.1 >shown 2>complaints || fail 'man: cannot be shown'
  [ ! -s complaints ] || { fail 'man: complaints'; head -n 5 complaints; }
  for title in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES 'EXIT STATUS' 'SEE ALSO'; do
    sed 's/.\x08//g' shown | grep -q "^$title" || fail "man: no $title"
  done
fi
valid bash bash -n script.bash
valid zsh zsh -n script.zsh
valid fish fish -n script.fish

# complete WORDS...: what bash offers for the last word, one a line
cat >complete.bash <<'END'
. ./script.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')"
printf '%s\n' "${COMPREPLY[@]}"
END
offered() { bash complete.bash "$program" "$@" 2>&1 | sort; }

if have bash; then
  [ "$(offered --hel)" = --help ] || fail "bash: --hel: $(offered --hel)"
  offered - >found
  sort options | diff - found >difference || { fail 'bash: other options'; cat difference; }
  [ "$(offered --no-such)" = '' ] || fail "bash: --no-such: $(offered --no-such)"
  # a choice, in both forms; h5convert has no --device
  case $program in
  h5convert) option=--features-dtype begin=f1 all='f16 f32' one=f16 ;;
  *) option=--device begin=cu all='auto cpu cuda' one=cuda ;;
  esac
  [ "$(offered $option '' | tr '\n' ' ')" = "$all " ] || fail "bash: $option: $(offered $option '')"
  [ "$(offered $option $begin)" = $one ] || fail "bash: $option $begin: $(offered $option $begin)"
  [ "$(offered $option = $begin)" = $one ] || fail "bash: $option=$begin"
  [ "$(offered $option = | tr '\n' ' ')" = "$all " ] || fail "bash: $option="
  # names that the library knows
  case $program in
  h5convert) offered --from planet | grep -q '^planetoid$' || fail 'bash: no formats' ;;
  *) offered --model g | grep -q '^gcn$' || fail 'bash: no models' ;;
  esac
  # files, also where the name has a blank
  mkdir -p 'a folder'
  echo x >'data 1.h5'
  case $program in
  h5convert) option=--inspect ;;
  hg-bench) option=--graph ;;
  *) option=--data ;;
  esac
  [ "$(offered $option dat)" = 'data 1.h5' ] || fail "bash: $option: $(offered $option dat)"
  [ "$(offered $option = dat)" = 'data 1.h5' ] || fail "bash: $option=dat"
  # nothing where a number is to be typed, and something after a flag
  case $program in
  h5convert) number=--nodes flag=--quiet ;;
  hg-bench) number=--layers flag=--dense ;;
  *) number=--layers flag=--eager ;;
  esac
  [ "$(offered $number '')" = '' ] || fail "bash: $number: $(offered $number '')"
  [ "$(offered $flag --hel)" = --help ] || fail "bash: $flag --hel: $(offered $flag --hel)"
  # the words that are no option
  case $word in
  '') [ "$(offered dat)" = '' ] || fail "bash: a word: $(offered dat)" ;;
  FILE) [ "$(offered dat)" = 'data 1.h5' ] || fail "bash: a file: $(offered dat)" ;;
  *) [ "$(offered "${word%?}")" = "$word" ] || fail "bash: a word: $(offered "${word%?}")" ;;
  esac
fi
if have fish; then
  fish_offers() { fish --no-config -c "source script.fish; complete -C '$program $1'" | cut -f1; }
  fish_offers '--hel' | grep -q '^--help$' || fail "fish: --hel: $(fish_offers --hel)"
  case $program in
  h5convert) fish_offers '--from planet' | grep -q '^planetoid$' || fail 'fish: no formats' ;;
  *) fish_offers '--model gc' | grep -q '^gcn$' || fail 'fish: no models' ;;
  esac
fi
[ "$failures" -eq 0 ] && echo "ok       $program"
exit $((failures > 0))
