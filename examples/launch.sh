#!/usr/bin/env bash
# A job as one might run it today, for: phaze plan --against examples/launch.sh --model llama3-8b --chip h100
GPUS_PER_NODE=8
NODES=8
torchrun --nproc-per-node $GPUS_PER_NODE --nnodes $NODES pretrain_gpt.py \
  --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 1 \
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 \
  --micro-batch-size 1 --global-batch-size 1024 --bf16 --use-distributed-optimizer \
  --recompute-granularity selective --lr 3e-4
