#include "sim/scenario/fields.hpp"

#include "models/hardware/catalogue.hpp"
#include "models/transformer/architecture.hpp"
#include "models/transformer/layer.hpp"
#include "sim/scenario/field_kinds.hpp"

namespace fabricast {
namespace {

using namespace field_kinds;

constexpr double kMaxRate = 1e15;  // byte/s; a Rate holds 8e15

constexpr Field kFieldsUpToRun[] = {
    text("name", "Name of the scenario in reports; the file name without ending when absent."),
    text("extends", "A scenario file this one builds on; path relative to this file. Keys given here win."),

    section("cluster", "What the cluster is."),
    integer("cluster.nodes", 1, 131072, "1", "Number of servers."),
    section("cluster.node", "The server: a preset, any field of which may be overridden.", "preset"),
    preset("cluster.node.preset", "nodes", "A server of the catalogue."),
    section("cluster.node.gpu", "The GPU of the node: another one of the catalogue, or changed figures.", "preset"),
    preset("cluster.node.gpu.preset", "gpus", "A GPU of the catalogue; the node's own when absent."),
    integer("cluster.node.gpu.sms", 1, 4096, "", "Streaming multiprocessors."),
    quantity("cluster.node.gpu.peak_bf16", D::flops, "TFLOP/s", 1e18,
             "Dense peak in bf16 and fp16, not the sparse figure."),
    quantity("cluster.node.gpu.peak_fp8", D::flops, "TFLOP/s", 1e18, "Dense peak in fp8."),
    quantity("cluster.node.gpu.peak_tf32", D::flops, "TFLOP/s", 1e18, "Dense peak in tf32."),
    quantity("cluster.node.gpu.peak_fp32", D::flops, "TFLOP/s", 1e18, "Peak in fp32."),
    quantity("cluster.node.gpu.hbm", D::rate, "TB/s", kMaxRate, "Nominal memory bandwidth."),
    quantity("cluster.node.gpu.l2", D::size, "MiB", 1e12, "Second-level cache."),
    number("cluster.node.gpu.sustained", 1, "",
           "GEMM rate of a long run as a fraction of a short burst (clock and power)."),
    flag("cluster.node.gpu.nvls", "", "NVLink SHARP: the NVSwitch adds and multicasts."),
    quantity("cluster.node.gpu.power", D::power, "W", 1e5, "Nominal board power."),
    integer("cluster.node.gpus", 1, 1024, "", "GPUs of a node."),
    integer("cluster.node.nics", 0, 1024, "", "Network adapters of a node; 0 only for a single node."),
    quantity("cluster.node.nic", D::rate, "Gb/s", kMaxRate, "Line rate of one network adapter and direction."),
    number("cluster.node.nic_efficiency", 1, "", "Achieved rate of an adapter as a fraction of its line rate."),
    quantity("cluster.node.nvlink", D::rate, "GB/s", kMaxRate,
             "NVLink of one GPU, nominal, in one direction (half of what sheets print)."),
    quantity("cluster.node.nvlink_achieved", D::rate, "GB/s", kMaxRate,
             "NVLink of one GPU as collectives reach it, one direction."),
    quantity("cluster.node.pcie", D::rate, "GB/s", kMaxRate, "PCIe between GPU and host, achieved, one direction."),
    quantity("cluster.node.gpu_memory", D::size, "GiB", 1e15, "Memory of one GPU as the driver reports it (GiB)."),
    {.path = "cluster.gpu_spread",
     .kind = K::number,
     .doc = "Standard deviation of speed between GPUs of one kind, as a share; 0: all alike.",
     .high = 0.5},
    {.path = "cluster.kernel_jitter",
     .kind = K::number,
     .doc =
         "Standard deviation of the time of one second of kernels, in seconds; of T seconds it is sqrt(T) times that.",
     .high = 0.5},
    choice("cluster.gpu_draw", "expected|each", "",
           "Speeds of the GPUs and times of kernels: one GPU as slow as the slowest is expected to be, and meetings as "
           "late as the last is expected, or each drawn from the seed (all ranks differ then and are simulated)."),
    quantity("cluster.node.power_limit", D::power, "W", 1e5, "Board power limit set below nominal."),
    choice("cluster.node.cpu", "intel|amd|arm", "", "Host processor: NCCL's tables depend on it."),
    choice("cluster.node.board", "nvswitch|cube-mesh|pairs|full-mesh|pcie", "",
           "What joins the GPUs: an NVSwitch, the NVLink cube mesh of 8 V100, NVLink bridges between pairs, NVLink "
           "between all, or PCIe alone."),
    choice("cluster.node.pcie_layout", "pix|pxb|phb|node|sys", "",
           "Where GPUs of a NUMA node meet over PCIe: groups on a switch, switches under one more switch, one host "
           "bridge, a host bridge each, a NUMA node each."),
    integer("cluster.node.numa_nodes", 1, 64, "", "NUMA nodes of the server; GPUs fill them in order."),
    integer("cluster.node.gpus_per_switch", 2, 64, "", "GPUs on a PCIe switch, with pix and pxb."),
    quantity("cluster.node.socket", D::rate, "GB/s", kMaxRate, "Between two NUMA nodes, achieved, one direction."),
    quantity("cluster.node.pcie_uplink", D::rate, "GB/s", kMaxRate,
             "A PCIe switch upwards, shared by all below it; as wide as a GPU's PCIe when absent."),
    quantity("cluster.node.host_bridge", D::rate, "GB/s", kMaxRate,
             "All traffic through one host bridge together; no limit when absent."),
    integer("cluster.node.nvlink_domain", 1, 4096, "", "Servers on one NVSwitch: 18 in a rack of 72."),
    quantity("cluster.node.host_memory", D::size, "GiB", 1e15, "Memory of the server's host, for offload."),
    quantity("cluster.node.host_bandwidth", D::rate, "GB/s", kMaxRate,
             "Nominal memory bandwidth of the host, all channels of all sockets, for offload."),
    text("cluster.node.topology",
         "File that tells what the server is, `nvidia-smi topo -m` or NCCL topology XML; path relative to this file."),
    latency("cluster.node.nvlink_latency", "One hop through the NVSwitch."),
    latency("cluster.node.pcie_latency", "One PCIe hop."),
    latency("cluster.node.nic_latency", "One network adapter, one side."),
    section("cluster.fabric", "The network between nodes.", "kind"),
    choice("cluster.fabric.kind", "rail-fat-tree|grid", "rail-fat-tree",
           "Leaf and spine switches, or a grid of dimensions without servers of their own."),
    preset("cluster.fabric.network", "networks",
           "What carries the traffic: efficiency and latencies of a class of networks of the catalogue."),
    quantity("cluster.fabric.nic", D::rate, "Gb/s", kMaxRate, "Line rate of the adapters; wins over cluster.node.nic."),
    number("cluster.fabric.oversubscription", 1000, "1", "Capacity of a leaf switch down / up; 1 = non-blocking."),
    integer("cluster.fabric.nodes_per_pod", 1, 131072, "", "Nodes below one set of leaf switches."),
    latency("cluster.fabric.switch_latency", "One switch hop."),
    flag("cluster.fabric.rails", "true",
         "NIC r of the nodes of a pod on leaf r; false: all NICs of a node on one leaf."),
    integer("cluster.fabric.levels", 1, 3, "2", "Levels of switches; 3: pods in blocks under a core."),
    integer("cluster.fabric.pods_per_block", 1, 131072, "1", "Pods (or leaves) of a block, with 3 levels."),
    number("cluster.fabric.block_oversubscription", 1000, "1", "Capacity of a block down / up, with 3 levels."),
    integer("cluster.fabric.planes", 1, 64, "1", "Separate networks; NIC n of a node is of plane n mod planes."),
    integer("cluster.fabric.spines", 0, 4096, "0", "Links up a leaf, with static and ecmp; 0: one a NIC."),
    choice("cluster.fabric.routing", "ideal|static|ecmp|adaptive", "ideal", "How flows spread over parallel paths."),
    number("cluster.fabric.adaptive_efficiency", 1, "1", "Share of a trunk that adaptive routing reaches."),
    text("cluster.fabric.file",
         "File that tells the network: ns-3, ASTRA-sim, Slurm topology.conf, ibnetdiscover; path relative to this "
         "file."),
    text("cluster.fabric.hosts",
         "Hosts of that file the job runs on, a Slurm node list such as n[0-15]; else the first."),
    integer("cluster.fabric.gpus_per_server", 1, 4096, "", "GPUs of a server, for files that list GPUs alone."),
    {.path = "cluster.fabric.dimensions", .kind = K::list, .doc = "Dimensions of a grid, innermost first."},
    choice("cluster.fabric.dimensions[].kind", "ring|full|switch", "",
           "Neighbours joined, all pairs joined, or a switch a group."),
    integer("cluster.fabric.dimensions[].size", 2, 1 << 20, "", "GPUs along the dimension."),
    quantity("cluster.fabric.dimensions[].bandwidth", D::rate, "GB/s", kMaxRate, "One link, achieved, one direction."),
    latency("cluster.fabric.dimensions[].latency", "One link; a way through a switch pays two."),
    integer("cluster.fabric.inner_dimensions", 0, 16, "1", "How many dimensions of the grid are NVLink of one server."),
    section("cluster.graph", "A cluster written down part by part, instead of node and fabric."),
    {.path = "cluster.graph.nodes", .kind = K::list, .doc = "The parts."},
    text("cluster.graph.nodes[].name", "Name, for the links."),
    choice("cluster.graph.nodes[].kind", "gpu|nvswitch|nic|pcie-switch|host|switch", "", "What it is."),
    integer("cluster.graph.nodes[].server", 0, 131071, "", "Its server, from 0; an nvswitch may be of none."),
    integer("cluster.graph.nodes[].numa", 0, 63, "", "NUMA node of a host."),
    {.path = "cluster.graph.links", .kind = K::list, .doc = "Links between the parts, both ways."},
    text("cluster.graph.links[].from", "Name of one end."),
    text("cluster.graph.links[].to", "Name of the other."),
    quantity("cluster.graph.links[].bandwidth", D::rate, "GB/s", kMaxRate,
             "Achieved, one direction, all lanes; absent between PCIe switches, hosts and NICs: no limit."),
    latency("cluster.graph.links[].latency", "From end to end."),
    integer("cluster.graph.links[].lanes", 1, 1024, "", "NVLinks or cables that make the link."),
    flag("cluster.graph.links[].one_way", "", "From `from` to `to` alone."),
    text("cluster.degraded",
         "Parts below their rate: `nic 3.2 at 0.5; gpu 1.0 nvlink at 0.9; gpu 0.0 nvlink gpu 3 loses 1 lane`."),

    section("model", "The model: a preset, a Hugging Face config.json, shapes, or one of the former with other shapes.",
            "preset"),
    preset("model.preset", "models", "A model of the catalogue."),
    text("model.hf", "A Hugging Face config.json, path relative to this file; shapes may be changed beside it."),
    unsupported("model.experts", "experts have a section of their own; write moe: {experts: 8, top_k: 2, ffn: 14336}"),
    text("model.name", "Name in reports."),
    choice("model.family", "llama|gpt", "llama",
           "llama: gated MLP, RMSNorm, rotary. gpt: plain MLP, LayerNorm, biases, learned positions."),
    integer("model.layers", 1, 10000, "", "Decoder layers."),
    integer("model.hidden", 1, 1e6, "", "Width."),
    integer("model.heads", 1, 4096, "", "Query heads."),
    integer("model.kv_heads", 1, 4096, "", "Key and value heads; as many as heads when absent."),
    integer("model.head_dim", 1, 4096, "", "Width of a head; hidden / heads when absent."),
    integer("model.ffn", 1, 1e7, "", "Inner width of the MLP; 4 x hidden for gpt when absent."),
    integer("model.vocab", 1, 1e8, "", "Vocabulary of the tokenizer."),
    integer("model.vocab_multiple", 1, 1e6, "", "The vocabulary is padded to this times tp."),
    integer("model.max_positions", 0, 1e9, "", "Learned positions; 0 = none."),
    flag("model.gated", "", "Gated MLP (three matrices)."),
    flag("model.rms_norm", "", "RMSNorm instead of LayerNorm."),
    flag("model.norm_bias", "", "LayerNorm has a shift."),
    flag("model.biases", "", "Biases on all linear layers."),
    flag("model.qkv_bias", "", "Biases on the query, key and value projections."),
    flag("model.projection_bias", "", "Bias on the attention output."),
    flag("model.tied_embeddings", "", "The head shares the embedding matrix."),
    flag("model.rotary", "", "Rotary positions."),
    flag("model.alibi", "", "Linear biases on scores instead of positions."),
    flag("model.qk_norm", "", "Queries and keys are normalised a head."),
    flag("model.post_norms", "", "Norms behind attention and MLP as well."),
    flag("model.parallel_block", "", "Attention and MLP read the same input and are summed once."),
    flag("model.separate_norms", "", "With parallel_block: each through a norm of its own."),
    flag("model.attention_sinks", "", "A learned logit a head in the softmax."),
    integer("model.window", 0, 1e9, "", "Sliding attention window in tokens; 0 = none."),
    integer("model.full_every", 0, 10000, "", "With a window: every n-th layer attends in full; 0 = none does."),
    integer("model.mtp_layers", 0, 64, "", "Multi-token prediction modules."),
    section("model.moe", "Mixture of experts."),
    integer("model.moe.experts", 0, 65536, "", "Routed experts of a layer; 0 = a dense model."),
    integer("model.moe.top_k", 1, 65536, "", "Experts a token visits."),
    integer("model.moe.ffn", 1, 1e7, "", "Inner width of one routed expert."),
    integer("model.moe.shared_ffn", 0, 1e7, "", "Inner width of all shared experts together; 0 = none."),
    integer("model.moe.first_dense", 0, 10000, "", "Layers at the start that are dense."),
    integer("model.moe.every", 1, 10000, "", "2: every second layer has experts, the others are dense."),
    flag("model.moe.router_bias", "", "Bias of the router."),
    flag("model.moe.score_bias", "", "Bias on scores that only picks experts (DeepSeek-V3)."),
    flag("model.moe.shared_gate", "", "A gate on the shared experts (Qwen)."),
    flag("model.moe.expert_bias", "", "Biases inside experts."),
    section("model.mla", "Latent attention: queries, keys and values through compressed vectors."),
    integer("model.mla.query_rank", 0, 1e6, "", "Width of the compressed query; 0 = queries in one step."),
    integer("model.mla.key_value_rank", 1, 1e6, "", "Width of the compressed key and value."),
    integer("model.mla.nope_dim", 1, 4096, "", "Part of a query and key head without positions."),
    integer("model.mla.rope_dim", 1, 4096, "", "Part of a query and key head with rotary positions."),
    integer("model.mla.value_dim", 1, 4096, "", "Width of a value head."),

    section("training", "How the model is trained."),
    {.path = "training.sequence",
     .kind = K::quantity,
     .doc = "Tokens of one sequence.",
     .dimension = D::tokens,
     .example = "tokens",
     .high = 1e8,
     .positive = true},
    {.path = "training.global_batch",
     .kind = K::quantity,
     .doc = "Batch of one optimizer step, in sequences or tokens.",
     .dimension = D::batch,
     .example = "sequences",
     .high = 1e14,
     .positive = true},
    {.path = "training.micro_batch",
     .kind = K::quantity,
     .doc = "Sequences of one forward pass of a data-parallel rank.",
     .fallback = "1",
     .dimension = D::sequences,
     .example = "sequences",
     .high = 1e6,
     .positive = true},
    choice("training.precision", "bf16|fp16|fp8|fp32", "bf16", "Precision of the GEMMs."),
    section("training.layout", "How the model is cut over GPUs: tp x cp x pp x dp = GPUs."),
    integer("training.layout.tp", 1, 1e6, "1", "Tensor parallel."),
    flag("training.layout.sp", "false", "Sequence parallel: norms and residuals cut over the tp ranks."),
    integer("training.layout.pp", 1, 1e6, "1", "Pipeline parallel."),
    integer("training.layout.vpp", 1, 1e6, "1", "Model chunks of a pipeline stage (interleaving)."),
    {.path = "training.layout.stage_layers",
     .kind = K::numbers,
     .doc = "Layers of every model chunk in model order, pp x vpp of them; absent or []: equal shares.",
     .high = 1e6,
     .clears = true},
    integer("training.layout.cp", 1, 1e6, "1", "Context parallel."),
    integer("training.layout.ep", 1, 1e6, "1", "Expert parallel."),
    text("training.layout.dp", "Data parallel; `auto` or absent: the GPUs that remain.", "auto"),
    integer("training.layout.zero", 0, 3, "0",
            "ZeRO stage: 1 optimizer, 2 + gradients, 3 + parameters sharded over dp."),
    integer("training.layout.etp", 0, 1e6, "0", "Tensor parallel of routed experts: 1, or tp; 0 means tp."),
    integer("training.layout.shard_group", 0, 1e6, "0",
            "Data-parallel ranks that share one sharded copy (HSDP); 0: all of them."),
    choice("training.layout.cp_exchange", "ring|all_gather|ulysses", "ring",
           "How context-parallel ranks exchange: keys and values in a ring or gathered, or heads."),
    flag(
        "training.layout.cp_balanced", "true",
        "Context-parallel ranks hold pieces from both ends of the sequence; false: cut in order, the last works most."),
    text("training.layout.order", "Which ranks are neighbours, fastest-varying first.", "tp-cp-ep-dp-pp"),
    choice("training.schedule", "gpipe|1f1b|interleaved|zb-h1|zb-h2|zb-v|dual-pipe", "1f1b", "Pipeline schedule."),
    choice("training.recompute", "none|selective|full", "none",
           "What the backward pass computes again: nothing, attention scores, whole layers."),
    integer("training.recompute_layers", 0, 1e6, "0", "Layers of a model chunk that are recomputed; 0: all."),
    section("training.moe", "Mixture of experts: how tokens travel."),
    choice("training.moe.dispatch", "all_to_all|all_gather|node_aware", "all_to_all",
           "Copies by all-to-all, all tokens to all ranks, or once a node and on over NVLink (DeepEP)."),
    number("training.moe.capacity_factor", 1e6, "",
           "Tokens an expert takes at most, as a multiple of the mean, padded to it; absent: none is dropped."),
    number("training.moe.imbalance", 1e6, "1", "Tokens of the hottest expert-parallel rank / mean."),
    section("training.overlap", "Communication beside compute."),
    flag("training.overlap.grad_reduce", "false", "Gradient reduction beside the backward pass."),
    flag("training.overlap.param_gather", "false", "Parameter gathering beside the forward pass."),
    flag("training.overlap.reshard", "true",
         "ZeRO-3: drop parameters after their forward and gather them again for the backward."),
    choice("training.reduce_every", "step|micro_batch", "step", "How often gradients are reduced over dp."),
    {.path = "training.buckets", .kind = K::section, .doc = "Gradient buckets.", .shorthand = "cap", .replace = true},
    quantity("training.buckets.cap", D::size, "MB", 1e13, "Largest bucket."),
    {.path = "training.buckets.split",
     .kind = K::numbers,
     .doc = "Bucket sizes in proportion, in order of reduction.",
     .high = 1e12,
     .positive = true},
    flag("training.clip_gradients", "true", "Clip by the global gradient norm every step."),
    section("training.optimizer", "What updates the weights, and in which types it keeps its state.", "kind"),
    choice("training.optimizer.kind", "adam|adamw|adam-8bit|lion|sgd|sgd-momentum|adafactor|muon", "adam",
           "Optimizer; muon updates the matrices of layers, adam the rest."),
    choice("training.optimizer.master", "fp32|bf16|fp16|none", "",
           "Copy of 16-bit weights that is updated; none: the weights are updated in place. fp32 when absent."),
    choice("training.optimizer.moments", "fp32|bf16|fp16|fp8|int8", "",
           "Type of the moments; fp32 when absent, int8 in blocks for adam-8bit."),
    choice("training.optimizer.second_moment", "fp32|bf16|fp16|fp8|int8", "",
           "Type of the second moment where it differs from the first."),
    integer("training.optimizer.block", 1, 1 << 20, "256", "int8 moments: elements that share a scale."),
    integer("training.optimizer.newton_schulz", 1, 100, "5", "Iterations of Newton and Schulz a matrix (muon)."),
    unsupported("training.optimizer.gradients",
                "the type of gradients is said once, below training.software: fp32_gradients (as accumulated) and "
                "fp32_reduce (as reduced)"),
    section("training.offload", "Training state in host memory, updated there.", "optimizer"),
    choice("training.offload.optimizer", "none|cpu|nvme", "none",
           "cpu: gradients go down over PCIe, the CPU updates, weights come up. nvme is refused."),
    choice("training.offload.parameters", "none|cpu|nvme", "none",
           "cpu: sharded weights (zero: 3) rest in host memory and come up for every gather. nvme is refused."),
    number("training.offload.fraction", 1, "1", "Share of the optimizer's state on the host."),
    flag("training.offload.overlap", "true", "Weights come up while the next piece is updated."),
    unsupported("training.offload.activations",
                "activations in host memory are not modelled; training.recompute saves their memory another way"),
    section("training.packed", "Several documents in one sequence, each attending to itself alone.", "document"),
    {.path = "training.packed.document",
     .kind = K::quantity,
     .doc = "Mean length of a document.",
     .dimension = D::tokens,
     .example = "tokens",
     .high = 1e12,
     .positive = true},
    choice("training.packed.distribution", "exponential|equal", "exponential",
           "exponential: strung together and cut at the ends of sequences; equal: whole documents of one length."),
    {.path = "training.packed.lengths",
     .kind = K::numbers,
     .doc = "Instead: lengths of a sample of documents, in tokens.",
     .high = 1e12,
     .positive = true},
    section("training.software", "The training stack: kernels, fusions, overlap.", "preset"),
    preset("training.software.preset", "software", "A stack of the catalogue.", "megatron-core-2024"),
    choice("training.software.attention", "unfused|fa1|fa2|fa3|cudnn", "", "Attention kernel."),
    choice("training.software.fusion", "fused|compiled|eager", "", "How norms, activations and residuals run."),
    flag("training.software.dropout", "", "Dropout in attention and residuals."),
    flag("training.software.fp32_gradients", "", "Gradients accumulate in fp32."),
    flag("training.software.fp32_reduce", "", "Gradients travel in fp32 (false: in 16 bit)."),
    flag("training.software.cuda_graphs", "", "Kernels are issued from CUDA graphs: no host time."),
    flag("training.software.p2p_overlap", "", "Pipeline messages beside compute."),
    flag("training.software.tp_backward_overlap", "", "Tensor-parallel reduction beside weight gradients."),
    {.path = "training.software.tp_hidden_fraction",
     .kind = K::number,
     .doc = "Share of tensor-parallel traffic that chunked matrix products hide (user buffers, asynchronous TP); 0 = "
            "none.",
     .high = 0.99},
    integer("training.software.head_weight_deferred", 0, 1e6, "",
            "Pipelines: the head's weight gradients of so many last micro-batches wait for the drain."),

    section("comm", "The communication library."),
    text("comm.library", "Name and version.", "nccl 2.28"),
    {.path = "comm.env", .kind = K::open_map, .doc = "Environment variables of the job."},
    {.path = "comm.env.*", .kind = K::text, .doc = "Value of the variable."},

    section("comm.compression", "Traffic of the training step sent in fewer bytes.", "gradients"),
    choice("comm.compression.gradients", "none|fp16|bf16|fp8|int8|int4|1-bit-adam|powersgd", "none",
           "Reduction of weight gradients over dp; embedding, head, norms and biases stay wide."),
    choice("comm.compression.parameters", "none|fp16|bf16|fp8|int8|int4|1-bit-adam|powersgd", "none",
           "Gathers of parameters (zero: 1 to 3): fp8 or int8."),
    choice("comm.compression.tensor_parallel", "none|fp16|bf16|fp8|int8|int4|1-bit-adam|powersgd", "none",
           "Hidden states between tensor-parallel ranks: fp8 or int8."),
    integer("comm.compression.rank", 1, 1024, "1", "Rank of powersgd's factors."),
    {.path = "comm.compression.warmup",
     .kind = K::number,
     .doc = "Share of the run before 1-bit-adam (0.2 when absent) or powersgd (0) begins to compress.",
     .high = 1},

    section("comm.time_outs", "How long the job waits before it gives up."),
    quantity("comm.time_outs.collective", D::time, "s", 1e7,
             "Of a collective or message, from its launch: 600 s with PyTorch over NCCL, 1800 s with HCCL."),
    flag("comm.time_outs.off", "false", "Nobody loses patience: a hang lasts for ever."),
    quantity("comm.time_outs.connect", D::time, "s", 1e7, "Of the set-up of communicators."),
    quantity("comm.time_outs.heartbeat", D::time, "s", 1e7, "Of the watchdog itself."),

    section("data", "Input pipeline; with data.samples the epochs of the job are simulated, rank by rank."),
    integer("data.samples", 1, 9e15, "", "Samples (sequences) of an epoch."),
    integer("data.epochs", 1, 1e6, "1", "Epochs of the run."),
    integer("data.loader_workers", 0, 1024, "", "Loader processes of a rank; 0: the rank reads itself."),
    integer("data.prefetch", 1, 1e6, "2", "Batches a worker prepares ahead."),
    quantity("data.sample_time", D::time, "ms", 1e6, "A worker's time for a sample; absent: data are always there."),
    {.path = "data.worker_start",
     .kind = K::quantity,
     .doc = "Start of the workers at the beginning of an epoch.",
     .dimension = D::time,
     .example = "s",
     .high = 1e6},
    flag("data.pin_memory", "", "Pinned host memory; false: the copy of a batch to the GPU stops its rank."),
    flag("data.persistent_workers", "false", "Workers live across epochs."),
    flag("data.epochs_meet", "true", "Ranks meet at the end of an epoch: a barrier, or the mean of the loss."),
    section("data.sampler", "How samples are dealt to ranks."),
    choice("data.sampler.sharding", "padded|strided|files|whole", "padded",
           "padded: equal shares, filled up; strided: every dp-th sample; files: whole files; whole: no shards, every "
           "rank reads all of them and stops after its share."),
    integer("data.sampler.files", 1, 9e15, "", "Files of an epoch, of equal size, with sharding: files."),
    {.path = "data.sampler.counts",
     .kind = K::numbers,
     .doc = "Instead: samples of every data-parallel rank.",
     .high = 9e15},
    flag("data.sampler.rotate", "false", "Who has how many samples moves by one rank every epoch."),
    flag("data.sampler.shuffle", "", "Shuffle every epoch."),
    flag("data.sampler.same_order", "false", "With sharding: whole, all ranks shuffle with the same seed."),
    flag("data.sampler.drop_last", "false", "Drop the samples of a rank that do not fill its batch."),
    integer("data.sampler.seed", 0, 9e15, "", "Seed of the shuffle."),
    integer("data.sampler.buffer", 1, 9e15, "", "Shuffle buffer, samples."),
    {.path = "data.epoch_end", .kind = K::list, .doc = "What ranks do at the end of an epoch before the next begins."},
    text("data.epoch_end[].what", "Name in reports."),
    quantity("data.epoch_end[].takes", D::time, "s", 1e7, "Time at the first boundary."),
    quantity("data.epoch_end[].grows", D::time, "s", 1e7, "So much more at each boundary that follows."),
    integer("data.epoch_end[].every", 1, 1e6, "", "At every so many-th boundary; 1 when absent."),
    text("data.epoch_end[].on", "Who does it: all, rank 0, gpu 1.3, node 2; all when absent."),

};

template <typename List>
std::vector<std::string> names_of(const List& list) {
    std::vector<std::string> names;
    for (const auto& entry : list)
        names.emplace_back(entry.name);
    return names;
}

}  // namespace

std::span<const Field> fields() {
    static const std::vector<Field> all = [] {
        std::vector<Field> joined(std::begin(kFieldsUpToRun), std::end(kFieldsUpToRun));
        joined.insert(joined.end(), run_fields().begin(), run_fields().end());
        joined.insert(joined.end(), plan_fields().begin(), plan_fields().end());
        joined.insert(joined.end(), expect_fields().begin(), expect_fields().end());
        return joined;
    }();
    return all;
}

const Field* find_field(std::string_view path) {
    for (const Field& field : fields()) {
        if (field.path == path)
            return &field;
        if (field.path.ends_with(".*")) {
            const std::string_view parent = field.path.substr(0, field.path.size() - 1);  // keeps the dot
            if (path.size() > parent.size() && path.starts_with(parent))
                return &field;
        }
    }
    return nullptr;
}

std::string_view leaf_name(std::string_view path) {
    const std::size_t dot = path.rfind('.');
    return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::vector<std::string> child_names(std::string_view path) {
    std::vector<std::string> names;
    for (const Field& field : fields()) {
        const std::size_t dot = field.path.rfind('.');
        const std::string_view parent = dot == std::string_view::npos ? std::string_view() : field.path.substr(0, dot);
        if (parent == path && field.use != Use::unsupported && leaf_name(field.path) != "*")
            names.emplace_back(leaf_name(field.path));
    }
    return names;
}

std::vector<std::string> allowed_words(const Field& field) {
    if (field.kind == FieldKind::preset || field.allowed == "nodes") {
        if (field.allowed == "nodes")
            return names_of(Catalogue::builtin().nodes());
        if (field.allowed == "gpus")
            return names_of(Catalogue::builtin().gpus());
        if (field.allowed == "networks")
            return names_of(Catalogue::builtin().networks());
        if (field.allowed == "models")
            return names_of(architectures());
        return names_of(software_stacks());
    }
    std::vector<std::string> words;
    for (std::string_view rest = field.allowed; !rest.empty();) {
        const std::size_t bar = rest.find('|');
        words.emplace_back(rest.substr(0, bar));
        rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
    }
    return words;
}

}  // namespace fabricast
