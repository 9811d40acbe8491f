#include "validate/score/run_score_rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fabricast {
namespace {

// Values: nics "8 x 400" (adapters a node, Gb/s each); 1 x 400 per GPU is "gpu x 400".
constexpr FillRule kRules[] = {
    // ---- the machine
    {"*", "gpu=A100-40G-SXM", "node", "hgx-a100-40g", "8-GPU NVSwitch board of that part"},
    {"*", "gpu=A100-80G-SXM", "node", "hgx-a100-80g", "8-GPU NVSwitch board of that part"},
    {"*", "gpu=A100", "node", "hgx-a100-80g", "memory size not stated; 80 GB fits every row"},
    {"nanotron_sweep", "", "node", "aws-p5", "EFA class, stated: the cloud's H100 machine"},
    {"*", "gpu=H100-80G-SXM", "node", "hgx-h100", "8-GPU NVSwitch board of that part"},
    {"*", "gpu~HBM2e", "node", "hgx-h100-hbm2e", "the 500 W part with HBM2e (2.4 TB/s)"},
    {"*", "gpu=H200-141G-SXM", "node", "hgx-h200", "8-GPU NVSwitch board of that part"},
    {"*", "gpu=B200", "node", "hgx-b200", "8-GPU NVSwitch board of that part"},
    {"*", "gpu=GB200", "node", "gb200-nvl72", "one NVLink domain of up to 72 GPUs"},
    {"*", "gpu=GB300", "node", "gb300-nvl72", "one NVLink domain of up to 72 GPUs"},

    // ---- the fabric
    {"*", "internode~1600 Gbps", "nics", "8 x 200", "1600 Gb/s a node"},
    {"*", "internode~800 Gb/s per node", "nics", "4 x 200",
     "800 Gb/s a node: four HDR200 adapters, the usual A100 server"},
    {"*", "internode~800 Gbps per node", "nics", "8 x 100", "800 Gb/s a node"},
    {"*", "internode~400 Gbps per node", "nics", "4 x 100", "400 Gb/s a node, the cloud's four adapters"},
    {"*", "internode~400 Gb/s", "nics", "gpu x 400", "stated per GPU"},
    {"*", "internode~HDR200", "nics", "8 x 200", "eight HDR adapters a node"},
    {"*", "internode~4x100 Gb", "nics", "4 x 100", "four adapters a node"},
    {"*", "internode~XDR800", "nics", "gpu x 800", "one adapter a GPU"},
    {"*", "internode~NDR400", "nics", "gpu x 400", "one adapter a GPU"},
    {"zerobubble", "internode~RoCE", "nics", "8 x 200", "rate not stated; 100 to 200 Gb/s a GPU give the same error"},
    {"*", "gpu~A100", "nics", "8 x 200", "not stated: one HDR200 adapter a GPU, the reference design"},
    {"*", "", "nics", "gpu x 400", "not stated: one 400 Gb/s adapter a GPU, the reference design"},

    // ---- the model
    {"*", "model~MPT", "style", "mpt", "MPT: LayerNorm and linear layers without biases, learned positions, tied head"},
    {"*", "model~Nemotron", "style", "nemotron", "squared ReLU, LayerNorm, rotary positions, no biases"},
    {"*", "model~Maverick", "style", "preset llama4-maverick", "the published architecture"},
    {"nanotron_sweep", "model~3.57B", "style", "llama tied", "tied head: the stated parameter count has one table"},
    {"nanotron_sweep", "", "style", "llama", "gated MLP, RMSNorm, rotary positions"},
    {"*", "model~Llama", "style", "llama", "gated MLP, RMSNorm, rotary positions"},
    {"*", "model~InternLM", "style", "llama", "gated MLP, RMSNorm, rotary positions"},
    {"*", "model~Grok", "style", "preset grok-1", "the published architecture, cut to the layers of the row"},
    {"*", "model~DeepSeek-V3", "style", "preset deepseek-v3",
     "the published architecture, cut to the layers of the row"},
    {"*", "model~DeepSeek-V2", "style", "preset deepseek-v2",
     "the published architecture, cut to the layers of the row"},
    {"*", "", "style", "gpt", "plain MLP, LayerNorm, biases, learned positions, tied head"},
    {"*", "source_key~vtrain", "vocab", "50257", "not stated: the GPT-2 vocabulary, as in the simulator of the source"},
    {"*", "", "vocab", "50257", "not stated: the GPT-2 vocabulary"},
    {"simumax_b200", "model~405B", "kv_heads", "16", "the source's configuration pads the key-value heads to 16"},
    {"*", "", "kv_heads", "heads", "not stated: as many as query heads"},

    // ---- the stack
    {"llmfoundry", "overlap~PURE", "software", "llm-foundry-2023",
     "early tables of 2023: FSDP, Triton FlashAttention-1"},
    {"llmfoundry", "", "software", "llm-foundry-2023-torch2", "later tables of 2023, PyTorch 2.1"},
    {"korthikanti", "", "software", "megatron-2022", "Megatron-LM of the paper"},
    {"optmisc", "", "software", "megatron-2022", "Megatron-LM of 2021-22; an older generation of its kernels"},
    {"zerobubble", "", "software", "megatron-2022", "Megatron-LM of 2023 without flash attention, which fits better"},
    {"vtrain", "", "software", "megatron-deepspeed-2023", "Megatron-DeepSpeed, stated"},
    {"vtrain1n", "", "software", "megatron-deepspeed-2023", "Megatron-DeepSpeed, stated"},
    {"simumax_b200", "", "software", "megatron-core-2025-no-overlap", "Megatron-Core, all overlap off, stated"},
    {"mlperf_405b", "", "software", "mlperf-2025", "NeMo with the settings of the submission"},
    {"dgxc", "source~maxtext", "software", "maxtext-2024", "MaxText on XLA, stated"},
    {"dgxc", "source~v24.11", "software", "nemo1-2024", "NeMo 1, container 24.09 in the recipe's launch.sh"},
    {"dgxc", "source~v25.02 model~Nemotron", "software", "nemo1-2024",
     "NeMo 1: nemotron4-15b-synth.yaml of the recipe"},
    {"dgxc", "source~v25.02 model~GPT3", "software", "nemo1-2024", "NeMo 1: gpt3_175b_hydra.yaml of the recipe"},
    {"dgxc", "source~v25.02", "software", "nemo-2024", "NeMo of the tag's date"},
    {"dgxc", "", "software", "nemo-2025", "NeMo of the tag's date"},
    {"torchtitan", "overlap~AsyncTP", "software", "torchtitan-2024", "compiled, asynchronous tensor parallelism"},
    {"torchtitan", "overlap~Async TP", "software", "torchtitan-2024", "compiled, asynchronous tensor parallelism"},
    {"torchtitan", "overlap~compile", "software", "torchtitan-2024-compile", "compiled, stated"},
    {"torchtitan", "", "software", "torchtitan-2024-eager", "eager, stated or before compile was the default"},
    {"ibm_fsdp", "overlap~no compile", "software", "torch-fsdp", "eager, stated"},
    {"ibm_fsdp", "", "software", "torch-fsdp-compile", "compiled, stated"},
    {"kempner_h200", "overlap~compile", "software", "torch-fsdp-compile", "compiled, stated"},
    {"kempner_h200", "", "software", "torch-fsdp", "eager"},
    {"nanotron_sweep", "", "software", "nanotron-2024", "nanotron, stated"},
    {"internevo", "", "software", "internevo-2023", "InternEvo v0.2.1, stated"},

    {"llmfoundry", "overlap~PURE", "reduce", "bf16", "FSDP mixed precision PURE reduces in 16 bit"},
    {"ibm_fsdp", "", "reduce", "bf16", "the published recipe reduces in 16 bit"},
    {"*", "", "reduce", "", "as the stack does"},
    {"dgxc", "model~405B", "deferred", "50", "wgrad_deferral_limit of NeMo's llama31_405b recipe"},
    {"dgxc", "source~v24.11 model~Nemotron-4-340B", "optimizer", "master: bf16, moments: bf16",
     "optim.dtype bf16 in nemotron4-340b-synth.yaml; fp32 state would not fit with dp 2"},

    {"torchtitan", "overlap~rowwise", "precision", "bf16",
     "row-wise scaled float8 of that date runs no faster than bf16 (torchao states 1.10 at best)"},
    {"vtrain", "", "precision", "fp16", "not stated; 16 bit either way"},
    {"vtrain1n", "", "precision", "fp16", "not stated; 16 bit either way"},
    {"zerobubble", "", "precision", "bf16", "not stated; 16 bit either way"},

    // ---- what is recomputed
    {"dgxc", "source~maxtext", "recompute", "full", "remat_policy save_qkv_proj in the recipe's script"},
    {"dgxc", "model~DeepSeek", "recompute", "full", "not stated; low confidence"},
    {"*", "", "recompute", "none", "not stated"},
    {"torchtitan", "overlap~SAC layer", "recompute_layers", "half", "every second layer, stated"},
    {"ibm_fsdp", "", "recompute_layers", "hfu", "the share of recomputed blocks follows from HFU and MFU"},

    // ---- interleaving
    {"dgxc", "model~Nemotron-4-340B pp!=1", "vpp", "12",
     "not listed in some tags: one layer a chunk, as in the others"},
    {"dgxc", "model~Maverick", "vpp", "1", "listed 12 with one pipeline stage"},
    {"*", "", "vpp", "1", "not stated"},
    {"zerobubble", "overlap~ZB-1p", "schedule", "zb-h1", "stated"},
    {"zerobubble", "overlap~ZB-2p", "schedule", "zb-h2", "stated"},
    {"*", "", "schedule", "", "1F1B, interleaved where there is more than one chunk"},

    // ---- sharding
    {"*", "zero~SHARD_GRAD_OP", "zero", "3 keep", "parameters stay gathered from forward to backward"},
    {"*", "zero~JAX FSDP degree 64 ", "zero", "3 group 64", "stated"},
    {"*", "zero~JAX FSDP degree 128 x DP 1", "zero", "3 group 128", "stated"},
    {"*", "zero~JAX FSDP degree 128", "zero", "3 group 128", "stated"},
    {"*", "zero~JAX FSDP degree 256", "zero", "3 group 256", "stated"},
    {"*", "zero~HSDP", "zero", "3 group 8", "group not stated: one node, the recipe's default"},
    {"*", "zero~FSDP", "zero", "3", "stated"},
    {"*", "zero~sharded over 8 GPUs", "zero", "1 group 8", "stated"},
    {"*", "zero~sharded over 4 GPUs", "zero", "1 group 4", "stated"},
    {"*", "zero~zero1", "zero", "1", "stated"},
    {"*", "", "zero", "0", "none stated"},
    {"*", "zero~SDP", "overlap", "grad_reduce param_gather", "FSDP prefetches and reduces beside compute"},
    {"internevo", "", "overlap", "grad_reduce", "stated"},
    {"nanotron_sweep", "", "overlap", "grad_reduce", "gradient buckets reduced from a backward hook"},
    {"mlperf_405b", "", "overlap", "grad_reduce param_gather", "stated"},
    {"dgxc", "", "overlap", "grad_reduce param_gather", "recipe default"},
    {"*", "", "overlap", "", "none stated"},
    {"nanotron_sweep", "", "buckets", "52428800 B",
     "25 MiB of 16-bit gradients a bucket (column bucket_mb, PyTorch's default), reduced in fp32"},
    {"dgxc", "source~v24.11 model~Nemotron-4-340B", "buckets", "52428800 B",
     "bucket_cap_mb 50 of 16-bit gradients in nemotron4-340b-synth.yaml"},
    {"dgxc", "source~v25.02 model~GPT3", "buckets", "230686720 B",
     "bucket_cap_mb 220 of 16-bit gradients in gpt3_175b_hydra.yaml"},
    {"dgxc", "source!~maxtext", "env", "NCCL_NVLS_ENABLE: 0", "the recipes' scripts set it"},
    {"simumax_b200", "", "cp_exchange", "ulysses", "all-to-all, stated"},
    {"torchtitan", "", "cp_exchange", "all_gather", "default of that library"},
    {"*", "", "cp_exchange", "ring", "default of Transformer Engine"},
    {"torchtitan", "", "cp_balanced", "false",
     "not stated; attention of 4 and 8 ranks takes the time of the last one holding the end of the sequence"},
    {"internevo", "", "sp", "no", "not stated"},
    {"kempner_h200", "", "sp", "yes", "not stated; the usual plan of that library"},

    // ---- experts
    {"simumax_b200", "model~DeepSeek-V3", "first_dense", "1", "one dense layer of the four, stated"},
    {"*", "", "mtp_layers", "0", "prediction modules not stated"},
    {"dgxc", "model~Grok notes~ETP 1", "etp", "1", "stated"},
    {"dgxc", "model~Grok notes~ETP 4", "etp", "4", "stated"},
    {"dgxc", "model~Grok", "etp", "tp", "not listed: as tensor parallelism; with 1 the experts would not fit"},
    {"*", "", "etp", "1", "not listed, or 1 stated"},
};

const std::string& column(const PublishedRun& run, std::string_view name) {
    static const std::string none;
    if (name == "source_key")
        return run.source_key;
    if (name == "gpu")
        return run.gpu;
    if (name == "internode")
        return run.internode;
    if (name == "model")
        return run.model;
    if (name == "overlap")
        return run.overlap;
    if (name == "source")
        return run.source;
    if (name == "zero")
        return run.zero;
    if (name == "notes")
        return run.notes;
    return none;
}

// Conditions are separated by a space in front of the next column's operator, so that texts may hold spaces.
bool holds(const PublishedRun& run, std::string_view when) {
    while (!when.empty()) {
        const std::size_t op = when.find_first_of("~=!");
        const std::string_view name = when.substr(0, op);
        std::string_view rest = when.substr(op);
        const bool negated = rest.front() == '!';
        if (negated)
            rest.remove_prefix(1);
        const bool equal = rest.front() == '=';
        rest.remove_prefix(1);
        // the text reaches to the last space before the next operator, or to the end
        const std::size_t next = rest.find_first_of("~=!");
        std::size_t end = rest.size();
        if (next != std::string_view::npos)
            end = rest.rfind(' ', next);
        const std::string_view text = rest.substr(0, end);
        when = next == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        bool yes = false;
        if (name == "pp")
            yes = std::to_string(run.pp) == text;
        else
            yes = equal ? column(run, name) == text : column(run, name).find(text) != std::string::npos;
        if (yes == negated)
            return false;
    }
    return true;
}

const FillRule& rule_for(const PublishedRun& run, std::string_view field) {
    static constexpr FillRule kNone = {"*", "", "", "", "not stated"};
    for (const FillRule& rule : kRules) {
        if (rule.field == field && (rule.source == "*" || rule.source == run.source_key) && holds(run, rule.when))
            return rule;
    }
    return kNone;
}

std::int64_t number(std::string_view text) { return std::stoll(std::string(text)); }

class Writer {
public:
    explicit Writer(const PublishedRun& run) : run_(run) {}
    RunScenario write();

private:
    /// The rule's value, noted as filled.
    std::string fill(std::string_view field) {
        const FillRule& rule = rule_for(run_, field);
        out_.filled.push_back({std::string(field), std::string(rule.value), std::string(rule.why)});
        return std::string(rule.value);
    }
    /// The row's own value, else the rule's.
    std::string own(std::string_view field, const std::string& stated) { return stated.empty() ? fill(field) : stated; }
    std::int64_t own(std::string_view field, const std::optional<std::int64_t>& stated) {
        return stated ? *stated : number(fill(field));
    }
    template <typename... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        out_.yaml += fmt::format(format, std::forward<Args>(args)...);
        out_.yaml += '\n';
    }
    void cluster();
    void model();
    void training();
    std::string stage_layers(std::int64_t chunks) const;
    std::int64_t feed_forward(std::int64_t kv_heads, std::int64_t vocab);

