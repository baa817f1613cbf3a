// x with N(x) = u: Newton's method in the coordinate of equation (12), as nits/roots.py has it.

#pragma once

#include "pnn.h"

namespace nits {

template <class T>
inline V<T> softplus(V<T> z) {
    return positive<T>(z) + log_1_plus<T>(exp<T>(-magnitude<T>(z)));
}

template <class T>
inline V<T> log_add_exp(V<T> a, V<T> b) {
    V<T> low = lesser<T>(a, b), high = greater<T>(a, b);
    return high + log_1_plus<T>(exp<T>(low - high));
}

template <class T>
inline V<T> inside(V<T> x, T low, T high) {
    return lesser<T>(greater<T>(x, all<T>(low)), all<T>(high));
}

// A logistic distribution truncated to the support, as the coordinate y.
template <class T>
struct Reference {
    V<T> centre, scale, low, high, log_c, shrink;

    Reference(const Layer<T>& first, T a, T b) {
        const T count = T(first.units.size());
        V<T> sum{}, squares{}, logs{};
        for (const auto& unit : first.units) {
            sum += inside<T>(unit.centre, a, b);
            logs += log<T>(unit.weight);
        }
        centre = sum / count;
        for (const auto& unit : first.units) {
            V<T> off = inside<T>(unit.centre, a, b) - centre;
            squares += off * off;
        }
        V<T> variance = T(0.3) * squares / count + exp_within<T>(T(-2) * logs / count);
        scale = lesser<T>(variance * rsqrt<T>(variance), all<T>((b - a) / 4));
        low = (a - centre) / scale;
        high = (b - centre) / scale;
        log_c = softplus<T>(-high) - softplus<T>(low);
        shrink = kappa<T>(high - low);
    }

    // Q₀(y), equation (13).
    V<T> x(V<T> y) const {
        return centre + scale * (log_add_exp<T>(y, log_c + low) - log_add_exp<T>(log_c, y - high));
    }

    V<T> slope(V<T> x) const {
        V<T> z = (x - centre) / scale;
        return shrink / (scale * kappa<T>(z - low) * kappa<T>(high - z));
    }
};

template <class T>
class Quantile {
   public:
    Quantile(const int64_t* hidden, int depth) : pnn_(hidden, depth), share_(hidden[depth - 1]) {}

    // Returns x; `open` says where it is not yet the root.
    V<T> find(const Rows<T>& theta, V<T> u, T low, T high, I<T>* open) {
        pnn_.frame(theta, low, high);
        for (size_t o = 0; o < share_.size(); ++o) share_[o] = exp<T>(pnn_.share[o]);
        const Reference<T> reference(pnn_.layers[0], low, high);
        const V<T> target = log<T>(u) - log<T>(T(1) - u);
        V<T> y = target, left = all<T>(-furthest), right = all<T>(furthest), width = right - left;
        V<T> nearest = all<T>(infinity<T>);
        Found best{};
        for (int step = 1; step <= most_steps; ++step) {
            const Found here = evaluate(inside<T>(reference.x(y), low, high));
            const V<T> residual = log<T>(here.below) - log<T>(here.above) - target;
            const I<T> negative = residual < T(0);
            left = negative ? y : left;
            right = negative ? right : y;
            const I<T> nearer = ~(magnitude<T>(residual) >= nearest);
            nearest = nearer ? magnitude<T>(residual) : nearest;
            best.keep(here, nearer);
            *open = ~(nearest < Bits<T>::close) & (right - left > room * (magnitude<T>(left) + magnitude<T>(right)));
            if (!any<T>(*open)) break;
            // d(logit N)/dy = ν / (N (1 − N)) · dx/dy
            const V<T> newton =
                y - residual * (here.below * here.above / here.density) * reference.slope(here.x);
            I<T> stuck = ~((newton >= left) & (newton <= right));
            if (step % (step <= 12 ? 3 : step <= 24 ? 2 : 1) == 0) {  // is the bracket half as wide?
                stuck = stuck | ((right - left > width / T(2)) & (magnitude<T>(residual) > T(0.1)));
                width = right - left;
            }
            y = stuck ? (left + right) / T(2) : newton;
        }
        return polish(best, u, low, high);
    }

   private:
    static constexpr int most_steps = 64;
    static constexpr T furthest = 200;  // an end of a finite support lies at y = ±∞; here it is that end to rounding
    static constexpr T room = 16 * std::numeric_limits<T>::epsilon();

    struct Found {
        V<T> x, below, above, density;

        void keep(const Found& other, I<T> where) {
            x = where ? other.x : x;
            below = where ? other.below : below;
            above = where ? other.above : above;
            density = where ? other.density : density;
        }
    };

    PNN<T> pnn_;
    std::vector<V<T>> share_;

    Found evaluate(V<T> x) {
        pnn_.template trace<false>(x);
        V<T> below{}, above{}, density{};
        const auto& units = pnn_.layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) {
            below += share_[o] * units[o].below;
            above += share_[o] * units[o].above;
            density += share_[o] * units[o].slope;
        }
        const V<T> sum = below + above;
        return {x, below / sum, above / sum, density};
    }

    // One plain Newton step, kept where it brings N nearer to u.
    V<T> polish(const Found& found, V<T> u, T low, T high) {
        const V<T> above = T(1) - u, infinite = all<T>(infinity<T>);
        const I<T> lower = u < T(0.5);
        const V<T> error = lower ? found.below - u : above - found.above;
        V<T> moved = inside<T>(found.x - error / found.density, low, high);
        moved = magnitude<T>(moved) < infinite ? moved : found.x;
        const Found there = evaluate(moved);
        const V<T> left = lower ? there.below - u : above - there.above;
        return magnitude<T>(left) < magnitude<T>(error) ? moved : found.x;
    }
};

}  // namespace nits
