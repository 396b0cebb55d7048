/* A program of a user of the dataset library: writes a planted graph to a file and reads it. Usage:
 * data FILE.h5 */
#include <halfgraph/data.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	char message[HG_DATA_MESSAGE] = "";
	hg_planted_config config = HG_PLANTED_CONFIG_INIT;
	hg_dataset *made = NULL, *read = NULL;
	config.nodes = 200;
	config.hub_degree = 20;
	hg_status status = argc == 2 ? hg_dataset_planted(&config, &made, message) : HG_ERR_ARG;
	if (status == HG_OK)
		status = hg_dataset_write(made, argv[1], message);
	if (status == HG_OK)
		status = hg_dataset_read(argv[1], &read, message);
	if (status == HG_OK)
		printf("%lld nodes in a file\n", (long long)read->nodes);
	else
		fprintf(stderr, "%s: %s\n", hg_status_name(status), message);
	hg_dataset_free(read);
	hg_dataset_free(made);
	return status != HG_OK;
}
