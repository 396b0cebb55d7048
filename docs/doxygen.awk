# Prepares a public header for Doxygen; it prints one line for each line it reads, so that the line
# numbers of warnings stay right. The headers are written to be read as plain text:
#
#   Range     max|Y| <= max|X|
#
# becomes a list item with the key in bold (tables and equations are indented by 4 spaces or more,
# which is verbatim in Markdown).
# The first member of a versioned struct needs no comment of its own, since
# it always means the same.
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
