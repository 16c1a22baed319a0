// 128-bit integers, for products of times, rates and amounts that must not round.
#pragma once

namespace spillway::sim {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

}  // namespace spillway::sim
