// torchtitan's job file, tables as since 2025.
#include <algorithm>

#include <fmt/format.h>

#include "sim/export/launch.hpp"
#include "sim/export/notes.hpp"
#include "sim/import/importers.hpp"

namespace fabricast::launch {
namespace {

class TitanJob {
public:
    TitanJob(const Scenario& scenario, const TrainingPlan& plan) : s_(scenario), p_(plan), l_(plan.layout) {}

    Launch write() {
        std::string body = model() + "\n[training]\n" + training() + "\n[parallelism]\n" + data_parallel() + pipeline();
        if (l_.cp > 1)
            body += context();
        if (s_.model.moe.experts > 0)
            body += experts();
        body += recomputation();
        // eager kernels are those of a job that is not compiled
        body += fmt::format("\n[compile]\nenable = {}\n", s_.software.fusion != Fusion::eager);
        rest();
        Launch out;
        out.text = fmt::format("# {} on {} x {}: {}.\n", s_.model.name, s_.nodes, s_.node.name, follows(p_));
        out.text +=
            fmt::format("# torchrun --nnodes {} --nproc-per-node {} -m torchtitan.train --job.config_file THIS\n",
                        s_.nodes, s_.node.gpus);
        out.text += notes_.comments();
        out.text += "\n" + body;
        out.notes = notes_.take();
        return out;
    }

private:
    template <typename T>
    static std::string line(std::string_view key, const T& value) {
        return fmt::format("{} = {}\n", key, value);
    }
    static std::string word(std::string_view key, std::string_view value) {
        return fmt::format("{} = \"{}\"\n", key, value);
    }

    std::string recomputation() {
        std::string text = "\n[activation_checkpoint]\n" + word("mode", recompute_name(p_.recompute));
        if (p_.recompute == Recompute::selective)
            text += word("selective_ac_option", "op");
        return text;
    }

    std::string model() {
        std::string text = "[model]\n";
        const auto models = import::torchtitan_models();
        const auto own = std::find_if(models.begin(), models.end(),
                                      [&](const import::TitanModel& m) { return s_.model.name == m.preset; });
        if (own != models.end()) {
            text += word("name", own->name) + word("flavor", own->flavor);
        } else {
            notes_.add(
                fmt::format("the model {}, which torchtitan has under no name known here: set model.name and flavor",
                            s_.model.name));
        }
        if (p_.precision == Precision::fp8)
            text += "converters = [\"float8\"]\n";
        return text;
    }

    // Behind a pipeline the local batch is cut into its micro-batches; else gradients are accumulated up to the global batch.
    std::string training() {
        std::string text = line("seq_len", p_.sequence);
        text += line("local_batch_size", l_.pp > 1 ? p_.global_batch / l_.dp : p_.micro_batch);
        text += line("global_batch_size", p_.global_batch);
        if (s_.tokens > 0)
            text += line("steps",
                         static_cast<std::int64_t>(s_.tokens / static_cast<double>(p_.global_batch * p_.sequence)));
        notes_.add_if(p_.precision == Precision::fp16 || p_.precision == Precision::fp32,
                      "a precision but bf16 and fp8");
        // It means all of both: parameters rest on the host, and the optimizer with them.
        if (p_.offload.parameters && p_.offload.optimizer >= 1)
            text += "enable_cpu_offload = true\n";
        else if (p_.offload.active())
            notes_.add(fmt::format("{} in host memory: torchtitan's enable_cpu_offload takes parameters and optimizer",
                                   !p_.offload.parameters ? p_.offload.optimizer < 1 ? "a part of the optimizer alone"
                                                                                     : "the optimizer alone"
                                   : p_.offload.optimizer > 0 ? "parameters and a part of the optimizer"
                                                              : "parameters alone"));
        return text;
    }

