#include "hwprofiles/cloud_instances.h"

#include <array>

namespace spillway::hwprofiles {
namespace {

constexpr std::string_view ml = "stas00/ml-engineering@744d01e network/README.md";
constexpr std::string_view unread = "widely published; not re-read from the vendor";
constexpr std::string_view azure = "huggingface.co/docs/microsoft-azure hardware; network not re-read";
constexpr std::string_view aspire = "microsoft/aspire AksNodeVmSizes";
constexpr std::string_view oci = "oci-hpc's list of 16 mlx5 devices; their rate not re-read";
constexpr std::string_view oci_400 = "oci-hpc's list of 8 mlx5 devices; their rate not re-read";

constexpr std::array instances = {
    CloudInstance{"AWS", "p4d.24xlarge", "p4d", "cloud-8xa100", "EFA v1, 4 x 100 Gbit/s", ml},
    CloudInstance{"AWS", "p4de.24xlarge", "p4de", "8xa100-80gb+ram=1152 GiB+cloud-400-per-8", "EFA v1, 4 x 100 Gbit/s",
                  ml},
    CloudInstance{"AWS", "p5.48xlarge", "p5", "cloud-8xh100", "EFA v2, 32 x 100 Gbit/s", "pytorch/torchx pull 1098"},
    CloudInstance{"AWS", "p5e.48xlarge", "p5e", "8xh200+ram=2048 GiB+cloud-3200-per-8", "EFA v2, 32 x 100 Gbit/s",
                  "pytorch/torchx pull 1098"},
    CloudInstance{"AWS", "p5en.48xlarge", "p5en", "8xh200+ram=2048 GiB+cloud-3200-per-8", "EFA v3, 16 x 200 Gbit/s",
                  "pytorch/torchx pull 995; dstackai/dstack pull 4110"},
    CloudInstance{"AWS", "p6-b200.48xlarge", "p6-b200", "8xb200+ram=2048 GiB+cloud-3200-per-8",
                  "EFA v4, 8 x 400 Gbit/s", ml},
    CloudInstance{"AWS", "p6-b300.48xlarge", "p6-b300", "cloud-8xb300", "EFA v4, 16 x 400 Gbit/s", ml},
    CloudInstance{"AWS", "p6e-gb200.36xlarge", "p6e-gb200", "gb200-nvl72+ram=960 GiB+cloud-6400-per-8",
                  "EFA v3, 3,200 Gbit/s a machine of 4", ml},
    CloudInstance{"AWS", "g5.48xlarge", "g5", "8xa10g+ram=768 GiB+cloud-100-per-8", "EFA v1, 100 Gbit/s", unread},
    CloudInstance{"AWS", "g6e.48xlarge", "g6e", "8xl40s+ram=1536 GiB+cloud-400-per-8", "EFA, 400 Gbit/s", unread},
    CloudInstance{"Google Cloud", "a2-highgpu-8g", "a2", "8xa100-40gb+ram=680 GiB+cloud-100-per-8", "100 Gbit/s",
                  "skypilot catalog v8 gcp/vms.csv (host); network not re-read"},
    CloudInstance{"Google Cloud", "a2-ultragpu-8g", "a2-ultra", "8xa100-80gb+ram=1360 GiB+cloud-100-per-8",
                  "100 Gbit/s", unread},
    CloudInstance{"Google Cloud", "a3-highgpu-8g", "a3-high", "8xh100+ram=1872 GiB+cloud-800-per-8",
                  "TCPX, 4 x 200 Gbit/s", ml},
    CloudInstance{"Google Cloud", "a3-megagpu-8g", "a3-mega", "8xh100+ram=1872 GiB+cloud-1600-per-8",
                  "TCPXO, 8 x 200 Gbit/s", ml},
    CloudInstance{"Google Cloud", "a3-ultragpu-8g", "a3-ultra", "8xh200+ram=2952 GiB+roce-400",
                  "RoCE v2, 8 x 400 Gbit/s", "GoogleCloudPlatform/cluster-toolkit release 1.44.1"},
    CloudInstance{"Google Cloud", "a4-highgpu-8g", "a4", "8xb200+ram=3968 GiB+roce-400", "RoCE v2, 8 x 400 Gbit/s",
                  "dstackai/dstack pull 3152; rate not re-read"},
    CloudInstance{"Google Cloud", "a4x-highgpu-4g", "a4x", "gb200-nvl72+ram=884 GiB+roce-400",
                  "RoCE v2, 4 x 400 Gbit/s", "docs.nvidia.com/aicr gke-a-4-x-max-networking"},
    CloudInstance{"Azure", "ND96asr_v4", "nd-a100-v4", "8xa100-40gb+ram=900 GiB", "InfiniBand HDR, 8 x 200 Gbit/s",
                  azure},
    CloudInstance{"Azure", "ND96amsr_A100_v4", "ndm-a100-v4", "8xa100-80gb+ram=1900 GiB",
                  "InfiniBand HDR, 8 x 200 Gbit/s", azure},
    CloudInstance{"Azure", "ND96isr_H100_v5", "nd-h100-v5", "8xh100+ram=1900 GiB", "InfiniBand NDR, 8 x 400 Gbit/s",
                  aspire},
    CloudInstance{"Azure", "ND96isr_H200_v5", "nd-h200-v5", "8xh200+ram=1850 GiB", "InfiniBand NDR, 8 x 400 Gbit/s",
                  aspire},
    CloudInstance{"Azure", "ND96isr_MI300X_v5", "nd-mi300x-v5", "8xmi300x+ram=1850 GiB+ib-ndr-400",
                  "InfiniBand NDR, 8 x 400 Gbit/s", "MicrosoftDocs/azure-docs nd-mi300x-v5-series.md"},
    CloudInstance{"Azure", "ND128isr_NDR_GB200_v6", "nd-gb200-v6", "gb200-nvl72+ram=864 GiB",
                  "InfiniBand NDR, 4 x 400 Gbit/s", "microsoft/aspire AksNodeVmSizes; network not re-read"},
    CloudInstance{"Azure", "NC96ads_A100_v4", "nc-a100-v4", "4xa100-pcie-80gb+ram=880 GiB", "",
                  "huggingface.co/docs/microsoft-azure hardware"},
    CloudInstance{"Oracle", "BM.GPU4.8", "oci-a100-40gb", "8xa100-40gb+ram=2048 GiB+roce-200",
                  "RoCE v2, 16 x 100 Gbit/s", oci},
    CloudInstance{"Oracle", "BM.GPU.A100-v2.8", "oci-a100", "8xa100-80gb+ram=2048 GiB+roce-200",
                  "RoCE v2, 16 x 100 Gbit/s", oci},
    CloudInstance{"Oracle", "BM.GPU.H100.8", "oci-h100", "8xh100+ram=2048 GiB+roce-400", "RoCE v2, 16 x 200 Gbit/s",
                  oci},
    CloudInstance{"Oracle", "BM.GPU.H200.8", "oci-h200", "8xh200+ram=3072 GiB+roce-400", "RoCE v2, 8 x 400 Gbit/s",
                  oci_400},
    CloudInstance{"Oracle", "BM.GPU.B200.8", "oci-b200", "8xb200+ram=4096 GiB+roce-400", "RoCE v2, 8 x 400 Gbit/s",
                  oci_400},
    CloudInstance{"Oracle", "BM.GPU.MI300X.8", "oci-mi300x", "8xmi300x+ram=2048 GiB+roce-400",
                  "RoCE v2, 8 x 400 Gbit/s", oci_400},
    CloudInstance{"Lambda", "gpu_8x_h100_sxm5", "lambda-8xh100", "8xh100+ram=1800 GiB",
                  "of a 1-Click Cluster: InfiniBand NDR, 8 x 400 Gbit/s", unread},
};

}  // namespace

std::span<const CloudInstance> cloud_instances() { return instances; }

}  // namespace spillway::hwprofiles
