# Prepares a public header for Doxygen; it prints one line for each line it reads, so that the line
# numbers of warnings stay right. The headers are written to be read as plain text:
#
#   Range     max|Y| <= max|X|        becomes a list item with the key in bold
#   words of an aligned table          (4 spaces of indent and more) are verbatim in Markdown already
#
# and the first member of a versioned struct needs no comment of its own, since it always means the
# same.
/^ \* [A-Z][a-z]+  +[^ ]/ {
	key = $2
	rest = $0
	sub(/^ \* [A-Z][a-z]+  +/, "", rest)
	$0 = " * - **" key "** " rest
}
/^\tsize_t size;$/ {
	$0 = "\tsize_t size; /**< size of this struct in bytes, set by its _INIT or default function */"
}
{ print }
