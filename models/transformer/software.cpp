// Named software stacks. A name carries a date because releases differ (one public table moved by 32 % between two
// releases three months apart). Sources name the public runs on which the choices were found to hold; no figure
// belongs to a single row. deepspeed-2023 and megatron-deepspeed-2023 are two names of one set of features.
#include "models/transformer/software.hpp"

#include "models/hardware/catalogue.hpp"

namespace fabricast {
namespace {

SoftwareFeatures megatron_2022() {
    SoftwareFeatures f;
    f.name = "megatron-2022";
    f.attention = "unfused";
    f.dropout = true;
    f.host_waits_for_messages = true;
    f.host_waits_for_passes = true;
    f.allocator_expandable = false;
    f.tp_backward_overlap = true;
    f.forwards_first = true;
    f.sources = {
        "with as many micro-batches as stages the interleaved schedule runs all forwards first: "
        "forward_backward_pipelining_with_interleaving of Megatron-LM until Megatron-Core 0.8",
        "tensor-parallel gathers and reductions of the backward pass run beside the gradient GEMMs: "
        "LinearWithGradAccumulationAndAsyncCommunication of Megatron-LM, described in arXiv:2205.05198",
        "the CPU synchronises after every pipeline exchange: torch.cuda.synchronize() in Megatron-LM's _communicate; "
        "and around every forward and backward pass: timers('forward-compute') of its schedules do when they stop",
        "unfused attention with dropout, fused pointwise kernels, blocking interleaved sends: Megatron-LM as of "
        "arXiv:2205.05198 and arXiv:2104.04473; unfused fits public 2022-23 tables to 4-8 %, flash to 6-13 %",
        "24 bytes per logit: vocab_parallel_cross_entropy reads and writes fp32 logits six times (estimate)",
        "12 us per kernel: typical of Megatron-LM and Transformer Engine operators (estimate)",
    };
    return f;
}

SoftwareFeatures megatron_deepspeed_2023(const char* name) {
    SoftwareFeatures f = megatron_2022();
    f.name = name;
    f.host_per_kernel_s = 10e-6;
    f.host_per_layer_s = 1.2e-3;
    f.host_backward_share = 0.5;
    f.host_update_share = 0.46;
    f.accumulate_apart = true;
    f.fp32_gradients = false;
    f.fp32_reduce = false;
    f.sources = {
        "0.46 of host memory bandwidth in an update on the CPU: DeepSpeedCPUAdam, 10 G parameters in 2.57 s at 30 "
        "bytes each on two Xeon 8168 of 256 GB/s (ZeRO-Offload, arXiv:2101.06840, table 4)",
        "gradients of fp16 parameters are fp16 and are reduced as they are: DeepSpeed FP16 engine without ZeRO; "
        "autograd adds those of a micro-batch to the sum by a pass of its own, 6 bytes a parameter",
        "kernels as megatron-2022, its tensor-parallel overlap too (LinearWithGradAccumulationAndAsyncCommunication, "
        "in the fork's core/tensor_parallel/layers.py since the merge of 2023): tp 8 rows of vTrain up to 39B lie at "
        "-4 to +5 % with it, 0 to +10 % without",
        "host 1.2 ms a forward pass of a layer, half of that a backward pass, and 10 us per kernel: fitted on the "
        "one-node data set of vTrain, where small models are host-bound; 3.5 ms for all three passes whatever tp is, "
        "and a forward pass waits for the CPU where the backward pass after it does not",
    };
    return f;
}

SoftwareFeatures megatron_core_2024() {
    SoftwareFeatures f;
    f.name = "megatron-core-2024";
    f.attention = "auto";
    f.p2p_overlap = true;
    f.tp_backward_overlap = true;
    f.tp_hidden_fraction = 0.69;
    f.fp8_tensor_gather = true;
    f.forwards_first = true;
    f.fp8_largest = LargestValues::stage;
    f.buckets_on_first_stage = true;
    f.sources = {
        "all forwards first where micro-batches are as many as stages: as megatron-2022",
        "fp8 scales are agreed on over tensor, context and data ranks after every pass of a chunk: default of "
        "get_amax_reduction_group in Megatron-Core, reduce_and_update_fp8_tensors of Transformer Engine",
        "only the first chunk of the first stage has gradient buckets: DistributedDataParallel of Megatron-Core",
        "cuDNN attention on Hopper and FlashAttention-2 on Ampere: Transformer Engine defaults; on public H100 tables "
        "the cuDNN rate fits to 3.4 %, the FlashAttention-2 rate to 7.4 %",
        "in fp8 the gathered operands travel in fp8: Transformer Engine gathers after the cast",
        "0.26 of host memory bandwidth in an update on the CPU: PyTorch's Adam in the hybrid optimizer, from the "
        "published offload table of Qwen3-30B-A3B on 16 H100 (Megatron-Bridge)",
        "24 bytes per logit, unfused cross entropy; overlapped sends: Megatron-LM README, scaling tables of 2024",
        "0.69 of TP traffic hidden with user buffers: fitted on public NeMo tables with all other constants "
        "(fabricast-validate score runs --refit)",
        "12 us per kernel: typical of Megatron-LM and Transformer Engine operators (estimate)",
    };
    return f;
}

SoftwareFeatures nemo_2023_autocast() {
    SoftwareFeatures f = megatron_core_2024();
    f.name = "nemo-2023-autocast";
    f.tp_hidden_fraction = 0;
    f.autocast = true;
    f.sources = {
        "kernels as megatron-core-2024, no user buffers",
        "megatron_amp_O2 False, NeMo's default: parameters and gradients are fp32, autocast makes 16-bit weights for "
        "every micro-batch (6 bytes a parameter), gradients leave the products in 16 bit and are cast and added (12 "
        "bytes more than a fused accumulation); gradient_accumulation_fusion needs O2: NeMo 23.08, "
        "megatron_gpt_config.yaml",
    };
    return f;
}

SoftwareFeatures nemo_2024() {
    SoftwareFeatures f = megatron_core_2024();
    f.name = "nemo-2024";
    f.loss_bytes_per_logit = 12;
    f.logits_memory_per_logit = 4;
    f.cuda_graphs = true;
    f.fp32_reduce = false;
    f.head_weight_deferred = 22;
    f.fp8_parameter_gather = true;
    f.bucket_parameters = 128 * 1024 * 1024;
    f.gathers_beside_update = true;
    f.sources = {
        "kernels and overlap as megatron-core-2024; NeMo 2, 24.12 and later",
        "buckets of 128 Mi parameters whatever the number of ranks, and interleaved pipelines gather each first chunk "
        "beside the update of the others, without buckets: MegatronCommOverlapCallback and set_primary_perf_configs "
        "of NeMo 2",
        "weight gradients of the head of dense models wait for the last 22 micro-batches "
        "(defer_embedding_wgrad_compute, wgrad_deferral_limit 22), parameters are gathered in fp8 (fp8_params): the "
        "same recipes",
        "gradients travel, and lie in their buffer, in 16 bit: grad_sync_dtype bf16 (NeMo 1) and grad_reduce_in_fp32 "
        "False (NeMo 2) in NVIDIA's published performance recipes (dgxc-benchmarking, nemotron4-340b-synth.yaml, "
        "pretrain_llama31.py)",
        "12 bytes per logit: fused cross entropy, as public NeMo performance recipes set it",
        "host free: CUDA graphs or never host-bound at the published sizes",
    };
    return f;
}

SoftwareFeatures nemo1_2024() {
    SoftwareFeatures f = nemo_2024();
    f.name = "nemo1-2024";
    f.bucket_parameters = 0;
    f.gathers_beside_update = false;
    f.sources = {
        "as nemo-2024 on NeMo 1 (containers up to 24.09): its recipes set no bucket size for Megatron-Core's "
        "distributed optimizer, which then takes max(40e6, 1e6 ranks) parameters (megatron_gpt_model.py)",
    };
    return f;
}

SoftwareFeatures nemo_2025() {
    SoftwareFeatures f = nemo_2024();
    f.name = "nemo-2025";
    f.sources = {
        "as nemo-2024; release 25.04 and later, whose MoE dispatch and kernels are newer",
    };
    return f;
}

SoftwareFeatures mlperf_2025() {
    SoftwareFeatures f = nemo_2024();
    f.name = "mlperf-2025";
    f.tp_hidden_fraction = 0.78;
    f.bucket_parameters = 0;
    f.head_weight_deferred = 50;
    f.fp8_largest = LargestValues::replica;
    f.sources = {
        "fp8 scales are agreed on over tensor and context ranks only (TP_ONLY_AMAX_RED True in conf/custom.yaml), "
        "WGRAD_DEFERRAL_LIMIT 50 and OVERLAP_PARAM_GATHER_WITH_OPTIM_STEP in config_common.sh of the submissions",
        "as nemo-2024 with the tuning of MLPerf Training v5.0 and v5.1 submissions (Llama 3.1 405B)",
        "0.78 of TP traffic hidden with user buffers tuned per layer: fitted on those submissions, rescaled by the "
        "last "
        "refit of all stacks that hide it",
    };
    return f;
}

SoftwareFeatures megatron_core_2025_no_overlap() {
    SoftwareFeatures f = nemo_2024();
    f.name = "megatron-core-2025-no-overlap";
    f.tp_hidden_fraction = 0;
    f.tp_backward_overlap = false;
    f.p2p_overlap = false;
    f.cuda_graphs = false;
    f.fp32_reduce = true;
    f.head_weight_deferred = 0;
    f.bucket_parameters = 0;
    f.placeholder_gradients = true;
    f.sources = {
        "Megatron-Core with Transformer Engine and fused cross entropy, every overlap switched off: the setting of "
        "SimuMax's B200 measurements",
        "a 16-bit gradient per weight shape and of the head that autograd wants although the product adds to the fp32 "
        "one: get_dummy_wgrad of Transformer Engine 2, grad_weight of Megatron-Core's output layer",
    };
    return f;
}

SoftwareFeatures maxtext_2024() {
    SoftwareFeatures f;
    f.name = "maxtext-2024";
    f.attention = "auto";
    f.fusion = Fusion::compiled;
    f.fp32_gradients = false;
    f.fp32_reduce = false;
    f.loss_bytes_per_logit = 12;
    f.logits_memory_per_logit = 6;
    f.fsdp_copy_bytes = 0;
    f.cuda_graphs = true;
    f.recompute_keeps_qkv = true;
    f.recompute_stops_early = true;
    f.sources = {
        "remat_policy save_qkv_proj: outputs of the query, key and value projections are kept, what nothing reads is "
        "not computed (XLA drops it): dgxc-benchmarking, maxtext/configure.sh",
        "JAX and XLA on GPUs: one compiled program, no host time; cuDNN attention; parameters sharded in place, so no "
        "flat-buffer copies; gradients reduced in the parameters' type",
    };
    return f;
}

SoftwareFeatures torch_fsdp() {
    SoftwareFeatures f;
    f.name = "torch-fsdp";
    f.attention = "fa2";
    f.fusion = Fusion::eager;
    f.fp32_gradients = false;
    f.split_projections = true;
    f.recompute_stops_early = true;
    f.logits_memory_per_logit = 14;
    f.host_per_kernel_s = 25e-6;
    f.sources = {
        "PyTorch scaled_dot_product_attention runs FlashAttention-2, also on H100: public torchtitan FSDP rows within "
        "2 %",
        "24 bytes per logit; 14 held: 16-bit logits, fp32 log-softmax and two fp32 gradients (autograd of "
        "cross_entropy)",
        "recomputation stops once the last saved tensor is back: non-reentrant checkpoints since PyTorch 2.1",
        "gradients reduced in fp32; 15 bytes per unsharded parameter and micro-batch for flat buffers, half with "
        "16-bit reduction: fitted on public FSDP tables",
        "25 us per kernel: eager PyTorch issues one in 10-45 us (estimate)",
    };
    return f;
}

SoftwareFeatures torch_fsdp_compile() {
    SoftwareFeatures f = torch_fsdp();
    f.name = "torch-fsdp-compile";
    f.fusion = Fusion::compiled;
    f.logits_memory_per_logit = 6;
    f.host_per_kernel_s = 12e-6;
    f.sources = {
        "as torch-fsdp with torch.compile on every layer and on the loss: pointwise chains become one kernel",
        "12 us per kernel: between compiled code (6 us) and eager (25 us) (estimate)",
    };
    return f;
}

SoftwareFeatures torchtitan_2024() {
    SoftwareFeatures f = torch_fsdp_compile();
    f.name = "torchtitan-2024";
    f.selective_by_product = true;
    f.tp_hidden_fraction = 0.52;
    f.sources = {
        "selective recomputation per operator: attention, every second product and reduced sums are kept "
        "(selective_ac_option op)",
        "as torch-fsdp-compile: settings of the public torchtitan performance page of December 2024",
        "0.52 of TP traffic hidden by asynchronous tensor parallelism: fitted on 13 public rows, weak, rescaled by the "
        "last refit of all stacks that hide it; set 0 without it",
    };
    return f;
}

SoftwareFeatures torchtitan_2024_compile() {
    SoftwareFeatures f = torch_fsdp_compile();
    f.name = "torchtitan-2024-compile";
    f.selective_by_product = true;
    f.sources = {"as torchtitan-2024 without asynchronous tensor parallelism: all of its traffic is exposed"};
    return f;
}

SoftwareFeatures torchtitan_2024_eager() {
    SoftwareFeatures f = torch_fsdp();
    f.name = "torchtitan-2024-eager";
    f.selective_by_product = true;
    f.sources = {"as torch-fsdp: torchtitan without torch.compile"};
    return f;
}

SoftwareFeatures pithtrain_2026() {
    SoftwareFeatures f = torch_fsdp_compile();
    f.name = "pithtrain-2026";
    f.attention = "fa3";
    f.fp32_gradients = true;
    f.fp32_reduce = true;
    f.edges_regathered = true;
    f.sources = {
        "as torch-fsdp-compile; parameters of layers and fp32 gradients stay whole through a step, which reduces once "
        "(zero: 1), while embedding and head are wrapped with reshard_after_forward: gathered before each backward, "
        "whole until their next forward has passed: mlc-ai/pith-train pithtrain/modules/training.py and "
        "pithtrain/dualpipe/dualpipev.py",
        "nothing gathers ahead: the CPU waits for the GPU at every router, whose counts set the sizes of the "
        "all-to-all",
        "FlashAttention-3's rate stands for the kernels of flash_attn.cute: pithtrain/operators/flash_attn_v4.py",
    };
    return f;
}

SoftwareFeatures nanotron_2024() {
    SoftwareFeatures f = torch_fsdp();
    f.name = "nanotron-2024";
    f.split_projections = false;
    f.tensor_replay = true;
    f.fused_norms = true;
    f.packed_copies = true;
    f.accumulate_apart = true;
    f.fp32_gradients = true;
    f.fp32_reduce = true;
    f.logits_memory_per_logit = 8;
    f.loss_bytes_per_logit = 52;
    f.host_per_layer_s = 1.65e-3;
    f.host_per_step_s = 0.05;
    f.host_per_shard_s = 5e-6;
    f.tp_backward_overlap = true;
    f.allocator_expandable = false;
    f.sources = {
        "FlashAttention-2 between copies of q, k and v, Triton RMSNorm and rotary kernels, other pointwise work "
        "eager, one product for q, k, v and one for gate and up: huggingface/nanotron models/llama.py",
        "16-bit gradients are added to fp32 ones by a pass of their own after the backward of a micro-batch, fp32 "
        "gradients are reduced: optim/gradient_accumulator.py",
        "asynchronous tensor-parallel layers: reduction beside the weight gradient, "
        "parallel/tensor_parallel/functional.py",
        "8 bytes held per logit: fp32 copy and fp32 softmax; 52 moved: cast 6, maximum 4, difference 8, exponential "
        "8, sum 4, quotient 8, backward product 8 and cast 6 (_ShardedCrossEntropy)",
        "5 us per shard of a tensor copied one by one after the parameters were gathered (distributed.py): about a "
        "launch; sweep rows with ZeRO-1 against those without, one pipeline stage, want 4 to 6",
        "0.05 s a step: loss averaged over ranks and read, norm read, log, next batch; fitted on the rows of its "
        "sweep with tp 1 and 4 or 8 pipeline stages on 8 to 128 GPUs, which all miss that much",
        "1.65 ms a layer pass: fitted on the host-bound rows of its layout sweep (tp 4 and 8, one pipeline stage, "
        "micro-batch 1 and 2 on 8 to 64 GPUs), where a layer takes 4.3 ms forward and backward whatever tp is",
        "25 us per kernel: eager PyTorch issues one in 10-45 us (estimate)",
    };
    return f;
}

SoftwareFeatures llm_foundry_2023() {
    SoftwareFeatures f = torch_fsdp();
    f.name = "llm-foundry-2023";
    f.attention = "fa1";
    f.split_projections = false;
    f.recompute_stops_early = false;
    f.loss_bytes_per_logit = 32;
    f.logits_memory_per_logit = 4;
    f.host_per_layer_s = 0.1e-3;
    f.allocator_expandable = false;
    f.sources = {
        "4 bytes held per logit: 16-bit logits and their gradient; its default loss is the fused cross entropy of "
        "flash_attn (loss_fn fused_crossentropy, llmfoundry/models/mpt/modeling_mpt.py)",
        "Triton FlashAttention-1 kernels: mosaicml/llm-foundry benchmark tables of 2023; at 64k tokens the newer "
        "kernel's rate is 40 % too fast",
        "eager, 32 bytes per logit (fp32 loss), 0.1 ms per layer pass and 25 us per kernel: fitted on those tables",
        "fp32 reduction is its DEFAULT mixed precision, 16 bit is PURE",
    };
    return f;
}

SoftwareFeatures llm_foundry_2023_torch2() {
    SoftwareFeatures f = llm_foundry_2023();
    f.name = "llm-foundry-2023-torch2";
    f.recompute_stops_early = true;
    f.sources = {
        "as llm-foundry-2023 on PyTorch 2.1: activation_checkpointing_reentrant is false in its benchmark script, so "
        "recomputation stops once the last saved tensor is back; the tables whose default mixed precision is DEFAULT "
        "are of that time, those with PURE of PyTorch 1.13 (image of the script)",
    };
    return f;
}

SoftwareFeatures internevo_2023() {
    SoftwareFeatures f = torch_fsdp();
    f.name = "internevo-2023";
    f.split_projections = false;
    f.recompute_stops_early = false;
    f.fp32_reduce = false;
    f.tp_backward_overlap = true;
    f.loss_bytes_per_logit = 32;
    f.allocator_expandable = false;
    f.owner_broadcasts = true;
    f.sources = {
        "whole tensors are dealt to the ranks of a ZeRO-1 group, largest first to the rank with least, and each owner "
        "broadcasts after the update: _partition_param_list and broadcast_params of "
        "internlm/solver/optimizer/hybrid_zero_optim.py",
        "gradients of 16-bit parameters are reduced as they are; tensor-parallel layers of "
        "flash_attn.ops.fused_dense, whose backward reduction runs beside the weight gradient",
        "FlashAttention-2, eager pointwise kernels and fp32 loss (32 bytes per logit), 25 us per kernel: public "
        "InternEvo tables of 7B on A800 to 1024 GPUs; a fused profile is 10 % too fast",
    };
    return f;
}

}  // namespace

const std::vector<SoftwareFeatures>& software_stacks() {
    static const std::vector<SoftwareFeatures> all = {
        megatron_2022(),
        megatron_core_2024(),
        nemo_2023_autocast(),
        nemo1_2024(),
        nemo_2024(),
        nemo_2025(),
        mlperf_2025(),
        megatron_core_2025_no_overlap(),
        maxtext_2024(),
        torch_fsdp(),
        torch_fsdp_compile(),
        torchtitan_2024(),
        torchtitan_2024_compile(),
        torchtitan_2024_eager(),
        pithtrain_2026(),
        nanotron_2024(),
        llm_foundry_2023(),
        llm_foundry_2023_torch2(),
        megatron_deepspeed_2023("deepspeed-2023"),
        megatron_deepspeed_2023("megatron-deepspeed-2023"),
        internevo_2023(),
    };
    return all;
}

const SoftwareFeatures* find_software(std::string_view name) {
    for (const SoftwareFeatures& f : software_stacks())
        if (f.name == name)
            return &f;
    return nullptr;
}

std::string resolve_attention(const SoftwareFeatures& f, const GpuSpec& gpu) {
    if (f.attention != "auto")
        return f.attention;
    std::string best = "unfused";
    double shortest = 0;
    for (const char* key : {"cudnn", "fa2"}) {
        const auto found = gpu.attention.find(key);
        if (found == gpu.attention.end())
            continue;
        const double time = (1 + 2.5 / found->second.backward_rate) / found->second.e128;
        if (best == "unfused" || time < shortest) {
            best = key;
            shortest = time;
        }
    }
    return best;
}

}  // namespace fabricast
