// VisionTower: a vision tower with the set-up that it runs by (models/spec/tower.h).
#pragma once

#include <deque>

#include "models/network/transformer.h"
#include "models/spec/tower.h"

namespace spillway::models {

struct VisionTower {
  VisionTower(const ModelSpec& model, const TrainingSetup& of_text, EagerSession& session, Autograd& autograd,
              std::deque<TrainedParameter>& among)
      : setup(tower_setup(of_text, model)),
        network(*model.tower, setup, {.layers = {0, model.tower->layers}}, session, autograd, nullptr, nullptr,
                &among) {}

  const TrainingSetup setup;
  Transformer network;
};

}  // namespace spillway::models
