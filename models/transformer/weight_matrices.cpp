#include "models/transformer/weight_matrices.hpp"

#include <algorithm>

namespace fabricast {
namespace {

void add(std::vector<MatrixCount>& to, std::int64_t rows, std::int64_t columns, std::int64_t count = 1) {
    if (rows > 0 && columns > 0 && count > 0)
        add_matrices(to, {{rows, columns, count}});
}

void add_mlp(std::vector<MatrixCount>& to, const Architecture& a, std::int64_t width, std::int64_t count = 1) {
    add(to, width, a.hidden, (a.gated ? 2 : 1) * count);
    add(to, a.hidden, width, count);
}

void add_attention(std::vector<MatrixCount>& to, const Architecture& a, std::int64_t tp) {
    const std::int64_t query = a.heads * a.head_dim / tp;
    if (a.attention == AttentionKind::latent) {
        const std::int64_t value = a.heads * a.value_dim / tp, nope = a.heads * (a.head_dim - a.rope_dim) / tp;
        add(to, a.query_rank, a.hidden);
        add(to, query, a.query_rank > 0 ? a.query_rank : a.hidden);
        add(to, a.key_value_rank + a.rope_dim, a.hidden);
        add(to, nope + value, a.key_value_rank);
        add(to, a.hidden, value);
        return;
    }
    const std::int64_t key = a.kv_heads * a.head_dim / tp;
    add(to, query, a.hidden);
    add(to, key, a.hidden, 2);
    add(to, a.hidden, query);
}

}  // namespace

void add_matrices(std::vector<MatrixCount>& to, const std::vector<MatrixCount>& more) {
    for (const MatrixCount& one : more) {
        const auto same = std::find_if(
            to.begin(), to.end(), [&](const MatrixCount& m) { return m.rows == one.rows && m.columns == one.columns; });
        if (same == to.end())
            to.push_back(one);
        else
            same->count += one.count;
    }
}

LayerMatrices layer_matrices(const Architecture& a, const LayerShape& layer, std::int64_t tp, std::int64_t ep,
                             std::int64_t etp) {
    LayerMatrices out;
    add_attention(out.dense, a, tp);
    if (!layer.moe) {
        add_mlp(out.dense, a, a.ffn / tp);
        return out;
    }
    add(out.dense, a.moe.experts, a.hidden);  // router
    if (a.moe.shared_ffn > 0)
        add_mlp(out.dense, a, a.moe.shared_ffn / tp);
    add_mlp(out.experts, a, a.moe.ffn / etp, a.moe.experts / ep);
    return out;
}

std::int64_t element_count(const std::vector<MatrixCount>& matrices) {
    std::int64_t sum = 0;
    for (const MatrixCount& matrix : matrices)
        sum += matrix.elements();
    return sum;
}

std::int64_t row_and_column_count(const std::vector<MatrixCount>& matrices) {
    std::int64_t sum = 0;
    for (const MatrixCount& matrix : matrices)
        sum += (matrix.rows + matrix.columns) * matrix.count;
    return sum;
}

}  // namespace fabricast
