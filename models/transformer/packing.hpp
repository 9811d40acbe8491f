// Several documents in one sequence, each attending to itself alone (block-causal mask, variable-length kernels).
//
// Attention depends on one number, the tokens D of the document that a token is in, on average over tokens:
//
//   D = sum over documents of length^2 / sum of lengths
//   equal          D = L
//   exponential    documents of mean L strung together and cut at the ends of sequences of s tokens:
//                  D = 2 L - 2 L^2 / s (1 - exp(-s / L))
//   lengths        a sample of documents; one longer than a sequence is cut into whole sequences and a rest
//
// A causal kernel computes s D / 2 scores a sequence; everything else sees s tokens as before. Model FLOPs count D keys a
// token in full where they count s otherwise (MFU of documents; over the whole sequence, as trainers print that do not know
// the documents, is told beside it).
//
// Not modelled: that sequences differ (steps wait for the rank whose documents are longest), padding, kernels that slow
// down on very uneven documents.
// Derivation of the exponential case: pairs of tokens of one document, the integral of exp(-|x - y| / L) over the sequence.
#pragma once

#include <cstdint>
#include <vector>

namespace fabricast {

double equal_documents(double mean, double sequence);
double exponential_documents(double mean, double sequence);
/// Preconditions: not empty, all positive.
double sampled_documents(const std::vector<double>& lengths, double sequence);

}  // namespace fabricast