    const PublishedRun& run_;
    RunScenario out_;
};

void Writer::cluster() {
    const std::string node = fill("node");
    std::int64_t per_node = std::min(run_.gpus_per_node, run_.gpus);
    if (node.ends_with("nvl72")) {  // the domain, not the tray: as many GPUs of a rack as divide the job evenly
        per_node = std::min<std::int64_t>(run_.gpus, 72);
        while (run_.gpus % per_node != 0)
            --per_node;
    }
    const std::int64_t nodes = run_.gpus / per_node;
    line("cluster:");
    line("  nodes: {}", nodes);
    std::string fields = fmt::format("preset: {}, gpus: {}", node, per_node);
    if (nodes > 1) {
        const std::string nics = fill("nics");
        const std::size_t x = nics.find(" x ");
        const std::int64_t count = nics.starts_with("gpu") ? per_node : number(nics.substr(0, x));
        fields += fmt::format(", nics: {}, nic: {} Gb/s", std::min(count, per_node), nics.substr(x + 3));
    } else {
        fields += fmt::format(", nics: {}", per_node);
    }
    line("  node: {{{}}}", fields);
}

// A blank inner width follows from the parameter count: gated MLP, untied head, grouped heads.
std::int64_t Writer::feed_forward(std::int64_t kv_heads, std::int64_t vocab) {
    const double h = static_cast<double>(run_.hidden), layers = static_cast<double>(run_.layers);
    const double head = h / static_cast<double>(run_.heads);
    const double attention = 2 * h * head * static_cast<double>(run_.heads + kv_heads);
    const double mlp = (run_.params_b.value_or(0) * 1e9 - 2 * h * static_cast<double>(vocab)) / layers - attention;
    const auto width = static_cast<std::int64_t>(std::llround(mlp / (3 * h) / 256)) * 256;
    out_.filled.push_back({"ffn", std::to_string(width), "not stated: follows from the parameter count"});
    return width;
}

