# Shows the rows that reg_stat_print writes, for people and as JSON. To be sourced.
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash

group_shown=

# show: rows from the standard input; a group that was shown last gets no heading again.
show()
{
	awk -F '\t' -v group="$group_shown" '
	function number(x) { return sprintf($4 == "ratio" ? "%.3f" : $4 == "ns" || $4 == "%" ? "%.1f" : $4 == "s" ? "%.2f" : "%d", x) }
	{
		if ($1 != group) printf "\n%-62s %-8s %9s %19s %19s %4s\n", group = $1, "", "median", "95 % interval", "quartiles", "n"
		printf "  %-60s %-8s %9s %9s %9s %9s %9s %4d  %s %s\n", $2, $3 == $4 ? "" : $3, number($5), number($6), number($7),
			number($8), number($9), $10, $11 == "-" ? "" : $11, $12 == "info" ? "" : $12
	}'
}

# write_json FILE: an array of rows; a limit that there is none of is null.
write_json()
{
	awk -F '\t' '
	BEGIN { printf "[" }
	{
		printf "%s\n{\"group\": \"%s\", \"name\": \"%s\", \"what\": \"%s\", \"unit\": \"%s\", ", (NR > 1 ? "," : ""),
			$1, $2, $3, $4
		printf "\"median\": %s, \"low\": %s, \"high\": %s, \"quartile1\": %s, \"quartile3\": %s, \"n\": %s, ", $5, $6,
			$7, $8, $9, $10
		printf "\"limit\": %s, \"verdict\": \"%s\"}", ($11 == "-" ? "null" : "\"" $11 "\""), tolower($12)
	}
	END { print "\n]" }' "$1"
}
