// log ν(x), equation (5), and its gradient in θ, equations (21) to (23), in one pass.

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

    V<T> log_density(const Rows<T>& theta, V<T> x, T A, T B) {
        pnn_.normalize(theta, A, B);
        pnn_.template trace<true>(x);
        const auto& units = pnn_.layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) terms_[o] = pnn_.log_q[o] + units[o].slope;
        total_ = PNN<T>::log_sum_exp(terms_);
        return total_;
    }

   private:
    const std::vector<Unit<T>>& at(size_t k) const { return pnn_.layers[k].units; }

    // Equation (22).
    static InputAdjoint<T> input_adjoint(const Unit<T>& u, const Unit<T>&,
                                         const OutputAdjoint<T>& d, const Ends<T>& ends) {
        InputAdjoint<T> in;
        in.z = d.sigma * u.at.plus * u.at.minus + d.log_rho_f * (u.at.minus - ends.sigma_A) +
               d.log_rho_f_bar * (ends.sigma_minus_B - u.at.plus) +
               d.log_rho * (ends.sigma_minus_B - ends.sigma_A) +
               d.log_delta * (u.at.minus - u.at.plus);
        in.lambda = d.log_rho_f * ends.sigma_A + d.end_A + d.log_rho * (ends.sigma_A + ends.flat);
        in.mu = d.log_rho_f_bar * ends.sigma_minus_B + d.end_B +
                d.log_rho * (ends.sigma_minus_B + ends.flat);
        in.log_delta_z = d.log_delta;
        return in;
    }
};

}  // namespace nits