void Writer::model() {
    const std::string style = fill("style");
    if (style.starts_with("preset ")) {
        std::string more;
        if (style.find("deepseek") != std::string::npos)
            more += fmt::format(", mtp_layers: {}", fill("mtp_layers"));
        if (!rule_for(run_, "first_dense").value.empty())
            more += fmt::format(", moe: {{first_dense: {}}}", fill("first_dense"));
        line("model: {{preset: {}, layers: {}{}}}", style.substr(7), run_.layers, more);
        return;
    }
    const std::int64_t vocab = own("vocab", run_.vocab);
    const std::int64_t kv_heads = run_.kv_heads ? *run_.kv_heads : [&] {
        const std::string value = fill("kv_heads");
        return value == "heads" ? run_.heads : number(value);
    }();
    const bool gpt = style == "gpt" || style == "mpt";
    line("model:");
    line("  name: \"{}\"", run_.model);
    line("  family: {}", gpt ? "gpt" : "llama");
    line("  layers: {}", run_.layers);
    line("  hidden: {}", run_.hidden);
    line("  heads: {}", run_.heads);
    line("  kv_heads: {}", kv_heads);
    line("  ffn: {}", run_.ffn ? *run_.ffn : feed_forward(kv_heads, vocab));
    line("  vocab: {}", vocab);
    if (style == "llama tied")
        line("  tied_embeddings: true");
    if (style == "mpt")
        line("  biases: false");
    if (style == "nemotron") {
        line("  gated: false");
        line("  rms_norm: false");
    }
    if (gpt)
        line("  max_positions: {}", run_.sequence);
}

