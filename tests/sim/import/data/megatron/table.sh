#!/bin/bash
. `pwd`/config.sh
LAYOUT="--tensor-model-parallel-size ${TP} --pipeline-model-parallel-size ${PP}"
CMD="pretrain_gpt.py ${MEGATRON_EXTRA_PARAMS} ${COMMON} ${LAYOUT} \
    --micro-batch-size ${MBS} --global-batch-size ${GBS} \
    --activations-checkpoint-method uniform --DDP-impl local"
srun --ntasks-per-node=8 bash -c "python -m torch.distributed.launch --nproc_per_node 8 --nnodes ${NNODES} ${CMD}"
