// Folding in space: ranks that do the same at the same instants become one.
//
// A partition of ranks, groups and links into classes is equitable when
//   ranks    of a class run one template at one speed, with the same bindings; slot by slot their groups are of one class,
//            their peers of one class, over routes of one price
//   groups   of a class have one shape, and as many members of each class in each slot
//   links    of a class have one capacity, and carry as many uses of each class of activities with each coefficient
// By induction over instants all ranks of a class are then in the same state, and all activities of a class have the same
// rate: a link of class L carries, of the activities of class A (one activity uses links of L with coefficients that sum
// to s),
//
//   load  =  |A| s / |L|  times the rate of one
//
// which is the coefficient of the one activity that stands for A on the one link that stands for L. Sums of integers do not
// depend on who stands for whom, so the folded program gives the same picoseconds. A rate alone on the network is kept from
// the unfolded links (Program::alone).
//
// Classes are found by colour refinement: colours are 64-bit hashes of what is equal above; they are refined by those of the
// neighbours until the number of classes stays. Messages of a class to itself (a ring of equal ranks) become a message of
// the rank that stands for it to itself. Whatever tells ranks apart (a slow GPU, a degraded link, an uneven route) makes
// more classes, never a wrong one. A collective of all ranks beside which nothing else runs (sole_groups.hpp) is put on links
// of its own, of those it can be bound by: the same rates, and its tree or ring tells no ranks apart. Not folded: order of ties in texts (who is named in a deadlock).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/program/program.hpp"

namespace fabricast::program {

struct Folded {
    Program program;                      ///< ranks, groups, routes, demands by class; Rank::copies says how many
    std::vector<Rate> capacity;           ///< of the links of `program`
    std::vector<LinkId> links;            ///< class -> the first of its links; unused ones have none, some may have two
    std::vector<std::uint32_t> examples;  ///< class -> the first of its ranks
    std::vector<std::uint32_t> class_of;  ///< rank -> class
    int rounds = 0;                       ///< of refinement
};

/// capacity: one entry a link, > 0. The program must be valid. Throws std::logic_error when the partition found is not
/// equitable (our bug).
Folded fold(const Program& program, std::span<const Rate> capacity);
/// Takes from the program what both have in common (templates, costs, calls ...), which move_common() can put back.
Folded fold(Program&& program, std::span<const Rate> capacity);
void move_common(Program& from, Program& to);

}  // namespace fabricast::program
