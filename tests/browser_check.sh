#!/bin/sh
# Do the checks of pages in a browser find what is wrong? usage: browser_check.sh DIRECTORY, which
# is used for scratch files. Without a browser it ends with 77, so that ctest shows that no page is
# looked at.
set -u
[ $# -eq 1 ] || { echo "1 argument, not $#"; exit 1; } # DIRECTORY is removed below
. "$(dirname "$0")/tool.sh"
. "$(dirname "$0")/browser.sh"
[ -n "$browser" ] || exit 77
rm -rf "$1"
mkdir -p "$1"
fitting=$(cd "$(dirname "$0")" && pwd)/fits.html
cd "$1" || exit 1

# A page with one more line of style and one more element. What fits says of it is in found.
page() { # NAME STYLE ELEMENT
  cat >page.html <<END
<!doctype html><html><head><meta charset="utf-8"/><style>
:root{color-scheme:light dark;--paper:#fff;--ink:#222}
@media (prefers-color-scheme:dark){:root{--paper:#111;--ink:#eee}}
body{background:var(--paper);color:var(--ink)} $2
</style></head><body><p>A page.</p>$3</body></html>
END
  before=$failures
  fits "$1" page.html >found
  told=$((failures - before))
  failures=$before
}
finds() { # NAME SCHEMES TEXT STYLE ELEMENT
  name=$1 schemes=$2 text=$3
  page "$name" "$4" "$5"
  [ "$told" -eq "$schemes" ] || fail "$name: found in $told schemes, not in $schemes: $(cat found)"
  [ "$schemes" -eq 0 ] || contains "$name" found "$text"
}
finds 'a good page' 0 '' 'text{fill:var(--ink)}' '<svg viewBox="0 0 90 20" width="90"><text x="5"
  y="15">x</text></svg>'
finds 'a wide box' 2 'beyond the right edge: DIV' 'div{width:1400px}' '<div>wide</div>'
finds 'a box that scrolls' 0 '' 'i{display:block;width:1400px}.scroll{overflow:auto}' \
  '<div class="scroll"><i>wide</i></div>'
finds 'text beyond a picture' 2 'cut off: text' 'text{fill:var(--ink)}' '<svg viewBox="0 0 90 20"
  width="90"><text x="60" y="15">much too long</text></svg>'
finds 'grey on grey' 2 'contrast 1' 'b{color:#999;background:#aaa}' '<b>grey</b>'
finds 'light only' 1 'dark: .*contrast 1' 'b{color:#222}' '<b>ink</b>'
finds 'an element that lets through' 1 'light: .*contrast' 'b{opacity:.5}' '<b>pale</b>'
finds 'text on a shape' 2 'contrast 1.00: text' '' '<svg viewBox="0 0 90 20" width="90"><path
  d="M0 0H90V20H0z" fill="#777"/><text x="5" y="15" fill="#777">x</text></svg>'
finds 'a pale curve' 1 'contrast .* of series' '' '<svg viewBox="0 0 90 20" width="90"><path
  class="series" d="M0 5H90" fill="none" stroke="#aaa"/></svg>'
finds 'in a closed box' 2 'contrast 1.00: P' 'details p{color:var(--paper)}' \
  '<details><summary>more</summary><p>hidden</p></details>'

[ "$failures" -eq 0 ] || exit 1
echo 'pages that do not fit are found'
