#!/bin/bash
num_gpus=$(ds_ssh nvidia-smi --list-gpus | wc -l)
mp_size=4
pp_size=2
batch_size=1
seq_len=2048
global_batch_size=$(( batch_size * 64 ))
train_tokens=$(( 300 * 1000 * 1000 * 1000 ))
options="--tensor-model-parallel-size ${mp_size} --pipeline-model-parallel-size $[pp_size]"
options="${options} --num-layers 40 --hidden-size 5120 --num-attention-heads 40"
options="${options} --seq-length ${seq_len} --micro-batch-size ${batch_size} --global_batch_size ${global_batch_size}"
options="${options} --train-tokens ${train_tokens} --train-samples 5000000000 --fp16"
if [[ $num_gpus -gt 8 ]]; then
    options="${options} --no-pipeline-parallel"
fi
case "${SCALE:-13B}" in
    "13B"|"13b") options="${options} --ffn-hidden-size 20480" ;;
    *) options="${options} --ffn-hidden-size 1" ;;
esac
deepspeed pretrain_gpt.py ${options}