// Chunks of unequal size: where two layers are missing the first and the last chunk hold one fewer, for embedding and head
// (Megatron's account_for_embedding_in_pipeline_split and ..._loss_...); otherwise the last chunks hold one fewer.
std::string Writer::stage_layers(std::int64_t chunks) const {
    const std::int64_t most = (run_.layers + chunks - 1) / chunks, missing = most * chunks - run_.layers;
    std::string text;
    for (std::int64_t c = 0; c < chunks; ++c) {
        std::int64_t layers = most;
        if (missing == 2)
            layers -= c == 0 || c == chunks - 1 ? 1 : 0;
        else
            layers -= c >= chunks - missing ? 1 : 0;
        text += fmt::format("{}{}", c > 0 ? ", " : "", layers);
    }
    return text;
}

void Writer::training() {
    const std::int64_t vpp = own("vpp", run_.vpp);
    const bool as_other = run_.precision == "fp8" && !rule_for(run_, "precision").value.empty();
    const std::string precision = as_other ? fill("precision") : own("precision", run_.precision);
    std::string recompute = own("recompute", run_.recompute);
    const std::string sp = own("sp", run_.sp), zero = fill("zero"), overlap = fill("overlap");
    line("training:");
    line("  sequence: {} tokens", run_.sequence);
    line("  global_batch: {} sequences", run_.global_batch);
    line("  micro_batch: {} sequences", run_.micro_batch);
    line("  precision: {}", precision);
    std::string layout =
        fmt::format("tp: {}, sp: {}, pp: {}, dp: {}", run_.tp, sp == "yes" && run_.tp > 1, run_.pp, run_.dp);
    if (vpp > 1 && run_.pp > 1)
        layout += fmt::format(", vpp: {}", vpp);
    if (run_.cp > 1)
        layout += fmt::format(", cp: {}, cp_exchange: {}", run_.cp, fill("cp_exchange"));
    if (run_.cp > 1 && !rule_for(run_, "cp_balanced").value.empty())
        layout += fmt::format(", cp_balanced: {}", fill("cp_balanced"));
    if (run_.ep > 1)
        layout += fmt::format(", ep: {}", run_.ep);
    if (run_.experts) {
        const std::string etp = fill("etp");
        layout += fmt::format(", etp: {}", etp == "tp" ? run_.tp : number(etp));
    }
    layout += fmt::format(", zero: {}", zero.substr(0, 1));
    if (const std::size_t group = zero.find("group "); group != std::string::npos) {
        const std::int64_t size = number(zero.substr(group + 6));
        if (size < run_.dp)
            layout += fmt::format(", shard_group: {}", size);
    }
    const std::int64_t chunks = run_.pp * (run_.pp > 1 ? vpp : 1);
    std::vector<std::int64_t> cut;
    if (run_.source_key == "nanotron_sweep" && run_.pp > 1)
        cut = nanotron_stages(run_);
    // a scenario file has empty stages at the ends alone: head and loss share the last, a layer moves to the stage before
    if (cut.size() > 2 && cut.back() == 0 && cut[cut.size() - 2] == 0 && cut[cut.size() - 3] > 1) {
        --cut[cut.size() - 3];
        cut[cut.size() - 2] = 1;
    }
    if (!cut.empty() && std::find(cut.begin(), cut.end() - 1, 0) == cut.end() - 1)
        layout += fmt::format(", stage_layers: [{}]", fmt::join(cut, ", "));
    else if (run_.layers % chunks != 0)
        layout += fmt::format(", stage_layers: [{}]", stage_layers(chunks));
    line("  layout: {{{}}}", layout);
    if (const std::string schedule = fill("schedule"); !schedule.empty())
        line("  schedule: {}", schedule);
    if (recompute == "selective") {
        const std::string layers = rule_for(run_, "recompute_layers").value.empty() ? "" : fill("recompute_layers");
        std::int64_t count = layers == "half" ? run_.layers / 2 : 0;
        if (layers == "hfu" && run_.hfu && run_.mfu)  // a recomputed forward adds a third
            count = std::min<std::int64_t>(
                run_.layers, std::llround(3 * (*run_.hfu / *run_.mfu - 1) * static_cast<double>(run_.layers)));
        if (count > 0) {
            recompute = "full";
            line("  recompute_layers: {}", count);
        }
    }
    line("  recompute: {}", recompute);
    if (!overlap.empty())
        line("  overlap: {{grad_reduce: true, param_gather: {}{}}}", overlap.find("param") != std::string::npos,
             zero.ends_with("keep") ? ", reshard: false" : "");
    if (!rule_for(run_, "buckets").value.empty())
        line("  buckets: {{cap: {}}}", fill("buckets"));
    const std::string reduce = fill("reduce");
    std::string features = reduce.empty() ? "" : fmt::format(", fp32_reduce: {}", reduce == "fp32");
    if (!rule_for(run_, "deferred").value.empty())
        features += fmt::format(", head_weight_deferred: {}", fill("deferred"));
    line("  software: {{preset: {}{}}}", fill("software"), features);
    if (!rule_for(run_, "optimizer").value.empty())
        line("  optimizer: {{kind: adam, {}}}", fill("optimizer"));
    if (!rule_for(run_, "env").value.empty())
        line("comm: {{env: {{{}}}}}", fill("env"));
}

