# Declarations of the public headers, one per line, from the output of `cc -E`: without attributes,
# and with single blanks. Only what stands in a file below halfgraph/ counts.
/^# [0-9]+ "/ { ours = $3 ~ /halfgraph\/[a-z_]+\.h"$/; next }
!ours || /^#/ { next }
{ text = text " " $0 }
function put(declaration)
{
	while (match(declaration, /__attribute__ *\(\(/)) {
		head = substr(declaration, 1, RSTART - 1)
		rest = substr(declaration, RSTART + RLENGTH)
		for (depth = 2; depth > 0 && rest != ""; rest = substr(rest, 2))
			depth += substr(rest, 1, 1) == "(" ? 1 : substr(rest, 1, 1) == ")" ? -1 : 0
		declaration = head rest
	}
	gsub(/[ \t]+/, " ", declaration)
	gsub(/^ | $/, "", declaration)
	if (declaration != "")
		print declaration
}
END {
	n = split(text, parts, "")
	for (i = 1; i <= n; i++) {
		c = parts[i]
		level += c == "{" ? 1 : c == "}" ? -1 : 0
		if (c == ";" && level == 0) {
			put(line)
			line = ""
		} else
			line = line c
	}
	put(line)
}
