// log P(s < X ≤ t), equations (6) to (8) and (11), and its gradient in θ, equations (21) to (24),
// in one pass.

#pragma once

#include "gradient.h"

namespace nits {

// A unit between two points s < t: itself at s, and its rise Δ = σ(z_t) − σ(z_s) up to t.
template <class T>
struct Span {
    V<T> z, lambda, f, f_bar, log_fall, log_climb, rho_f;  // at s, as in Unit
    Sigmoid<T> at;                                         // at s
    V<T> log_share;                                        // log(Δ / r)
    V<T> delta_z, log_delta_z;                             // δ = z_t − z_s
    V<T> delta, W_delta;  // Δ over its greatest in the layer, and its sum over the units below
};

template <class T>
class Mass : public Gradient<T, Mass<T>> {
    friend class Gradient<T, Mass<T>>;
    using Base = Gradient<T, Mass<T>>;
    using Base::pnn_, Base::terms_, Base::total_;

   public:
    Mass(const int64_t* hidden, int depth) : Base(hidden, depth) {
        for (int k = 0; k < depth; ++k) spans_.emplace_back(hidden[k]);
    }

    // s and t are finite.
    V<T> log_mass(const Rows<T>& theta, V<T> s, V<T> t, T A, T B) {
        pnn_.normalize(theta, A, B);
        pnn_.template trace<false>(s);
        for (size_t k = 0; k < spans_.size(); ++k) start_at(pnn_.layers[k], spans_[k]);
        pnn_.template trace<false>(t);
        const I<T> empty = s >= t;
        first_spans(empty ? broadcast<T>(1) : t - s, B - A);
        for (size_t k = 1; k < spans_.size(); ++k) {
            deep_spans(pnn_.layers[k - 1], spans_[k - 1], pnn_.layers[k], spans_[k]);
        }
        const auto& last = spans_.back();
        for (size_t o = 0; o < last.size(); ++o) terms_[o] = pnn_.log_q[o] + last[o].log_share;
        total_ = PNN<T>::log_sum_exp(terms_);
        return empty ? broadcast<T>(-infinity<T>) : total_;
    }

   private:
    std::vector<std::vector<Span<T>>> spans_;

    const std::vector<Span<T>>& at(size_t k) const { return spans_[k]; }

    static void start_at(const Layer<T>& layer, std::vector<Span<T>>& spans) {
        for (size_t o = 0; o < spans.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            Span<T>& span = spans[o];
            span.z = u.z;
            span.lambda = u.lambda;
            span.f = u.f;
            span.f_bar = u.f_bar;
            span.log_fall = u.log_fall;
            span.log_climb = u.log_climb;
            span.rho_f = u.rho * u.f;
            span.at = u.at;
        }
    }

    void first_spans(V<T> width, T support) {
        const V<T> log_width = log<T>(width);
        const V<T> log_g =
            support < infinity<T> ? log_width - log<T>(broadcast<T>(support)) : log_width;
        auto& units = pnn_.layers[0].units;
        for (size_t o = 0; o < units.size(); ++o) {
            Span<T>& span = spans_[0][o];
            span.log_delta_z = log<T>(units[o].W) + log_width;
            span.log_share =
                units[o].log_fall + span.log_climb + log_kappa_ratio(units[o], log_g, span);
        }
    }

    void deep_spans(const Layer<T>& below, std::vector<Span<T>>& from, const Layer<T>& layer,
                    std::vector<Span<T>>& spans) {
        V<T> top = broadcast<T>(-infinity<T>);
        for (size_t j = 0; j < from.size(); ++j) {
            from[j].delta = below.units[j].log_r - below.log_r_max + from[j].log_share;
            top = maximum<T>(top, from[j].delta);
        }
        for (auto& span : from) span.delta = exp<T>(span.delta - top);
        for (size_t o = 0; o < spans.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            Span<T>& span = spans[o];
            const V<T>* W = &layer.W[o * from.size()];
            span.W_delta = V<T>{};
            for (size_t j = 0; j < from.size(); ++j) span.W_delta += W[j] * from[j].delta;
            const V<T> log_g = top + log<T>(span.W_delta / u.W_rho);
            span.log_delta_z = log<T>(u.D) + log_g;
            span.log_share = u.log_fall + span.log_climb + log_kappa_ratio(u, log_g, span);
            telescope(u, span);
        }
    }

    // log(κ(δ) / κ(D)) for δ = D g. With φ(h) = κ(h) / h it is also log g + log φ(δ) − log φ(D), in
    // which nothing large cancels for D < 1.
    static V<T> log_kappa_ratio(const Unit<T>& u, V<T> log_g, Span<T>& span) {
        span.delta_z = exp<T>(minimum<T>(span.log_delta_z, broadcast<T>(T(80))));
        const I<T> tiny = span.delta_z < Bits<T>::straight, flat = u.D < T(1);
        const V<T> delta_z = tiny ? broadcast<T>(T(1)) : span.delta_z;
        const V<T> kappa_delta_z = kappa<T>(delta_z);
        const V<T> log_phi = tiny ? V<T>{} : log<T>(kappa_delta_z / delta_z);
        const V<T> near = log_g + log_phi - log<T>(u.kappa_D / (flat ? u.D : broadcast<T>(T(1))));
        const V<T> far = (tiny ? span.log_delta_z : log<T>(kappa_delta_z)) - log<T>(u.kappa_D);
        return flat ? near : far;
    }

    // The share of a steep unit as a plain difference, sums of which telescope, equation (11).
    static void telescope(const Unit<T>& u, Span<T>& span) {
        const V<T> difference = span.f > span.f_bar ? span.f_bar - u.f_bar : u.f - span.f;
        const V<T> greatest = maximum<T>(difference, exp<T>(span.log_share));
        const I<T> plain = (greatest * u.D > T(1)) & (u.D > T(1)) & (difference > T(0));
        span.log_share = plain ? log<T>(plain ? difference : broadcast<T>(T(1))) : span.log_share;
    }

    // Equations (22) and (24): u is the unit at t, s the one at s, and z_t = z_s + δ.
    static InputAdjoint<T> input_adjoint(const Unit<T>& u, const Span<T>& s,
                                         const OutputAdjoint<T>& d, const Ends<T>& ends) {
        // The terms of log(ρ f̄) and log ρ in which z_t and z_B move with δ.
        const V<T> moved_t = d.log_rho_f_bar * (ends.sigma_minus_B - u.at.plus);
        const V<T> moved_B = d.log_rho * (ends.sigma_minus_B + ends.flat);
        // d log κ(δ) / d log δ = δ / (e^δ − 1)
        const V<T> log_kappa = s.delta_z < Bits<T>::straight
                                   ? broadcast<T>(T(1))
                                   : s.delta_z * exp<T>(-s.delta_z) / kappa<T>(s.delta_z);
        InputAdjoint<T> in;
        in.z = d.sigma * s.at.plus * s.at.minus + d.log_rho_f * (s.at.minus - ends.sigma_A) +
               moved_t + d.log_rho * (ends.sigma_minus_B - ends.sigma_A) +
               d.log_delta * (u.at.minus - s.at.plus);
        in.lambda = d.log_rho_f * ends.sigma_A + d.end_A + d.log_rho * (ends.sigma_A + ends.flat);
        in.mu = d.log_rho_f_bar * ends.sigma_minus_B + d.end_B + moved_B;
        in.log_delta_z =
            (moved_t + moved_B + d.log_delta * u.at.minus) * s.delta_z + d.log_delta * log_kappa;
        return in;
    }
};

}  // namespace nits
