// log ν(x), equation (5), and its gradient in θ, equations (21) to (23), in one sweep.

#pragma once

#include "gradient.h"

namespace nits {

template <class T>
class Density {
   public:
    Density(const int64_t* hidden, int depth) : pnn_(hidden, depth), terms_(hidden[depth - 1]) {
        for (int k = 0; k < depth; ++k) {
            wanted_.emplace_back(hidden[k], Wanted<T>{});
            moved_.emplace_back(hidden[k]);
            read_.emplace_back(hidden[k]);
        }
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
            const V<T> prior = exp<T>(pnn_.share[o]), posterior = exp<T>(terms_[o] - total_);
            last[o].rise = -prior;
            last[o].part = posterior;
            write(pnn_.last() + int(o), posterior - prior);
        }
        for (size_t k = pnn_.layers.size() - 1; k > 0; --k) {
            scale(pnn_.layers[k], wanted_[k], moved_[k]);
            look(pnn_.layers[k - 1], read_[k - 1]);
            pass_down<T>(pnn_.layers[k], moved_[k], read_[k - 1], wanted_[k - 1], write);
        }
        first(low == -infinity<T>, high == infinity<T>, write);
    }

   private:
    PNN<T> pnn_;
    std::vector<V<T>> terms_;
    std::vector<std::vector<Wanted<T>>> wanted_;
    std::vector<std::vector<Moved<T>>> moved_;
    std::vector<std::vector<Read<T>>> read_;
    V<T> total_{};

    // Equation (22).
    static Moved<T> moved(const Unit<T>& u, const Wanted<T>& w, V<T> start, V<T> end, V<T> flat) {
        Moved<T> m;
        m.point = w.point * u.at.up * u.at.down + w.mass * (u.at.down - start) + w.rest * (end - u.at.up) +
                  w.rise * (end - start) + w.part * (u.at.down - u.at.up);
        m.lower = w.mass * start + w.left + w.rise * (start + flat);
        m.upper = w.rest * end + w.right + w.rise * (end + flat);
        m.part = w.part;
        return m;
    }

    static void scale(const Layer<T>& layer, const std::vector<Wanted<T>>& wanted, std::vector<Moved<T>>& all) {
        for (size_t o = 0; o < wanted.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            const Moved<T> m = moved(u, wanted[o], u.low.up, u.high.down, flatness(u));
            all[o] = {m.point, m.lower * u.scale, m.upper * u.scale, m.part / u.marginal};
        }
    }

    static void look(const Layer<T>& layer, std::vector<Read<T>>& read) {
        for (size_t j = 0; j < read.size(); ++j) {
            const Unit<T>& u = layer.units[j];
            read[j] = {u.at.up,
                       u.mass,
                       u.rest,
                       u.part,
                       u.rise * exp<T>(u.fall - u.lower) / u.shrink,
                       u.rise * exp<T>(u.climb - u.upper) / u.shrink};
        }
    }

    // z = W (x − b), λ = W (x − A), μ = W (B − x) and z′ = W.
    template <class Write>
    void first(bool open_low, bool open_high, Write write) const {
        const auto& units = pnn_.layers[0].units;
        const V<T> zero{};
        for (size_t o = 0; o < units.size(); ++o) {
            const Unit<T>& u = units[o];
            const Moved<T> m = moved(u, wanted_[0][o], open_low ? zero : u.low.up, open_high ? zero : u.high.down,
                                     open_low || open_high ? zero : flatness(u));
            const V<T> lower = open_low ? zero : m.lower * u.lower, upper = open_high ? zero : m.upper * u.upper;
            write(int(o), -u.cube * (m.point * u.z + lower + upper + m.part));
            write(int(units.size() + o), -u.weight * m.point);
        }
    }
};

}  // namespace nits
