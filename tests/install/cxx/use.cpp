// A product on the CPU, in C++: what the static library links is used, too.
#include <halfgraph/halfgraph.h>

#include <cstdio>
#include <vector>

int main()
{
	hg_context_config config = HG_CONTEXT_CONFIG_INIT;
	config.device = HG_DEVICE_CPU;
	hg_context *ctx = nullptr;
	hg_tensor *x = nullptr;
	const std::vector<float> ones(1000, 1.0f);
	if (hg_context_create(&config, &ctx) < 0 || hg_tensor_create(ctx, HG_F16, 100, 10, &x) < 0 ||
	    hg_tensor_upload(x, ones.data(), HG_F32) < 0) {
		std::fprintf(stderr, "%s\n", hg_context_error(ctx));
		return 1;
	}
	std::printf("%s in C++ on %s\n", hg_version_string(), hg_context_device_name(ctx));
	hg_tensor_free(x);
	hg_context_free(ctx);
	return 0;
}