    std::string data_parallel() {
        std::int64_t shard = 1;
        if (l_.zero > 0)
            shard = l_.shard_group > 0 && l_.shard_group < l_.dp ? l_.shard_group : l_.dp;
        std::string text =
            line("data_parallel_replicate_degree", l_.dp / shard) + line("data_parallel_shard_degree", shard);
        if (l_.zero == 1 || l_.zero == 2)
            notes_.add(
                fmt::format("ZeRO stage {}: torchtitan shards everything or nothing; this shards everything and keeps "
                            "gathered parameters for the backward",
                            l_.zero));
        const bool keep = l_.zero == 1 || l_.zero == 2 || !p_.reshard_after_forward;
        if (l_.zero > 0)
            text += word("fsdp_reshard_after_forward", keep ? "never" : "always");
        text += line("tensor_parallel_degree", l_.tp);
        if (l_.tp > 1 && s_.software.fusion == Fusion::compiled && s_.software.tp_hidden_fraction > 0)
            text += "enable_async_tensor_parallel = true\n";
        notes_.add_if(l_.tp > 1 && !l_.sequence_parallel, "tensor parallelism without sequence parallelism");
        return text;
    }

    std::string pipeline() {
        std::string text = line("pipeline_parallel_degree", l_.pp);
        if (l_.pp == 1)
            return text;
        const char* schedule = l_.schedule == Schedule::gpipe         ? "GPipe"
                               : l_.schedule == Schedule::interleaved ? "Interleaved1F1B"
                               : l_.schedule == Schedule::zb_v        ? "ZBVZeroBubble"
                               : l_.schedule == Schedule::one_f_one_b ? "1F1B"
                                                                      : nullptr;
        if (schedule == nullptr)
            notes_.add(fmt::format("the schedule {}", schedule_name(l_.schedule)));
        text += word("pipeline_parallel_schedule", schedule == nullptr ? "1F1B" : schedule);
        text += line("pipeline_parallel_microbatch_size", p_.micro_batch);
        // stages = (layers + less at the first + less at the last) / layers of a stage
        const std::int64_t stages = l_.pp * std::max<std::int64_t>(1, l_.vpp);
        const std::vector<std::int64_t>& list = l_.stage_layers;
        std::int64_t most = s_.model.layers / stages, first = 0, last = 0;
        if (!list.empty()) {
            most = *std::max_element(list.begin(), list.end());
            first = most - list.front();
            last = most - list.back();
            for (std::size_t i = 1; i + 1 < list.size(); ++i) {
                if (list[i] != most) {
                    notes_.add("stages of other sizes than the first and the last: set module_fqns_per_model_part");
                    break;
                }
            }
        }
        return text + line("pipeline_parallel_layers_per_stage", most) +
               line("pipeline_parallel_first_stage_less_layers", first) +
               line("pipeline_parallel_last_stage_less_layers", last);
    }

    std::string context() {
        notes_.add_if(p_.context == ContextExchange::ulysses, "context parallelism that exchanges heads (Ulysses)");
        return line("context_parallel_degree", l_.cp) +
               word("context_parallel_rotate_method",
                    p_.context == ContextExchange::all_gather ? "allgather" : "alltoall");
    }

    std::string experts() {
        std::string text = line("expert_parallel_degree", l_.ep);
        if (l_.ep > 1)
            text += line("expert_tensor_parallel_degree", l_.expert_tp());
        notes_.add_if(p_.dispatch == ExpertDispatch::all_gather, "experts' tokens gathered by all ranks");
        if (p_.capacity_factor > 0)
            notes_.add(fmt::format("experts that take {} times their share of tokens at most", p_.capacity_factor));
        return text;
    }

    void rest() {
        notes_.add_if(l_.zero > 0 && !(p_.overlap_grad_reduce && p_.overlap_param_gather),
                      "data-parallel traffic that waits for compute: torchtitan overlaps it");
        notes_.order(l_);
        notes_.compression(p_.compression);
        notes_.add_if(!p_.clip_gradients,
                      "gradients that are not clipped: torchtitan clips them, by training.max_norm");
        if (p_.optimizer != Optimizer())
            notes_.add(fmt::format("the optimizer {}", optimizer_text(p_.optimizer)));
        notes_.add_if(p_.recompute_layers > 0, "recomputation of some layers only");
    }

    const Scenario& s_;
    const TrainingPlan& p_;
    const Layout& l_;
    Notes notes_;
};

}  // namespace

Launch torchtitan_launch(const Scenario& scenario, const TrainingPlan& plan) {
    return TitanJob(scenario, plan).write();
}

}  // namespace fabricast::launch