RunScenario Writer::write() {
    line("name: {}", run_.id);
    cluster();
    model();
    training();
    std::string head = fmt::format("# {}\n# measured step time: {} s\n", run_.source, run_.step_s);
    for (const Filled& f : out_.filled)
        head += fmt::format("# {}: {}{}\n", f.field, f.value.empty() ? "" : f.value + ", ", f.why);
    out_.yaml = head + out_.yaml;
    return std::move(out_);
}

}  // namespace

std::span<const FillRule> fill_rules() { return kRules; }

std::vector<std::int64_t> nanotron_stages(const PublishedRun& run) {
    const double h = static_cast<double>(run.hidden), ffn = static_cast<double>(run.ffn.value_or(0));
    const double layer = 4 * h * h + 3 * h * ffn, head = h * static_cast<double>(run.vocab.value_or(0));
    const double whole = layer * static_cast<double>(run.layers) + head;
    std::vector<std::int64_t> stages(static_cast<std::size_t>(run.pp), 0);
    std::size_t stage = 0;
    double sum = 0;
    for (std::int64_t l = 0; l < run.layers; ++l) {
        ++stages[stage];
        sum += layer;
        if (stage + 1 < stages.size() && sum > whole * static_cast<double>(stage + 1) / static_cast<double>(run.pp))
            ++stage;
    }
    return stages;
}

RunScenario run_scenario(const PublishedRun& run) { return Writer(run).write(); }

}  // namespace fabricast
