// Time of the exchange of tokens between the ranks that share out a layer's experts, by what carries it.
//
//   T tokens of a rank, of h numbers of b bytes; k experts each; R ranks, G of them in an NVLink domain, M domains
//   D(n, k) = n (1 - (1 - 1/n)^k)        expected distinct ones of n that k even choices fall on
//
//   nccl               rows = T k h b: every row travels; inside and outside beside each other (collective_time.h)
//   deepep, hybridep   inside one domain: start + T h b D(R, k) / rate(R)              a token once per rank
//                      across domains:    start + max(T h b D_M (M-1)/M / outside,     once per domain over the NICs,
//                                                     T h b D(R, k) (G-1)/G / rate(G))  then on over NVLink
//   D_M = D(M, k); where a token's experts are confined to g of the groups and M > g, D(g, k)
//
// Combine carries the same the other way: partial sums are made per rank and per domain before they leave. Rates are
// shares of the link's, from measurements of 4,096 tokens of 7,168 numbers to 8 experts each; their bytes count a
// rank's own share too. Sources: DeepEP docs/legacy.md (H800); its hybrid-ep branch's docs/README_Hybrid-EP.md (H100,
// B200, GB200 NVL72 of 8 to 36 ranks, 32 multiprocessors). More: DeepEP's first version on B200 with 24
// multiprocessors; over EFA DeepEP on NVSHMEM, 16 to 128 B300 (awslabs/awsome-distributed-ai 95b939cd,
// ep-backend-comparison). Rates at 64 ranks and all starts are assumed. Routing is taken to be even.
#pragma once

#include "base/units.h"
#include "hwprofiles/hardware_profile.h"
#include "models/cost/collective_time.h"
#include "models/spec/parallel_layout.h"

namespace spillway::models {

// D(n, k): n >= 1, k >= 0.
double distinct_choices(double n, double k);

// `rows`: T k h b. Precondition: group.tokens.chosen >= 1. Throws InputError as collective_time() does.
CollectiveTime token_exchange_time(const HardwareProfile& system, Bytes rows, const GroupShape& group);

}  // namespace spillway::models
