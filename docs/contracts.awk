# Checks that every public function states its contract by itself:
#
#   a doc comment stands directly above it, and has @param for each parameter and no other;
#   a function that gives something back has @return;
#   one that returns hg_status names its errors there (HG_OK and HG_ERR_... or "the errors of");
#   an op (a function of a tape that gives a variable) has an equation where it computes, and the
#   lines Range, Error, Gradient, Cost and Errors; a shadow op, which has the bits of another op,
#   has Range and Errors.
#
# usage: awk -f contracts.awk HEADER...   exit code 1 and one line for each fault
function fault(what)
{
	printf "%s:%d: %s: %s\n", FILENAME, at, name, what
	faults++
}
function has(word)
{
	return comment ~ ("\n \\* " word "  +[^ ]")
}
function check_op(shadow)
{
	if (name == "hg_none" || name ~ /^hg_tape_/ || name ~ /^hg_model_record/)
		return
	if (comment !~ /\n \*     [^ ].* [=<]/)
		fault("no equation")
	if (!has("Range") || !has("Errors"))
		fault("no line Range or no line Errors")
	if (!shadow && (!has("Error") || !has("Gradient") || !has("Cost")))
		fault("no line Error, Gradient or Cost")
}
function check(text,    list, i, n, given, said, parts, k, m)
{
	functions++
	name = text
	sub(/\(.*/, "", name)
	sub(/^.*[ *]/, "", name)
	if (comment == "") {
		fault("no comment /** ... */ directly above it")
		return
	}
	list = text
	sub(/^[^(]*\(/, "", list)
	sub(/\);.*$/, "", list)
	n = list == "void" ? 0 : split(list, given, / *, */)
	for (i = 1; i <= n; i++)
		sub(/^.*[ *]/, "", given[i])
	split("", said)
	m = split(comment, parts, /@param +/)
	for (i = 2; i <= m; i++) {
		k = parts[i]
		sub(/[ \n].*$/, "", k)
		split(k, names, ",")
		for (k in names)
			said[names[k]] = 1
		split("", names)
	}
	for (i = 1; i <= n; i++) {
		if (!(given[i] in said))
			fault("no @param " given[i])
		delete said[given[i]]
	}
	for (k in said)
		fault("@param " k " is no parameter")
	if (text !~ /^HG_API void [a-z]/ && comment !~ /\n \* @return /)
		fault("no @return")
	if (text ~ /hg_status hg_/ && (comment !~ /@return HG_OK/ || comment !~ /HG_ERR_|errors of/))
		fault("@return does not say HG_OK and the errors")
	if (text ~ /^HG_API hg_var /)
		check_op(FILENAME ~ /shadow\.h$/)
}
FNR == 1 { comment = proto = ""; inside = 0 }
proto != "" {
	line = $0
	sub(/^[ \t]+/, " ", line)
	proto = proto line
	if (line ~ /;$/) { check(proto); proto = comment = "" }
	next
}
/^\/\*\*/ { comment = "\n" $0; inside = $0 !~ /\*\//; next }
inside { comment = comment "\n" $0; if ($0 ~ /\*\//) inside = 0; next }
/^HG_API / {
	at = FNR
	if ($0 ~ /;$/) { check($0); comment = "" } else proto = $0
	next
}
{ comment = "" }
END {
	if (functions < 200) {
		printf "%d public functions found, expected at least 200\n", functions
		faults++
	}
	if (!faults) printf "%d public functions, each with its contract\n", functions
	exit faults > 0
}
