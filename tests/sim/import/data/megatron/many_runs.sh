#!/bin/bash
PP=8 VPP=4 TP=2 EP=64 bash go.sh --num-layers 61 --micro-batch-size 1
PP=4 bash go.sh --num-layers 61 --micro-batch-size 2 --pipeline-model-parallel-size ${PP} --tensor-model-parallel-size 1
