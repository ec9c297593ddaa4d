"""Tests that run under `make proof`, because each takes seconds of processor time.

Most have shorter ones beside them. These have none: the written files' own fits and the short campaign of chaos.
`make test` must end within eight minutes on two cores. Keys are files, values are parts of the
names of tests; an empty part stands for all tests of the file.
"""

from __future__ import annotations

LONG_TESTS: dict[str, tuple[str, ...]] = {
    "actuators/test_identify_actuator.py": ("test_stribeck_and_load_friction_come_back",),
    "chaos/test_chaos.py": ("test_a_short_campaign_finds_nothing",),
    "check/test_check_faults.py": (
        "test_a_sound_log_of_a_large_arm_is_good[1]",
        "test_two_exchanged_joints[arm7-1-3-True]",
        "test_a_wrong_sign_of_the_torque[arm7-1]",
    ),
    "check/test_check_real.py": ("test_tiago_has_three_useless_channels",),
    "cli/test_messages.py": ("test_a_message_with_a_python_argument_names_the_option_too",),
    "dynamics/test_jax.py": ("test_jax_differentiates_through_the_dynamics",),
    "elasticity/test_two_encoders.py": (
        "test_stiffness_and_skew_come_back[6]",
        "test_stiffness_and_skew_come_back[2]",
    ),
    "estimation/test_kalman.py": ("test_the_extended_filter_on_a_six_axis_arm_from_a_wrong_prior",),
    "excitation/test_stop_and_continue.py": ("test_a_stopped_and_killed_search_resumes_to_the_same_result[gradient]",),
    "faults/test_mend.py": ("torque of the wrist twice as large",),
    "faults/test_planted_faults.py": (
        "test_the_true_cause_is_named[fault0]",
        "[zero of joint 2 off by 90",
        "[torque of joint 5 \\xd7 0.5]",
        "[log of another robot",
    ),
    "faults/test_sense.py": ("test_an_arm_of_many_tonnes_is_refused",),
    "fleet/test_faults.py": ("test_two_coordinators_on_one_store_give_the_same_result",),
    "identification/test_agreement.py": ("test_logs_of_a_robot_that_did_not_change_agree",),
    "identification/test_balance.py": ("test_a_counterbalance_is_found_where_there_is_one[1.6]",),
    "identification/test_identify.py": ("test_the_verdict_says_what_rests_on_the_description",),
    "identification/test_written_files.py": ("",),
    "local/test_cli_local.py": ("test_an_evolution_is_stopped_killed_and_resumed_to_the_same_motions",),
    "local/test_region_drift.py": ("test_another_motion_of_a_healthy_arm_is_no_drift_and_worn_friction_is_one",),
    "loops/test_identify_loops.py": ("test_a_parallel_ankle_is_identified_from_its_motors",),
    "matching/test_match.py": ("test_a_missed_resonance_is_shown",),
    "papers/test_reproductions.py": ("[prrrp]", "test_prrrp_has_the_figures_of_the_specification"),
    "report/test_report_page.py": ("test_a_usual_run_is_small_and_does_not_need_plotly",),
    "signals/test_repeats.py": ("test_repeated_rows_do_not_change_the_estimate",),
    "studio/test_stage_use.py": ("test_a_pair_of_real_logs_gives_the_known_mass",),
    "test_bit_equal.py": ("test_streamed_and_in_memory[4-holds_out2]", "test_streamed_and_in_memory[1-holds_out0]"),
    "test_docs.py": (
        "[docs/course/3-friction-and-noise.md]",
        "[docs/guides/excitation.md]",
        "[docs/guides/matching.md]",
        "[docs/guides/mounting.md]",
        "[docs/guides/payload.md]",
        "[docs/guides/sim-to-real.md]",
        "[docs/guides/simulate.md]",
        "[docs/guides/elastic-joints.md]",
    ),
    "test_examples.py": ("test_an_example_runs[actuator]", "test_an_example_runs[fleet]"),
    "test_real_robots.py": (
        "test_the_default_model_keeps_what_the_scoreboard_says[staubli_tx40]",
        "test_the_default_model_keeps_what_the_scoreboard_says[kuka_kr300]",
    ),
    "watch/test_snapshots.py": ("test_state_of_another_log_is_refused",),
    "watch/test_run_monitors.py": ("test_a_log_in_memory_and_its_file_give_the_same_events",),
}
