#!/bin/bash
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"1"}
MOE=(
    --num-experts 8 \
    --moe-router-topk 2 \
    --expert-model-parallel-size 8 \
)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 --seq-length 4096 --vocab-size 32000 \
    --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --no-position-embedding \
    --untie-embeddings-and-output-weights --micro-batch-size 1 --global-batch-size 256 --bf16 \
    --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 8 --use-distributed-optimizer ${MOE[@]}
