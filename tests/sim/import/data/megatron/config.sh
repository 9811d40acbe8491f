MODEL_SIZE=${MODEL_SIZE:-"39.1B"}
if [ ${MODEL_SIZE} == "1.7B" ]; then
    TP=1; PP=1; NLS=24; HS=2304; NAH=24; NNODES=4
elif [ ${MODEL_SIZE} == "39.1B" ]; then
    TP=8
    PP=2
    NLS=48
    HS=8192
    NAH=64
    NNODES=64
else
    echo "unknown"
fi
MBS=4
GBS=1536
export COMMON="--num-layers ${NLS} \
    --hidden-size ${HS} --num-attention-heads ${NAH} \
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 51200 --fp16"
