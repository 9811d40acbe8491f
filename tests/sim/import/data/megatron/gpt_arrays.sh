#!/bin/bash
# Arrays of flags, one per theme; written for these tests.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=1
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
CHECKPOINT=$1

LAUNCHER_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
)
SHAPE=(
	--num-layers 96     # a comment inside an array
    --hidden-size 12288 
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --vocab-size 51200
)
RUN=(
    --micro-batch-size 1
    --global-batch-size 1536
    --step-batch-size-schedule "0:16 2.4B:320 12B:1536"
    --train-iters 500000
    --bf16
    --some-new-flag 3
)
PARALLEL=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16
)
torchrun ${LAUNCHER_ARGS[@]} pretrain_gpt.py \
    ${SHAPE[@]} \
    ${RUN[@]} \   
    ${PARALLEL[@]} \
    --save $CHECKPOINT
