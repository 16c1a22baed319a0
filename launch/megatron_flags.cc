// Arguments of Megatron-LM (megatron/training/arguments.py, core_r0.8 to 0.16) and the keys of its YAML file and of
// Megatron-Bridge, which have the same names with underscores.
#include "launch/flag_rows.h"

namespace spillway::launch {
namespace {

void megatron_layout(FlagRows& rows) {
  rows.say("tensor-model-parallel-size", "model.tensor_parallel", whole)
      .read("model-parallel-size", "model.tensor_parallel", whole, "its name before 2021")
      .say("sequence-parallel", "model.sequence_parallel", on_off)
      .say("pipeline-model-parallel-size", "model.pipeline_parallel", whole)
      .say("num-virtual-stages-per-pipeline-rank", "model.pipeline_chunks", whole)
      .read("virtual-pipeline-model-parallel-size", "model.pipeline_chunks", whole, "Megatron-Bridge")
      .read("num-layers-per-virtual-pipeline-stage", "model.pipeline_chunks", facts::layers_per_chunk, whole,
            "layers / (stages x this)")
      .say("pipeline-model-parallel-split-rank", "model.pipeline_split", whole)
      .say("context-parallel-size", "model.context_parallel", whole)
      .say("expert-model-parallel-size", "model.expert_parallel", whole)
      .read("data-parallel-size", "model.data_parallel", whole)
      .read("world-size", "model.data_parallel", facts::gpus, whole, "over the other parallel sizes")
      .say("use-distributed-optimizer", "model.zero_stage", "true=1 false=-", "ZeRO stage 1")
      .say("use-megatron-fsdp", "model.zero_stage", facts::fsdp, "true=3 false=-",
           "the stage is --data-parallel-sharding-strategy's")
      .read("use-custom-fsdp", "model.zero_stage", facts::fsdp, "true=3 false=-", "its former name")
      .read("use-torch-fsdp2", "model.zero_stage", facts::fsdp2, "true=3 false=-", "")
      .say("data-parallel-sharding-strategy", "model.zero_stage", facts::sharding,
           "no_shard=0 optim=1 optim_grads=2 optim_grads_params=3", "with --use-megatron-fsdp")
      .read("torch-fsdp2-no-reshard-after-forward", "model.zero_stage", facts::reshard, "true=2 false=-", "")
      .say("overlap-grad-reduce", "model.overlap_gradients", on_off)
      .say("ddp-bucket-size", "model.bucket_bytes", facts::bucket_elements, whole,
           "gradients, of 4 bytes each, or of 2 with --grad-reduce-in-bf16")
      .say("expert-tensor-parallel-size", "model.expert_tensor_parallel", whole)
      .say("cp-comm-type", "model.context_exchange", "p2p=p2p a2a=a2a")
      .say("num-distributed-optimizer-instances", "model.shard_groups", whole, "copies of what is shared out")
      .as_modelled("no-async-tensor-model-parallel-allreduce async-tensor-model-parallel-allreduce",
                   "the input gradient's all-reduce runs beside the weight gradient")
      .as_modelled("no-scatter-gather-tensors-in-pipeline scatter-gather-tensors-in-pipeline",
                   "stages send 1/t of a tensor where it isn't split anyway")
      .time("overlap-param-gather align-param-gather no-align-param-gather overlap-param-gather-with-optimizer-step",
            "the gather of updated weights is counted as not hidden")
      .not_said(
          "decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers pipeline-model-parallel-layout "
          "num-layers-in-first-pipeline-stage num-layers-in-last-pipeline-stage "
          "account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split standalone-embedding-stage "
          "encoder-tensor-model-parallel-size encoder-pipeline-model-parallel-size",
          "layers are shared out evenly over the stages")
      .not_said("microbatch-group-size-per-virtual-pipeline-stage outer-dp-sharding-strategy",
                "the layout has no key in a scenario")
      .time("hierarchical-context-parallel-sizes use-tp-pp-dp-mapping", "which ranks are neighbours has no key")
      .no_effect("replication replication-jump replication-factor", "of checkpoints")
      .time(
          "tp-comm-overlap tp-comm-overlap-cfg tp-comm-overlap-ag tp-comm-overlap-rs tp-comm-bulk-dgrad "
          "tp-comm-bulk-wgrad disable-tp-comm-* tp-comm-split-* tp-comm-atomic-*",
          "transfers of a tensor group are overlapped as Megatron-LM does without it")
      .time(
          "overlap-p2p-communication no-overlap-p2p-communication overlap-p2p-comm batch-p2p-comm "
          "overlap-p2p-communication-warmup-flush delay-grad-reduce delay-param-gather",
          "when transfers run is the schedule's")
      .adds("defer-embedding-wgrad-compute delay-wgrad-compute",
            "weight gradients run with their backward: none is kept for later")
      .read("grad-reduce-in-bf16", "model.main_gradients", "true=bf16 false=-")
      .as_modelled("grad-reduce-in-fp32", "gradients are reduced as their buffer has them")
      .adds("fsdp-double-buffer keep-fp8-transpose-cache nccl-ub use-nccl-ub", "buffers beside the step's own")
      .time(
          "suggested-communication-unit-size "
          "average-in-collective ddp-average-in-collective ddp-pad-buckets-for-high-nccl-busbw ddp-num-buckets "
          "use-sharp nccl-communicator-config-path high-priority-stream-groups check-for-large-grads",
          "collectives run as on NCCL's defaults")
      .not_said(
          "enable-zero-bubble zero-bubble-v-schedule zero-bubble-v-schedule-mem-setup enable-1f1b-v "
          "allow-padding-num-layers zero-bubble-max-pending-backward enable-vocab-parallel",
          "a fork's schedule: set model.pipeline_schedule yourself (docs/how-to/choose-a-pipeline-schedule.md)");
}

void batch_and_precision(FlagRows& rows) {
  rows.say("micro-batch-size", "model.micro_batch", whole)
      .read("batch-size", "model.micro_batch", whole, "its name before 2021")
      .say("global-batch-size", "model.global_batch", whole)
      .say("seq-length", "model.sequence", whole)
      .read("sequence-length", "model.sequence", whole, "Megatron-Bridge")
      .read("encoder-seq-length", "model.sequence", whole)
      .say("bf16", "model.precision", "true=bf16_mixed false=-")
      .say("fp16", "model.precision", "true=fp16_mixed false=-")
      .read("mixed-precision", "model.precision",
            "bf16_mixed=bf16_mixed bf16-mixed=bf16_mixed 16-mixed=fp16_mixed "
            "fp16_mixed=fp16_mixed bf16_with_fp8_*=fp8_mixed",
            "Megatron-Bridge")
      .say("fp8-format", "model.precision", facts::fp8, "hybrid=fp8_mixed e4m3=fp8_mixed", "")
      .read("fp8", "model.precision", facts::fp8, "hybrid=fp8_mixed e4m3=fp8_mixed false=-", "of the YAML file")
      .say("fp4-format", "model.precision", facts::fp8, "e2m1=nvfp4_mixed", "")
      .read("fp4", "model.precision", facts::fp8, "e2m1=nvfp4_mixed false=-", "of the YAML file")
      .say("fp8-recipe", "model.fp8_recipe", facts::fp8_recipe,
           "delayed=delayed tensorwise=tensorwise blockwise=blockwise mxfp8=mxfp8", "")
      .say("first-last-layers-bf16", "model.bf16_layers_first", facts::bf16_ends, if_on, "one at each end unless said")
      .say("num-layers-at-start-in-bf16", "model.bf16_layers_first", facts::bf16_first, whole,
           "with --first-last-layers-bf16")
      .say("num-layers-at-end-in-bf16", "model.bf16_layers_last", facts::bf16_last, whole,
           "with --first-last-layers-bf16");
}

void states_and_recomputation(FlagRows& rows) {
  rows.say("accumulate-allreduce-grads-in-fp32", "model.fp32_gradients", if_on)
      .say("optimizer", "model.optimizer", "adam=adamw sgd=sgd_momentum muon=muon dist_muon=muon",
           "adam decouples the decay, sgd has a momentum")
      .say("optimizer-cpu-offload", "model.optimizer_device", "true=cpu false=-")
      .as_modelled_if("optimizer-offload-fraction", "1.0", "all of the optimizer state")
      .or_else(FlagRole::adds)
      .say("recompute-granularity", "model.recompute", "full=full selective=selective")
      .read("recompute-activations", "model.recompute", "true=selective false=-")
      .read("checkpoint-activations", "model.recompute", "true=full false=-", "its name before 2022")
      .say("recompute-method", "model.recompute_layers", facts::recompute_method, "uniform=uniform block=block",
           "block: the first --recompute-num-layers of each stage's chunk")
      .say("recompute-num-layers", "model.recompute_layers", facts::recompute_count, whole,
           "with --recompute-method block")
      .as_modelled_if("checkpoint-num-layers", "1", "layer by layer")
      .say("recompute-modules", "model.recompute_modules", "",
           "words of Megatron-core; mla_up_proj of latent attention")
      .read("use-flash-attn", "model.flash_attention", on_off)
      .say("attention-backend", "model.flash_attention", facts::attention_backend,
           "auto=best fused=best flash=flash2 unfused=none local=none", "and model.attention_kernel")
      .say("cross-entropy-loss-fusion", "model.loss", "true=fused false=-")
      .say("fp16-lm-cross-entropy", "model.loss", "true=native false=-")
      .say("hidden-dropout", "model.dropout", facts::hidden_dropout, "", "")
      .say("attention-dropout", "model.dropout", facts::attention_dropout, "",
           "of attention weights; where it differs a model file says so")
      .as_modelled_if("cross-entropy-fusion-impl", "native", "")
      .say("main-grads-dtype", "model.main_gradients", "bf16=bf16 fp32=-")
      .as_modelled_if("main-params-dtype", "fp32", "")
      .say("exp-avg-dtype", "model.moments", "bf16=bf16 fp16=bf16 fp8=fp8 fp32=-")
      .read("exp-avg-sq-dtype", "model.moments", "bf16=bf16 fp16=bf16 fp8=fp8 fp32=-", "one type for both moments")
      .say("fp8-param-gather", "model.fp8_weights", if_on)
      .read("fp8-param", "model.fp8_weights", "true=true false=-", "of the YAML file")
      .say("use-precision-aware-optimizer", "model.master_remainders", if_on)
      .as_modelled(
          "use-mcore-models no-persist-layer-norm persist-layer-norm "
          "gradient-accumulation-fusion masked-softmax-fusion bias-gelu-fusion bias-swiglu-fusion "
          "bias-activation-fusion bias-dropout-fusion apply-rope-fusion no-delay-grad-reduce "
          "deallocate-pipeline-outputs",
          "Megatron-LM's kernels as modelled")
      .as_modelled_if("transformer-impl", "transformer_engine", "Transformer Engine's kernels")
      .adds(
          "no-bias-gelu-fusion no-bias-swiglu-fusion no-bias-dropout-fusion no-rope-fusion "
          "no-gradient-accumulation-fusion fp32-residual-connection",
          "kernels are Megatron-LM's fused ones, in 16 bits")
      .time(
          "no-masked-softmax-fusion attention-softmax-in-fp32 apply-query-key-layer-scaling "
          "no-query-key-layer-scaling",
          "kernels are Megatron-LM's fused ones")
      .saves("memory-efficient-layer-norm use-transformer-engine-op-fuser bias-relu-fusion",
             "norms and activations keep what Megatron-LM's usual kernels keep")
      .read("enable-cuda-graph", "model.cuda_graphs", facts::graphs, "true=true false=false", "of whole layers")
      .read("external-cuda-graph", "model.cuda_graphs", facts::graphs, "true=true false=false",
            "Transformer Engine's, of whole layers")
      .say("cuda-graph-impl", "model.cuda_graphs", facts::graphs,
           "local=local transformer_engine=true full_iteration=full_iteration none=false",
           "Transformer Engine's, except of whole iterations")
      .say("cuda-graph-scope", "model.cuda_graphs", facts::graph_scope, "",
           "full: attn,mamba,mlp; with one of the flags above")
      .read("cuda-graph-modules", "model.cuda_graphs", facts::graph_scope, "", "its newer name")
      .time("cuda-graph-* enable-experimental optimizer-cuda-graph", "graphs share one pool and are warmed up before")
      .saves(
          "cpu-offloading cpu-offloading-num-layers cpu-offloading-activations cpu-offloading-weights "
          "fine-grained-activation-offloading offload-modules min-offloaded-tensor-size",
          "moves activations: set offload.technique yourself (docs/how-to/offload-activations.md)")
      .time("use-torch-optimizer-for-cpu-offload overlap-cpu-optimizer-d2h-h2d no-pin-cpu-grads no-pin-cpu-params",
            "how the optimizer on the CPU is driven is modelled one way")
      .saves("distribute-saved-activations distributed-checkpointed-activations moe-layer-recompute",
             "what is recomputed is model.recompute's, and each rank keeps its inputs whole")
      .not_said("recompute-*-activations activation-checkpoint-* num-microbatches-with-partial-activation-checkpoints",
                "recomputation has three settings: none, selective, full")
      .saves("fp4-param fp4-param-gather", "weights are in 16 bits too")
      .not_said("te-precision-config-file", "all layers are in fp8, or fp4")
      .no_effect(
          "fp8-amax-history-len fp8-amax-compute-algo fp8-margin fp8-interval fp8-wgrad no-fp8-wgrad "
          "fp8-quantizer-factory tp-only-amax-red fp4-recipe fp4-quantizer-factory",
          "scaling factors are small")
      .time(
          "deterministic-mode disable-bf16-reduced-precision-matmul fsdp-manual-registration te-rng-tracker "
          "inference-rng-tracker",
          "other kernels, usually slower")
      .not_said("lora-* peft-* peft.* freeze-* modelopt-*", "set model.trainable yourself (docs/internals/models.md)")
      .saves("empty-unused-memory-level", "the allocator's cache is kept between steps")
      .time("decrease-batch-size-if-needed rampup-batch-size", "a step at the full batch is modelled");
}

void megatron_model(FlagRows& rows) {
  constexpr std::string_view key = "model.name";
  rows.say("num-layers", key, facts::layers, whole, "")
      .say("hidden-size", key, facts::hidden, whole, "")
      .say("ffn-hidden-size", key, facts::feed_forward, whole, "")
      .say("num-attention-heads", key, facts::heads, whole, "")
      .say("group-query-attention", key, facts::grouped, if_on, "")
      .say("num-query-groups", key, facts::kv_heads, whole, "with --group-query-attention")
      .say("kv-channels", key, facts::head_dim, whole, "")
      .say("vocab-size", key, facts::vocabulary, whole, "padded")
      .read("padded-vocab-size", key, facts::padded_vocabulary, whole, "")
      .say("make-vocab-size-divisible-by", key, facts::vocabulary_multiple, whole, "times the tensor-parallel size")
      .read("tokenizer-type", key, facts::tokenizer, "", "where no vocabulary is given")
      .say("max-position-embeddings", key, facts::max_positions, whole, "")
      .say("position-embedding-type", key, facts::positions,
           "rope=rotary learned_absolute=learned yarn=rotary mrope=rotary none=none", "")
      .read("use-rotary-position-embeddings", key, facts::positions, "true=rotary false=-", "")
      .say("normalization", key, facts::norm, "LayerNorm=layer_norm RMSNorm=rms_norm", "")
      .say("swiglu", key, facts::activation, "true=silu_gated false=-", "")
      .say("quick-geglu", key, facts::activation, "true=gelu_gated false=-", "")
      .read("squared-relu", key, facts::activation, "true=relu_squared false=-", "")
      .read("activation-func", key, facts::activation, "swiglu=silu_gated silu=silu_gated gelu=- relu=relu",
            "of the YAML file")
      .read("gated-linear-unit", key, facts::gated, on_off, "of the YAML file")
      .say("untie-embeddings-and-output-weights", key, facts::untied, if_on, "")
      .read("share-embeddings-and-output-weights", key, facts::untied, "true=- false=true", "Megatron-Bridge")
      .say("disable-bias-linear", key, facts::no_bias, if_on, "")
      .read("add-bias-linear", key, facts::no_bias, "true=- false=true", "of the YAML file")
      .say("add-qkv-bias", key, facts::qkv_bias, if_on, "")
      .say("qk-layernorm", key, facts::query_key_norm, if_on, "")
      .read("window-size", key, facts::window, "", "(tokens before, after)")
      .say("num-experts", key, facts::experts, whole, "")
      .read("num-moe-experts", key, facts::experts, whole, "of the YAML file")
      .say("moe-router-topk", key, facts::active_experts, whole, "")
      .say("moe-ffn-hidden-size", key, facts::expert_width, whole, "")
      .say("moe-shared-expert-intermediate-size", key, facts::shared_width, whole, "")
      .say("moe-shared-expert-gate", key, facts::shared_gate, if_on, "")
      .say("moe-layer-freq", key, facts::expert_layers, "", "a number, or a list such as ([0]*3+[1]*58)")
      .say("moe-router-enable-expert-bias", key, facts::selection_bias, if_on, "")
      .read("hybrid-override-pattern", key, facts::hybrid_layers, "", "M: Mamba-2, *: attention, -: dense, E: experts")
      .read("hybrid-layer-pattern", key, facts::hybrid_layers, "", "the same")
      .read("mamba-num-heads", key, facts::state_heads, whole, "")
      .read("mamba-head-dim", key, facts::state_head_dim, whole, "")
      .read("mamba-num-groups", key, facts::state_groups, whole, "")
      .read("mamba-state-dim", key, facts::state_width, whole, "")
      .say("multi-latent-attention", key, facts::latent, if_on, "")
      .say("q-lora-rank", key, facts::query_rank, whole, "")
      .say("kv-lora-rank", key, facts::kv_rank, whole, "")
      .say("qk-head-dim", key, facts::nope_dim, whole, "")
      .say("qk-pos-emb-head-dim", key, facts::rope_dim, whole, "")
      .say("v-head-dim", key, facts::value_dim, whole, "")
      .say("moe-token-dispatcher-type", "model.expert_dispatcher", facts::dispatcher,
           "alltoall=nccl flex=flex allgather=allgather", "flex: the backend's, DeepEP where none is named")
      .say("moe-router-fusion", "model.router_fusion", if_on)
      .say("moe-permute-fusion", "model.permute_fusion", if_on)
      .say("moe-shared-expert-overlap", "model.overlap_shared_experts", if_on)
      .say("overlap-moe-expert-parallel-comm", "model.overlap_experts", if_on)
      .say("moe-flex-dispatcher-backend", "model.expert_dispatcher", facts::flex_backend,
           "deepep=deepep hybridep=hybridep", "with --moe-token-dispatcher-type flex")
      .as_modelled_if("moe-enable-deepep", "true",
                      "the backend of --moe-token-dispatcher-type flex unless one is named")
      .as_modelled("moe-grouped-gemm", "the experts' products run as one")
      .as_modelled("no-position-embedding", "positions are --position-embedding-type's")
      .no_effect(
          "rotary-base rotary-percent rotary-interleaved rotary-seq-len-interpolation-factor use-rope-scaling "
          "rope-scaling-factor rope-type rotary-scaling-factor mscale mscale-all-dim yarn-* no-rope-freq "
          "add-position-embedding norm-epsilon layernorm-epsilon apply-layernorm-1p "
          "layernorm-zero-centered-gamma openai-gelu onnx-safe attention-logit-softcapping "
          "apply-residual-connection-post-layernorm softmax-scale relative-attention-* softmax-type "
          "glu-linear-offset activation-func-clamp-value",
          "values, not sizes")
      .no_effect(
          "moe-aux-loss-coeff moe-z-loss-coeff moe-router-load-balancing-type moe-router-score-function "
          "moe-router-topk-scaling-factor moe-router-num-groups moe-router-group-topk moe-router-pre-softmax "
          "moe-router-bias-update-rate moe-router-dtype moe-input-jitter-eps moe-per-layer-logging "
          "moe-router-force-load-balancing moe-use-upcycling moe-router-topk-limited-devices",
          "experts are assumed to be evenly loaded")
      .time(
          "moe-token-drop-policy moe-router-padding-for-fp8 "
          "moe-router-padding-for-quantization moe-hybridep-num-sms moe-deepep-num-sms moe-use-legacy-grouped-gemm",
          "how experts' kernels run is model.expert_dispatcher's")
      .not_said("moe-token-dropping moe-extended-tp moe-apply-probs-on-input",
                "experts get all their tokens, or model.expert_capacity")
      .say("moe-expert-capacity-factor", "model.expert_capacity", "")
      .say("moe-pad-expert-input-to-capacity", "model.static_experts", if_on)
      .say("mtp-num-layers", "model.mtp_layers", whole)
      .no_effect("mtp-loss-scaling-factor", "a scale")
      .no_effect("is-hybrid-model", "its pattern says that")
      .not_said("encoder-num-layers decoder-num-layers decoder-seq-length retriever-seq-length",
                "encoder-decoders need --model")
      .not_said(
          "linear-attention-freq hybrid-* mamba-* window-attn-skip-freq heterogeneous-layers-* "
          "experimental-attention-variant",
          "layers are alike, with attention")
      .not_said("spec use-legacy-models", "layers are Megatron core's GPT layers");
}

void megatron_ignored(FlagRows& rows) {
  rows.read("eval-interval", "model.evaluate_every", whole, "1000 where --eval-iters alone is given")
      .read("eval-iters", "model.evaluation_batches", facts::eval_iterations, whole,
            "global batches, 100 where --eval-interval alone is given; 0: no evaluation")
      .no_effect(
          "lr lr-* min-lr decoupled-* warmup weight-decay weight-decay-incr-style start-weight-decay end-weight-decay "
          "clip-grad adam-* sgd-momentum muon-* lion-* override-opt-param-scheduler override-opt_param-scheduler "
          "use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler loss-scale initial-loss-scale "
          "min-loss-scale loss-scale-window hysteresis init-method-std init-method init-method-* "
          "output-layer-init-method embedding-init-method-* seed data-parallel-random-init "
          "scale-lr no-weight-decay-* apply-wd-to-qk-layernorm scheduler.*",
          "values of the update")
      .no_effect(
          "train-iters train-samples train-tokens exit-* skip-train perform-initialization "
          "use-cpu-initialization iteration manual-gc manual-gc-* check-for-nan-in-loss-and-grad "
          "no-check-for-nan-in-loss-and-grad check-weight-hash-across-dp-replicas-interval "
          "calculate-per-token-loss iterations-to-skip check-for-spiky-loss check-optimizer-step-success",
          "how long and how checked a run is, not a step of it")
      .no_effect(
          "save save-* load load-* no-save-* no-load-* ckpt-format ckpt-* dist-ckpt-* use-dist-ckpt async-save "
          "finetune "
          "pretrained-checkpoint exit-on-missing-checkpoint use-checkpoint-args auto-detect-ckpt-format "
          "use-persistent-ckpt-worker non-persistent-* override-ckpt-iteration replication.* checkpoint.* "
          "async-* fully-parallel-save",
          "checkpoints are between steps")
      .no_effect(
          "data-path data-args-path per-split-data-args-path train-data-path valid-data-path test-data-path split "
          "data-cache-path mock-data vocab-file merge-file vocab-extra-ids tokenizer-model tokenizer.* "
          "tiktoken-* legacy-tokenizer trust-remote-code dataloader-* num-workers reset-position-ids "
          "reset-attention-mask eod-mask-loss "
          "no-create-attention-mask-in-dataloader create-attention-mask-in-dataloader no-mmap-bin-files "
          "num-dataset-builder-threads mid-level-dataset-surplus object-storage-cache-path mask-prob "
          "short-seq-prob sample-rate fim-* sft sft-* data-impl titles-data-path blend blend-* dataset.* "
          "null-tokenizer-* use-tokenizer-from-checkpoint-args",
          "data come in time")
      .no_effect(
          "log-* tensorboard-* wandb-* logger.* timing-* timers eval-* full-validation test-mode one-logger* "
          "no-one-logger enable-one-logger "
          "no-log-* app-tag-* otel-* enable-ft-package calc-ft-timeouts ft-* "
          "profile profile-* profiling.* use-pytorch-profiler record-* memory-snapshot-path nvtx-ranges "
          "run-workload-inspector-server straggler-* disable-straggler-* error-injection-* rerun-mode "
          "result-rejected-* "
          "bert-* onnx-* config-logger-dir",
          "logging is not in a step")
      .no_effect(
          "distributed-backend distributed-timeout-minutes distributed-timeout-seconds-* local-rank lazy-mpu-init "
          "lazy-init rank account-for-* adlr-* inprocess-* use-ring-exchange-p2p use-gloo-process-groups "
          "disable-gloo-process-groups enable-gloo-process-groups no-barrier-with-level-1-timing "
          "barrier-with-l1-time dist.* rng.* ft.* straggler.* nvrx-straggler.* rerun-state-machine.*",
          "of the start, not of a step")
      .no_effect(
          "inference-* retro-* vision-* rl-* grpo-* biencoder-* ict-* dino-* swin-* img-* patch-dim num-channels "
          "num-classes head-lr-mult mask-type mask-factor iter-per-epoch use-one-sent-docs query-in-block-prob "
          "indexer-* retriever-* block-data-path embedding-path evidence-data-path bert-load max-tokens-to-oom "
          "output-bert-embeddings kitchen-* enable-msc disable-msc clone-scatter-output-in-embedding "
          "variable-seq-lengths enable-autocast autocast-dtype pipeline-dtype params-dtype "
          "use-torch-fsdp2-* init-model-with-meta-device logging-level export-* disable-vision-class-token",
          "of other uses than this step")
      .file("yaml-cfg", LaunchFormat::megatron, "keys of the YAML file")
      .file("deepspeed-config", LaunchFormat::deepspeed, "of Megatron-DeepSpeed");
  rows.no_effect("deepspeed deepspeed-activation-checkpointing no-pipeline-parallel", "switches of Megatron-DeepSpeed");
  rows.read("zero-stage", "model.zero_stage", whole, "of Megatron-DeepSpeed");
}

}  // namespace

std::vector<LaunchFlag> megatron_flags() {
  FlagRows rows(LaunchFormat::megatron);
  megatron_layout(rows);
  batch_and_precision(rows);
  states_and_recomputation(rows);
  megatron_model(rows);
  megatron_ignored(rows);
  return rows.take();
}

}  // namespace spillway::launch
