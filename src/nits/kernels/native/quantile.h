// x with N(x) = u: Newton's method in the coordinate y of (12), as nits/pnn/roots.py computes it.

#pragma once

#include "pnn.h"

namespace nits {

template <class T>
inline V<T> softplus(V<T> z) {
    return positive<T>(z) + log1p<T>(exp<T>(-absolute<T>(z)));
}

template <class T>
inline V<T> log_add_exp(V<T> a, V<T> b) {
    V<T> smaller = minimum<T>(a, b), larger = maximum<T>(a, b);
    return larger + log1p<T>(exp<T>(smaller - larger));
}

template <class T>
inline V<T> clamp(V<T> x, T low, T high) {
    return minimum<T>(maximum<T>(x, broadcast<T>(low)), broadcast<T>(high));
}

// The coordinate y of (12): logit N₀ of a logistic distribution truncated to the support [A, B].
template <class T>
struct Reference {
    V<T> centre, scale;
    V<T> z_A, z_B, log_C, kappa_D;  // of the truncated logistic in z = (x − centre) / scale

    Reference(const Layer<T>& first, T A, T B) {
        const T count = T(first.units.size());
        V<T> sum{}, squares{}, log_W{};
        for (const auto& unit : first.units) {
            sum += clamp<T>(unit.b, A, B);
            log_W += log<T>(unit.W);
        }
        centre = sum / count;
        for (const auto& unit : first.units) {
            V<T> off = clamp<T>(unit.b, A, B) - centre;
            squares += off * off;
        }
        V<T> variance = T(0.3) * squares / count + exp_normal<T>(T(-2) * log_W / count);
        scale = minimum<T>(variance * rsqrt<T>(variance), broadcast<T>((B - A) / 4));
        z_A = (A - centre) / scale;
        z_B = (B - centre) / scale;
        log_C = softplus<T>(-z_B) - softplus<T>(z_A);
        kappa_D = kappa<T>(z_B - z_A);
    }

    // Q₀(y), equation (13).
    V<T> x(V<T> y) const {
        return centre + scale * (log_add_exp<T>(y, log_C + z_A) - log_add_exp<T>(log_C, y - z_B));
    }

    // dy/dx.
    V<T> slope(V<T> x) const {
        V<T> z = (x - centre) / scale;
        return kappa_D / (scale * kappa<T>(z - z_A) * kappa<T>(z_B - z));
    }
};

template <class T>
class Quantile {
   public:
    Quantile(const int64_t* hidden, int depth) : pnn_(hidden, depth), q_(hidden[depth - 1]) {}

    // Returns x; `open` says where it is not yet the root.
    V<T> find(const Rows<T>& theta, V<T> u, T A, T B, I<T>* open) {
        pnn_.normalize(theta, A, B);
        for (size_t o = 0; o < q_.size(); ++o) q_[o] = exp<T>(pnn_.log_q[o]);
        const Reference<T> reference(pnn_.layers[0], A, B);
        const V<T> target = log<T>(u) - log<T>(T(1) - u);
        V<T> y = target, left = broadcast<T>(-y_max), right = broadcast<T>(y_max);
        V<T> width = right - left, nearest = broadcast<T>(infinity<T>);
        Found best{};
        for (int step = 1; step <= max_steps; ++step) {
            const Found here = evaluate(clamp<T>(reference.x(y), A, B));
            const V<T> residual = log<T>(here.N) - log<T>(here.N_bar) - target;
            const I<T> negative = residual < T(0);
            left = negative ? y : left;
            right = negative ? right : y;
            const I<T> nearer = ~(absolute<T>(residual) >= nearest);
            nearest = nearer ? absolute<T>(residual) : nearest;
            best.replace(here, nearer);
            *open = ~(nearest < Bits<T>::close) &
                    (right - left > rounding * (absolute<T>(left) + absolute<T>(right)));
            if (!any<T>(*open)) break;
            // d(logit N)/dy = ν / (N (1 − N)) · dx/dy
            const V<T> newton =
                y - residual * (here.N * here.N_bar / here.nu) * reference.slope(here.x);
            I<T> stuck = ~((newton >= left) & (newton <= right));
            if (step % halving_interval(step) == 0) {
                stuck = stuck | ((right - left > width / T(2)) & (absolute<T>(residual) > T(0.1)));
                width = right - left;
            }
            y = stuck ? (left + right) / T(2) : newton;
        }
        return polish(best, u, A, B);
    }

   private:
    static constexpr int max_steps = 64;
    static constexpr T y_max = 200;  // equals the end of a finite support, y = ±∞, to rounding in x
    static constexpr T rounding = 16 * std::numeric_limits<T>::epsilon();

    // A bracket that has not halved within this many steps is bisected; late on, at every step.
    static constexpr int halving_interval(int step) { return step <= 12 ? 3 : step <= 24 ? 2 : 1; }

    struct Found {
        V<T> x, N, N_bar, nu;

        void replace(const Found& other, I<T> where) {
            x = where ? other.x : x;
            N = where ? other.N : N;
            N_bar = where ? other.N_bar : N_bar;
            nu = where ? other.nu : nu;
        }
    };

    PNN<T> pnn_;
    std::vector<V<T>> q_;

    Found evaluate(V<T> x) {
        pnn_.template trace<false>(x);
        V<T> N{}, N_bar{}, nu{};
        const auto& units = pnn_.layers.back().units;
        for (size_t o = 0; o < units.size(); ++o) {
            N += q_[o] * units[o].f;
            N_bar += q_[o] * units[o].f_bar;
            nu += q_[o] * units[o].slope;
        }
        const V<T> sum = N + N_bar;
        return {x, N / sum, N_bar / sum, nu};
    }

    // One Newton step in x itself, kept where it brings N nearer to u.
    V<T> polish(const Found& found, V<T> u, T A, T B) {
        const V<T> u_bar = T(1) - u, infinite = broadcast<T>(infinity<T>);
        const I<T> lower = u < T(0.5);
        const V<T> error = lower ? found.N - u : u_bar - found.N_bar;
        V<T> moved = clamp<T>(found.x - error / found.nu, A, B);
        moved = absolute<T>(moved) < infinite ? moved : found.x;
        const Found there = evaluate(moved);
        const V<T> left = lower ? there.N - u : u_bar - there.N_bar;
        return absolute<T>(left) < absolute<T>(error) ? moved : found.x;
    }
};

}  // namespace nits
