// log P(s < X ≤ t), equations (6) to (8) and (11), and its gradient in θ, equations (21) to (24), in one sweep.

#pragma once

#include "gradient.h"

namespace nits {

// A unit at the lower point s, and its rise Δ = σ(z_t) − σ(z_s) up to the upper point t.
template <class T>
struct Span {
    V<T> z, lower, below, above, fall, climb, mass;  // at s: z, z − z_A, f, f̄, (10) twice, and ρ f
    Sigmoid<T> at;
    V<T> log_share, log_gap, gap, part, marginal;  // log(Δ / ρ), log δ, δ = z_t − z_s; Δ over the greatest, and W Δ
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
    V<T> log_mass(const Rows<T>& theta, V<T> s, V<T> t, T low, T high) {
        pnn_.frame(theta, low, high);
        pnn_.template trace<false>(s);
        for (size_t k = 0; k < spans_.size(); ++k) keep(pnn_.layers[k], spans_[k]);
        pnn_.template trace<false>(t);
        const I<T> empty = s >= t;
        first_spans(empty ? all<T>(1) : t - s, high - low);
        for (size_t k = 1; k < spans_.size(); ++k) deep_spans(pnn_.layers[k - 1], spans_[k - 1], pnn_.layers[k], spans_[k]);
        for (size_t o = 0; o < terms_.size(); ++o) terms_[o] = pnn_.share[o] + spans_.back()[o].log_share;
        total_ = PNN<T>::log_sum(terms_);
        return empty ? all<T>(-infinity<T>) : total_;
    }

   private:
    std::vector<std::vector<Span<T>>> spans_;

    const std::vector<Span<T>>& at(size_t k) const { return spans_[k]; }

    static void keep(const Layer<T>& layer, std::vector<Span<T>>& spans) {
        for (size_t o = 0; o < spans.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            Span<T>& span = spans[o];
            span.z = u.z;
            span.lower = u.lower;
            span.below = u.below;
            span.above = u.above;
            span.fall = u.fall;
            span.climb = u.climb;
            span.mass = u.rise * u.below;
            span.at = u.at;
        }
    }

    void first_spans(V<T> width, T support) {
        const V<T> log_width = log<T>(width);
        const V<T> log_g = support < infinity<T> ? log_width - log<T>(all<T>(support)) : log_width;
        auto& units = pnn_.layers[0].units;
        for (size_t o = 0; o < units.size(); ++o) {
            Span<T>& span = spans_[0][o];
            span.log_gap = log<T>(units[o].weight) + log_width;
            span.log_share = units[o].fall + span.climb + log_shrink(units[o], log_g, span);
        }
    }

    void deep_spans(const Layer<T>& below, std::vector<Span<T>>& from, const Layer<T>& layer,
                    std::vector<Span<T>>& spans) {
        V<T> top = all<T>(-infinity<T>);
        for (size_t j = 0; j < from.size(); ++j) {
            from[j].part = below.units[j].log_rise - below.top + from[j].log_share;
            top = greater<T>(top, from[j].part);
        }
        for (auto& span : from) span.part = exp<T>(span.part - top);
        for (size_t o = 0; o < spans.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            Span<T>& span = spans[o];
            span.marginal = V<T>{};
            for (size_t j = 0; j < from.size(); ++j) span.marginal += layer.weight[o * from.size() + j] * from[j].part;
            const V<T> log_g = top + log<T>(span.marginal / u.mixed);
            span.log_gap = log<T>(u.width) + log_g;
            span.log_share = u.fall + span.climb + log_shrink(u, log_g, span);
            telescope(u, span);
        }
    }

    // log(κ(δ) / κ(D)) for δ = D g; with φ(h) = κ(h) / h it is log g + log φ(δ) − log φ(D), where nothing cancels.
    static V<T> log_shrink(const Unit<T>& u, V<T> log_g, Span<T>& span) {
        span.gap = exp<T>(lesser<T>(span.log_gap, all<T>(T(80))));
        const I<T> tiny = span.gap < Bits<T>::straight, flat = u.width < T(1);
        const V<T> gap = tiny ? all<T>(T(1)) : span.gap, shrunk = kappa<T>(gap);
        const V<T> log_phi = tiny ? V<T>{} : log<T>(shrunk / gap);
        const V<T> near = log_g + log_phi - log<T>(u.shrink / (flat ? u.width : all<T>(T(1))));
        const V<T> far = (tiny ? span.log_gap : log<T>(shrunk)) - log<T>(u.shrink);
        return flat ? near : far;
    }

    // A steep unit's share as a plain difference, which telescopes, equation (11).
    static void telescope(const Unit<T>& u, Span<T>& span) {
        const V<T> difference = span.below > span.above ? span.above - u.above : u.below - span.below;
        const V<T> greatest = greater<T>(difference, exp<T>(span.log_share));
        const I<T> plain = (greatest * u.width > T(1)) & (u.width > T(1)) & (difference > T(0));
        span.log_share = plain ? log<T>(plain ? difference : all<T>(T(1))) : span.log_share;
    }

    // Equation (22) with two points: z_t = z_s + δ, and `part` in log δ.
    static Moved<T> moved(const Unit<T>& u, const Span<T>& s, const Wanted<T>& w, V<T> start, V<T> end, V<T> flat) {
        const V<T> after = w.rest * (end - u.at.up), rising = w.rise * (end + flat);
        const V<T> off = s.gap < Bits<T>::straight ? all<T>(T(1)) : s.gap * exp<T>(-s.gap) / kappa<T>(s.gap);
        Moved<T> m;
        m.point = w.point * s.at.up * s.at.down + w.mass * (s.at.down - start) + after + w.rise * (end - start) +
                  w.part * (u.at.down - s.at.up);
        m.lower = w.mass * start + w.left + w.rise * (start + flat);
        m.upper = w.rest * end + w.right + rising;
        m.part = (after + rising + w.part * u.at.down) * s.gap + w.part * off;
        return m;
    }
};

}  // namespace nits
