torchrun --nproc_per_node=8 scripts/pretrain.py \
  model.num_layers=32 model.hidden_size=4096 model.ffn_hidden_size=11008 model.num_attention_heads=32 \
  model.gated_linear_unit=true model.activation_func=silu model.normalization=RMSNorm model.add_bias_linear=false \
  model.position_embedding_type=rope model.share_embeddings_and_output_weights=false model.vocab_size=32000 \
  model.seq_length=4096 model.max_position_embeddings=4096 \
  model.hidden_dropout=0 model.attention_dropout=0 \
  model.tensor_model_parallel_size=4 model.sequence_parallel=true \
  train.micro_batch_size=1 train.global_batch_size=128 train.train_iters=20 \
  ddp.use_distributed_optimizer=true ddp.overlap_grad_reduce=true ddp.overlap_param_gather=false \
  mixed_precision=bf16_mixed optimizer.lr=3e-4 scheduler.lr_warmup_iters=10 \
  checkpoint.save=/ckpt logger.log_interval=1
