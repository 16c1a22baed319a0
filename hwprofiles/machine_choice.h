// The machines that a few letters mean: "8xh100", "2x8xh100", "dgx-h100x2", "4xrtx4090", "A100 80GB",
// "8xh100+roce-400".
//
//   machine  [COUNTx]BOX{+WHAT}, BOXxCOUNT{+WHAT}; COUNT is 1 to 2^20
//   BOX      COUNTxGPU, GPU, a system profile's name or file ("4xmine.json", unless a file has that whole name), a type
//            that a cloud rents ("p5.48xlarge", "a3-mega": cloud_instances.h)
//   GPU      words of a GPU profile's name in any order ("h100", "rtx4090", "a100-40gb"), or what its driver calls it
//            ("NVIDIA H100 80GB HBM3"); GPU:COUNT, GPU:MEMORY:COUNT and gpu:GPU:COUNT as schedulers write them
//   WHAT     a network of the library between the machines; gpu=GPU, its profile's name or file, in place of its own;
//            host=HOST; ram=SIZE; drives=COUNTxDRIVE, drives=none; p2p, no-p2p: whether cards reach each other's memory
//            over PCIe (card_box.h)
//
// Letters' case doesn't matter, nor whether words are parted by blanks, "-" or "_". A count before or behind a GPU is
// of GPUs, in as few alike machines as hold them; before or behind a system, or before a count ("2x8xh100"), of
// machines. Modules and superchips come in the library's machines with that GPU: one with exactly as many, else as few
// of the largest as hold them. Cards come in the library's machine with as many, else in a box by rule.
//
// Preferred among GPUs that have all words: the fewest unsaid words, form and size not counted; the module (SXM) before
// the card. Then the fewest unsaid sizes; most memory; the shortest name.
#pragma once

#include <string_view>

#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

// The machine of a text that is no profile's name: ProfileLibrary::load_system() asks. `assumed` says what was left
// open. Throws InputError (place: the text) with the nearest names if nothing is called so. Also if so many GPUs don't
// make machines that are alike, or several machines have no network between them. Reads every profile of the library.
HardwareProfile machine_called(const ProfileLibrary& library, std::string_view text);

// "host: DGX H100 host, 2048 GiB; links: NVLink 4": of a machine that was not named; empty otherwise.
std::string assumed_words(const HardwareProfile& machine);

}  // namespace spillway::hwprofiles
