# Prints the edges of all graphs of a file in the format of Xu et al. 2019 as "source destination",
# one block-diagonal graph. The file's line 1 is the number of graphs. Each graph has a line
# `nodes label` and then, for each node, a line `tag count neighbour ...`, where neighbours are
# counted from 0 in the graph.
NR == 1 { next }
left == 0 { first += nodes; nodes = left = $1; next }
{
	for (k = 3; k <= NF; k++)
		print first + $k, first + nodes - left
	left--
}
