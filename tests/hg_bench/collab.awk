# The edges of all graphs of a file in the format of Xu et al. 2019, "source destination", as one block-diagonal graph: line 1 the number of graphs; for each
# graph a line `nodes label`, then for each node a line `tag count neighbour ...`, neighbours counted from 0 in the graph.
NR == 1 { next }
left == 0 { first += nodes; nodes = left = $1; next }
{
	for (k = 3; k <= NF; k++)
		print first + $k, first + nodes - left
	left--
}
