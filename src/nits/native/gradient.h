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

}  // namespace nits
