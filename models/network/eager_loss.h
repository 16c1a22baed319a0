// Losses of logits [rows, classes], and the metrics of them.
#pragma once

#include <string>

#include "models/network/eager_linear.h"
#include "models/network/eager_recorder.h"

namespace spillway::models::eager {

// Mean cross-entropy of logits [rows, classes] against labels, as TrainingSetup::loss has it. With `fp32` it makes a
// copy of the logits, the log-softmax, which is saved, and the loss; backwards their gradients. With `native` it makes
// no copy. With `fused` it saves the logits and a number per row.
Tensor cross_entropy(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels);
// LossForm::preference: of each sequence by itself the log-softmax, which is kept, and what its labels have of it.
Tensor preference_loss(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels);
// The squared difference of a number a token, in fp32, to what it should be (a PPO value model's).
Tensor value_loss(EagerRecorder& rec, const std::string& name, const Tensor& values);
// The cross-entropy with the product of the head before it (LossForm::chunked). Its gradients are there after the
// forward.
Tensor chunked_cross_entropy(EagerRecorder& rec, const std::string& name, const Linear& head, const Tensor& x,
                             const Tensor& labels);
void widen_result(EagerRecorder& rec, const std::string& name, const Tensor& result);  // where the program does that
// The same sum once more with PyTorch's kernels and without a backward, as a metric takes it.
void loss_metric(EagerRecorder& rec, const std::string& name, const Tensor& logits, const Tensor& labels);

}  // namespace spillway::models::eager
