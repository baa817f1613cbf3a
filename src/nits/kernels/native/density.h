// log ν(x), equation (5), and its gradient in θ, equations (21) to (23), in one sweep.

#pragma once

#include "gradient.h"

namespace nits {

template <class T>
class Density : public Gradient<T, Density<T>> {
    friend class Gradient<T, Density<T>>;
    using Base = Gradient<T, Density<T>>;
    using Base::pnn_, Base::terms_, Base::total_;

   public:
    using Base::Base;

    V<T> log_density(const Rows<T>& theta, V<T> x, T low, T high) {
        pnn_.frame(theta, low, high);
        pnn_.template trace<true>(x);
        const auto& units = pnn_.layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) terms_[o] = pnn_.share[o] + units[o].slope;
        total_ = PNN<T>::log_sum(terms_);
        return total_;
    }

   private:
    const std::vector<Unit<T>>& at(size_t k) const { return pnn_.layers[k].units; }

    // Equation (22).
    static Moved<T> moved(const Unit<T>& u, const Unit<T>&, const Wanted<T>& w, V<T> start, V<T> end, V<T> flat) {
        Moved<T> m;
        m.point = w.point * u.at.up * u.at.down + w.mass * (u.at.down - start) + w.rest * (end - u.at.up) +
                  w.rise * (end - start) + w.part * (u.at.down - u.at.up);
        m.lower = w.mass * start + w.left + w.rise * (start + flat);
        m.upper = w.rest * end + w.right + w.rise * (end + flat);
        m.part = w.part;
        return m;
    }
};

}  // namespace nits
