// Whether cuFile moves bytes straight between a drive and the GPU, or by its compatibility mode: through host memory,
// by calls that look the same. It falls back silently if nvidia-fs is not loaded, if it doesn't know the file system or
// the drive, or if a setting says so. A rate that is called GPUDirect's must not be that of the compatibility mode.
//
// What tells, in this order:
//
//   force_compat_mode (CUFILE_FORCE_COMPAT_MODE or cufile.json)       compatibility
//   allow_compat_mode false (CUFILE_ALLOW_COMPAT_MODE or cufile.json)  direct: what moved can't have gone otherwise
//   requests that nvidia-fs has counted meanwhile, or has not          direct, or compatibility
//   no nvidia-fs and no peer-to-peer DMA (cuFileDriverGetProperties)   compatibility
//   else                                                               unknown
//
// nvidia-fs counts only where its parameter rw_stats_enabled is set. Names are those of the cuFile API Reference and of
// the GPUDirect Storage guides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spillway::hwprofiles {

enum class CufileWay : std::uint8_t { direct, compatibility, unknown };

struct CufileEvidence {
  bool has_nvidia_fs = false;             // the driver is loaded
  std::optional<std::uint64_t> requests;  // reads and writes that it has done; none: it doesn't count them
  bool has_peer_to_peer = false;          // cuFile can do without nvidia-fs
  bool allows_compatibility = true;
  bool forces_compatibility = false;
};

struct CufileVerdict {
  CufileWay way = CufileWay::unknown;
  std::string why;  // in words
};

// Verdict on what moved between the two.
CufileVerdict cufile_verdict(const CufileEvidence& before, const CufileEvidence& after);

// This machine's evidence: `folder` of nvidia-fs (SPILLWAY_NVIDIA_FS, else /proc/driver/nvidia-fs), the environment and
// the file that CUFILE_ENV_PATH_JSON names (else /etc/cufile.json), which may hold comments. A source that can't be
// read says nothing.
CufileEvidence cufile_evidence(bool has_peer_to_peer);

// Done reads and writes by the text of nvidia-fs's stats; none where it counts none.
std::optional<std::uint64_t> nvidia_fs_requests(const std::string& stats);

}  // namespace spillway::hwprofiles
