"""What holds of every density: each law is a function that takes one and raises if it is broken."""

from collections.abc import Callable

from laws import causality, consistency, gradients, inverse, mass, sampling
from laws.density import Density, some_rows

__all__ = ["LAWS", "Density", "Law", "some_rows"]

Law = Callable[[Density], None]

LAWS: tuple[Law, ...] = (
    mass.each_conditional_has_mass_one,
    mass.last_two_columns_have_mass_one,
    mass.nothing_outside_the_support,
    sampling.samples_follow_the_density,
    sampling.samples_are_uniform_after_the_transform,
    sampling.the_seed_decides_the_samples,
    inverse.increases,
    inverse.round_trip_from_uniform,
    inverse.round_trip_to_uniform,
    inverse.to_uniform_gives_probabilities,
    inverse.conditionals_are_the_uniform_transform,
    inverse.gradients_do_not_change_samples,
    causality.looks_only_at_the_columns_before,
    causality.later_columns_change_nothing,
    causality.chain_rule,
    gradients.slope_is_the_derivative_of_to_uniform,
    gradients.log_prob_has_the_right_slope_in_x,
    gradients.every_parameter_gets_a_finite_gradient,
    gradients.gradient_of_log_prob_in_the_weights,
    gradients.implicit_gradient_of_rsample,
    consistency.a_batch_of_one_equals_a_row_of_a_batch,
    consistency.float32_is_near_float64,
    consistency.chunks_change_nothing,
    consistency.saving_and_loading_is_bitwise,
    consistency.a_state_dict_is_all_there_is,
    consistency.calling_is_scoring,
    consistency.rows_lie_in_the_support_of_their_distribution,
)
