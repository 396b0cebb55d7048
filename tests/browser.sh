# Functions for scripts that show pages in a browser, which read this file with "." after tool.sh.
# `browser` is its path, or empty where there is none. `fitting` is the path of fits.html.
browser=
for name in chromium chromium-browser google-chrome; do
  [ -n "$browser" ] || browser=$(command -v $name)
done
[ -n "$browser" ] || echo 'Skipped: no chromium on PATH, so no page is shown'

# browse ARGS...: what the browser prints for an address. A profile of its own keeps it apart from
# that of the user.
browse() {
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" \
    --allow-file-access-from-files "$@" </dev/null
}

# In windows of 360 to 1280 pixels, light and dark, the browser shows the page without cutting
# anything off, and every text and curve stands out from its background. fits.html looks whether the
# browser really shows the scheme, because the numbers of this setting are not documented.
fits() { # NAME FILE
  for scheme in dark light; do
    number=0
    [ $scheme = dark ] || number=1
    browse --blink-settings=preferredColorScheme=$number --virtual-time-budget=20000 --dump-dom \
      "file://$fitting#$scheme:file://$PWD/$2" >dom 2>/dev/null
    grep -q '<pre>fits</pre>' dom || fail "$1, $scheme: $(sed -n '/<pre>/,/<\/pre>/p' dom)"
  done
}
