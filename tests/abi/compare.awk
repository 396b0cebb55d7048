# compare.awk RECORD NOW: prints each recorded declaration that programs can no longer rely on.
# Additions are fine: functions and types, enumerators at the end of an enum, and members at the end
# of a struct that begins with its size, unless another struct contains it by value.
function name_of(declaration)
{
	sub(/.*} */, "", declaration)
	return declaration
}
FNR == NR { if (!/^version /) recorded[++records] = $0; next }
{ now[$0] = 1; if (/}/) typed[name_of($0)] = $0 }
END {
	for (i = 1; i <= records; i++)
		if (recorded[i] in now || grew(recorded[i]))
			continue
		else
			print recorded[i]
}
function grew(old, name, body, k)
{
	if (old !~ /}/)
		return 0
	name = name_of(old)
	if (!(name in typed))
		return 0
	body = old
	sub(/[, ]*}[^}]*$/, "", body)
	if (substr(typed[name], 1, length(body)) != body)
		return 0
	if (substr(typed[name], length(body) + 1, 1) !~ /[,; ]/)
		return 0
	if (old ~ /^typedef enum/)
		return 1
	if (old !~ /{ size_t size;/)
		return 0
	for (k = 1; k <= records; k++)
		if (recorded[k] ~ ("[{;] " name " [a-z_]+;"))
			return 0
	return 1
}
