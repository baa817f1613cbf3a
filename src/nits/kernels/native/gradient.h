// What gradients of densities and of masses have in common: equations (22) and (23), layer by layer.
//
// A unit at a point has z, λ = z − z_A and μ = z_B − z. The layers above read four things of it: σ(z), ρ f, ρ f̄ and
// a fourth, which is the slope ρ f′ for a density and the rise between two points for a mass.

#pragma once

#include "pnn.h"

namespace nits {

// What the layer above read of a unit: σ(z), ρ f, ρ f̄, the fourth over its greatest, and how the logarithms of ρ f
// and ρ f̄ run off at the ends, ρ f / (e^λ − 1) and ρ f̄ / (e^μ − 1), which are finite where λ or μ vanish.
template <class T>
struct Read {
    V<T> up, mass, rest, part, left, right;
};

// Derivatives of the result in σ(z), log(ρ f), log(ρ f̄), log ρ and the logarithm of the fourth; and the last two of
// `Read`, times those in log(ρ f) and log(ρ f̄) over ρ f and ρ f̄.
template <class T>
struct Wanted {
    V<T> point, mass, rest, rise, part, left, right;
};

// The same in z, λ, μ and the logarithm of the fourth.
template <class T>
struct Moved {
    V<T> point, lower, upper, part;
};

// 1 / (e^D − 1).
template <class T>
inline V<T> flatness(const Unit<T>& u) {
    return exp<T>(-u.width) / u.shrink;
}

// The gradient in the weights of a deeper layer, handed to `write` row by row of θ, and what is wanted of the layer
// below. `moved` is scaled to the sums W ρ f, W ρ f̄ and the fourth's own.
template <class T, class Write>
void pass_down(const Layer<T>& layer, const std::vector<Moved<T>>& moved, const std::vector<Read<T>>& read,
               std::vector<Wanted<T>>& wanted, Write write) {
    const int count = int(layer.units.size()), inputs = layer.inputs;
    for (int o = 0; o < count; ++o) {
        write(layer.start + count * inputs + o, -moved[o].point * layer.units[o].sum);
    }
    for (int j = 0; j < inputs; ++j) {
        const Read<T>& r = read[j];
        V<T> point{}, lower{}, upper{}, part{};
        for (int o = 0; o < count; ++o) {
            const Moved<T>& m = moved[o];
            const V<T> W = layer.weight[o * inputs + j];
            point += W * m.point;
            lower += W * m.lower;
            upper += W * m.upper;
            part += W * m.part;
            const V<T> total = m.point * (r.up - layer.units[o].centre) + m.lower * r.mass + m.upper * r.rest +
                               m.part * r.part;
            write(layer.start + o * inputs + j, -layer.steep[o * inputs + j] * total);
        }
        wanted[j] = {point,         lower * r.mass, upper * r.rest, V<T>{},
                     part * r.part, lower * r.left, upper * r.right};
    }
}

// The log-probability that was evaluated last, and the walk from the top layer down. `Own` is what is evaluated: its
// at(k) is layer k at the point, or at the lower of two, and its moved(…) is equation (22).
template <class T, class Own>
class Gradient {
   public:
    Gradient(const int64_t* hidden, int depth) : pnn_(hidden, depth), terms_(hidden[depth - 1]) {
        for (int k = 0; k < depth; ++k) {
            wanted_.emplace_back(hidden[k], Wanted<T>{});
            moved_.emplace_back(hidden[k]);
            read_.emplace_back(hidden[k]);
        }
    }

    // Hands the gradient to `write`, row by row of θ.
    template <class Write>
    void gradient(T low, T high, Write write) {
        auto& last = wanted_.back();
        for (size_t o = 0; o < last.size(); ++o) {
            const V<T> prior = exp<T>(pnn_.share[o]), posterior = exp<T>(terms_[o] - total_);
            last[o].rise = -prior;
            last[o].part = posterior;
            write(pnn_.last() + int(o), posterior - prior);
        }
        for (size_t k = pnn_.layers.size() - 1; k > 0; --k) {
            scale(k);
            look(k - 1);
            pass_down<T>(pnn_.layers[k], moved_[k], read_[k - 1], wanted_[k - 1], write);
        }
        first(low == -infinity<T>, high == infinity<T>, write);
    }

   protected:
    PNN<T> pnn_;
    std::vector<V<T>> terms_;  // of each unit of the top layer, and the logarithm of the sum of their exponentials
    V<T> total_{};

   private:
    std::vector<std::vector<Wanted<T>>> wanted_;
    std::vector<std::vector<Moved<T>>> moved_;
    std::vector<std::vector<Read<T>>> read_;

    const Own& own() const { return static_cast<const Own&>(*this); }

    void scale(size_t k) {
        const auto& at = own().at(k);
        for (size_t o = 0; o < at.size(); ++o) {
            const Unit<T>& u = pnn_.layers[k].units[o];
            const Moved<T> m = Own::moved(u, at[o], wanted_[k][o], u.low.up, u.high.down, flatness(u));
            moved_[k][o] = {m.point, m.lower * u.scale, m.upper * u.scale, m.part / at[o].marginal};
        }
    }

    void look(size_t k) {
        const auto& at = own().at(k);
        for (size_t j = 0; j < at.size(); ++j) {
            const Unit<T>& u = pnn_.layers[k].units[j];
            read_[k][j] = {at[j].at.up,
                           at[j].mass,
                           u.rest,
                           at[j].part,
                           u.rise * exp<T>(at[j].fall - at[j].lower) / u.shrink,
                           u.rise * exp<T>(u.climb - u.upper) / u.shrink};
        }
    }

    // z = W (x − b), λ = W (x − A), μ = W (B − x) and z′ = W; with two points s and t, μ = W (B − t), δ = W (t − s).
    template <class Write>
    void first(bool open_low, bool open_high, Write write) const {
        const auto& units = pnn_.layers[0].units;
        const auto& at = own().at(0);
        const V<T> zero{};
        for (size_t o = 0; o < units.size(); ++o) {
            const Unit<T>& u = units[o];
            const Moved<T> m = Own::moved(u, at[o], wanted_[0][o], open_low ? zero : u.low.up,
                                          open_high ? zero : u.high.down, open_low || open_high ? zero : flatness(u));
            const V<T> lower = open_low ? zero : m.lower * at[o].lower, upper = open_high ? zero : m.upper * u.upper;
            write(int(o), -u.cube * (m.point * at[o].z + lower + upper + m.part));
            write(int(units.size() + o), -u.weight * m.point);
        }
    }
};

}  // namespace nits
