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
class Mass {
   public:
    Mass(const int64_t* hidden, int depth) : pnn_(hidden, depth), terms_(hidden[depth - 1]) {
        for (int k = 0; k < depth; ++k) {
            spans_.emplace_back(hidden[k]);
            wanted_.emplace_back(hidden[k], Wanted<T>{});
            moved_.emplace_back(hidden[k]);
            read_.emplace_back(hidden[k]);
        }
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
            scale(pnn_.layers[k], spans_[k], wanted_[k], moved_[k]);
            look(pnn_.layers[k - 1], spans_[k - 1], read_[k - 1]);
            pass_down<T>(pnn_.layers[k], moved_[k], read_[k - 1], wanted_[k - 1], write);
        }
        first(low == -infinity<T>, high == infinity<T>, write);
    }

   private:
    PNN<T> pnn_;
    std::vector<V<T>> terms_;
    std::vector<std::vector<Span<T>>> spans_;
    std::vector<std::vector<Wanted<T>>> wanted_;
    std::vector<std::vector<Moved<T>>> moved_;
    std::vector<std::vector<Read<T>>> read_;
    V<T> total_{};

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

    static void scale(const Layer<T>& layer, const std::vector<Span<T>>& spans, const std::vector<Wanted<T>>& wanted,
                      std::vector<Moved<T>>& all) {
        for (size_t o = 0; o < wanted.size(); ++o) {
            const Unit<T>& u = layer.units[o];
            const Moved<T> m = moved(u, spans[o], wanted[o], u.low.up, u.high.down, flatness(u));
            all[o] = {m.point, m.lower * u.scale, m.upper * u.scale, m.part / spans[o].marginal};
        }
    }

    static void look(const Layer<T>& layer, const std::vector<Span<T>>& spans, std::vector<Read<T>>& read) {
        for (size_t j = 0; j < read.size(); ++j) {
            const Unit<T>& u = layer.units[j];
            const Span<T>& s = spans[j];
            read[j] = {s.at.up,
                       s.mass,
                       u.rest,
                       s.part,
                       u.rise * exp<T>(s.fall - s.lower) / u.shrink,
                       u.rise * exp<T>(u.climb - u.upper) / u.shrink};
        }
    }

    // z_s = W (s − b), λ = W (s − A), δ = W (t − s) and μ = W (B − t).
    template <class Write>
    void first(bool open_low, bool open_high, Write write) const {
        const auto& units = pnn_.layers[0].units;
        const V<T> zero{};
        for (size_t o = 0; o < units.size(); ++o) {
            const Unit<T>& u = units[o];
            const Span<T>& s = spans_[0][o];
            const Moved<T> m = moved(u, s, wanted_[0][o], open_low ? zero : u.low.up,
                                     open_high ? zero : u.high.down, open_low || open_high ? zero : flatness(u));
            const V<T> lower = open_low ? zero : m.lower * s.lower, upper = open_high ? zero : m.upper * u.upper;
            write(int(o), -u.cube * (m.point * s.z + lower + upper + m.part));
            write(int(units.size() + o), -u.weight * m.point);
        }
    }
};

}  // namespace nits
