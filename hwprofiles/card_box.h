// Boxes of cards by rule, where no profile of one is there: so many cards of one kind, a host as they usually have, and
// what links them.
//
//   cards     host                                                            slots
//   1, 2      one socket, 16 cores, 64 GiB on two channels of a desktop       x16; two cards x8
//   3, 4      one socket, 32 cores, 256 GiB on eight channels of a server     x16
//   more      two sockets, 64 cores, 512 GiB on sixteen channels              x16, half the cards at each socket
//
// Transfers a second of a channel are those of the card's PCIe generation. Drives are none unless the user names some.
//
// Cards that reach each other's memory over PCIe get a ring's rate as measured of such. Copies of the others go through
// the host's memory, which takes 2 n flows of the ring's rate for n cards:
//
//   B(n) = min(e x link one way, m x host memory bandwidth / (2 n))
//
// e = 0.55 and m = 0.73 from eight RTX 5090 on PCIe 5 x16 and 614 GB/s of memory: 35 GB/s with four, 28 with eight
// (NVIDIA/nccl issue 1639). On an older box e is 0.32 (eight A40, NVIDIA/nccl-tests issue 74).
#pragma once

#include <cstdint>

#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

// A card sits in a slot; modules (SXM, OAM) and superchips come with their machine.
[[nodiscard]] bool is_card(const GpuProfile& gpu);

// Named "4xrtx-4090". Precondition: is_card(gpu), cards >= 1.
[[nodiscard]] HardwareProfile box_of_cards(const ProfileLibrary& library, const GpuProfile& gpu, std::int64_t cards);

// Network of the cards of one machine, with or without reach into each other's memory. More than one card.
[[nodiscard]] NetworkProfile card_links(const HardwareProfile& machine, bool peer_access);

}  // namespace spillway::hwprofiles
