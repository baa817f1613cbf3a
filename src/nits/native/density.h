// log ν(x), equation (5), and its gradient in θ, in one sweep.
//
// The gradient is written by hand, equations (21) to (23). A unit at a point has z, λ = z − z_A and μ = z_B − z; what
// the layers above read of it, and how log ν changes with each, is in `Wanted`.

#pragma once

#include "pnn.h"

namespace nits {

template <class T>
struct Wanted {
    V<T> point, mass, rest, rise, slope;  // d log ν / d of σ(z), log(ρ f), log(ρ f̄), log ρ, log(σ′(z) z′)
    V<T> left, right;                     // mass / (e^λ − 1) and rest / (e^μ − 1), finite where they vanish
};

// The same in z, λ, μ and log z′, equation (22).
template <class T>
struct Moved {
    V<T> point, lower, upper, slope;

    Moved() = default;
    Moved(V<T> p, V<T> l, V<T> u, V<T> s) : point(p), lower(l), upper(u), slope(s) {}
    Moved(const Unit<T>& u, const Wanted<T>& w, V<T> start, V<T> end, V<T> flat) {
        point = w.point * u.at.up * u.at.down + w.mass * (u.at.down - start) + w.rest * (end - u.at.up) +
                w.rise * (end - start) + w.slope * (u.at.down - u.at.up);
        lower = w.mass * start + w.left + w.rise * (start + flat);
        upper = w.rest * end + w.right + w.rise * (end + flat);
        slope = w.slope;
    }
};

template <class T>
class Density {
   public:
    Density(const int64_t* hidden, int depth) : pnn_(hidden, depth), terms_(hidden[depth - 1]) {
        for (int k = 0; k < depth; ++k) wanted_.emplace_back(hidden[k], Wanted<T>{});
    }

    V<T> log_density(const Rows<T>& theta, V<T> x, T low, T high) {
        pnn_.frame(theta, low, high);
        pnn_.template trace<true>(x);
        const auto& units = pnn_.layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) terms_[o] = pnn_.share[o] + units[o].slope;
        total_ = PNN<T>::log_sum(terms_);
        return total_;
    }

    // Hands the gradient of what was evaluated last to `write`, row by row of θ.
    template <class Write>
    void gradient(T low, T high, Write write) {
        auto& last = wanted_.back();
        for (size_t o = 0; o < last.size(); ++o) {
            V<T> prior = exp<T>(pnn_.share[o]), posterior = exp<T>(terms_[o] - total_);
            last[o].rise = -prior;
            last[o].slope = posterior;
            write(pnn_.last() + int(o), posterior - prior);
        }
        for (size_t k = pnn_.layers.size() - 1; k > 0; --k) {
            deep(pnn_.layers[k], pnn_.layers[k - 1], wanted_[k], wanted_[k - 1], write);
        }
        first(pnn_.layers[0], wanted_[0], low, high, write);
    }

   private:
    PNN<T> pnn_;
    std::vector<V<T>> terms_;
    std::vector<std::vector<Wanted<T>>> wanted_;
    V<T> total_{};
    std::vector<Moved<T>> moved_;

    // 1 / (e^D − 1).
    static V<T> flatness(const Unit<T>& u) { return exp<T>(-u.width) / u.shrink; }

    template <class Write>
    void deep(const Layer<T>& layer, const Layer<T>& below, const std::vector<Wanted<T>>& wanted,
              std::vector<Wanted<T>>& asked, Write write) {
        const int count = int(layer.units.size()), inputs = layer.inputs;
        moved_.resize(count);
        for (int o = 0; o < count; ++o) {
            const Unit<T>& u = layer.units[o];
            Moved<T> m(u, wanted[o], u.low.up, u.high.down, flatness(u));
            write(layer.start + count * inputs + o, -m.point * u.sum);
            moved_[o] = {m.point, m.lower * u.scale, m.upper * u.scale, m.slope / u.marginal};
        }
        for (int j = 0; j < inputs; ++j) {
            const Unit<T>& u = below.units[j];
            Moved<T> sum{};
            for (int o = 0; o < count; ++o) {
                const Moved<T>& m = moved_[o];
                V<T> W = layer.weight[o * inputs + j];
                sum.point += W * m.point;
                sum.lower += W * m.lower;
                sum.upper += W * m.upper;
                sum.slope += W * m.slope;
                V<T> total = m.point * (u.at.up - layer.units[o].centre) + m.lower * u.mass +
                             m.upper * u.rest + m.slope * u.part;
                write(layer.start + o * inputs + j, -layer.steep[o * inputs + j] * total);
            }
            V<T> left = sum.lower * u.rise * exp<T>(u.fall - u.lower) / u.shrink;
            V<T> right = sum.upper * u.rise * exp<T>(u.climb - u.upper) / u.shrink;
            V<T> mass = sum.lower * u.mass, rest = sum.upper * u.rest;
            asked[j] = {sum.point, mass, rest, V<T>{}, sum.slope * u.part, left, right};
        }
    }

    template <class Write>
    static void first(const Layer<T>& layer, const std::vector<Wanted<T>>& wanted, T low, T high, Write write) {
        const int count = int(layer.units.size());
        const bool open_low = low == -infinity<T>, open_high = high == infinity<T>;
        const V<T> zero{};
        for (int o = 0; o < count; ++o) {
            const Unit<T>& u = layer.units[o];
            const Moved<T> m(u, wanted[o], open_low ? zero : u.low.up, open_high ? zero : u.high.down,
                             open_low || open_high ? zero : flatness(u));
            V<T> lower = open_low ? zero : m.lower * u.lower, upper = open_high ? zero : m.upper * u.upper;
            write(o, -u.cube * (m.point * u.z + lower + upper + m.slope));
            write(count + o, -u.weight * m.point);
        }
    }
};

}  // namespace nits
