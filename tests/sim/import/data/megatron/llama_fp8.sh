#!/bin/bash
CHECKPOINT_PATH=${1:-"checkpoints/llama"}
TOKENIZER=${2:-"MOCK"}
DTYPE="fp8"
TP_SIZE=1
CP_SIZE=2
PP_SIZE=4
NNODES=${NNODES:-2}
GPUS=8
EXTRA=()
if [[ "$DTYPE" == "fp8" ]]; then
    EXTRA+=("--fp8-format hybrid")
fi
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length 8192
    --position-embedding-type rope
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --vocab-size 128256
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP_SIZE
    --context-parallel-size $CP_SIZE
    # --pipeline-model-parallel-size $PP_SIZE
    --sequence-parallel
)
TRAIN_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
    --bf16
    --use-distributed-optimizer
    --overlap-grad-reduce
    "--split '99,1,0'"
)
ALL=("${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}")
ALL+=("${TRAIN_ARGS[@]}" "${EXTRA[@]}")
if [ "$TOKENIZER" = "MOCK" ] && [ -n "$CHECKPOINT_PATH" ]; then
    ALL+=(--mock-data)
fi
python -m torch.distributed.run --nproc-per-node=$GPUS --nnodes=$NNODES pretrain_gpt.py "${ALL[@]}"
