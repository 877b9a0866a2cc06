"""Every fault that the project promises to survive, the tests that inject it, and what makes it survive.

tests/mutations/faults.toml shows that the tests inject their faults: for each fault, it removes what makes the project
survive it, and one of the tests that it names must fail: python tests/mutations/run.py --match faults.
"""

import ast
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

KILLED, DAMAGED, ODD = "faults/test_killed_trainings.py", "faults/test_damaged_files.py", "faults/test_odd_settings.py"
WORKFLOW, SECURITY = "faults/test_snakemake_faults.py", "faults/test_security.py"
DOWNLOADS, FETCH = "faults/test_downloads.py", "base/test_fetch.py"
ABSENT, MODULE = "faults/test_absent_text.py", "workflow/test_module.py"
SLURM, FILES, WAITING = "slurm/test_slurm.py", "base/test_files.py", "training/test_without_waiting.py"

ALSO: dict[str, tuple[tuple[str, str], ...]] = {
    "training killed with -9 at any step": (
        (KILLED, "test_a_training_killed_with_9_before_every_single_update_ends_with_the_same_bits"),
        (KILLED, "test_a_training_killed_with_9_in_the_midst_of_writing_a_file_ends_with_the_same_bits"),
    ),
    "SIGTERM before the time limit": (
        (WORKFLOW, "test_sigterm_to_all_processes_of_a_job_saves_its_state_and_the_next_run_goes_on_from_there"),
        (SLURM, "test_a_training_whose_time_is_up_saves_and_the_next_try_goes_on_from_there"),
    ),
    "the whole of snakemake killed": (),
    "node lost under a job": (
        (SLURM, "test_a_training_whose_node_is_lost_is_requeued_and_ends_with_the_bits_of_an_undisturbed_one"),
    ),
    "disk full while writing a checkpoint": (),
    "checkpoint truncated or with a flipped bit": (
        (DAMAGED, "test_a_training_whose_state_or_snapshot_is_damaged_says_so_and_starts_over_to_the_same_bits"),
        (DAMAGED, "test_weights_kept_from_a_moment_are_checked_as_a_model_is"),
    ),
    "facts of a model with a flipped bit": (),
    "SentencePiece model truncated or with a flipped bit": (
        (DAMAGED, "test_a_sentencepiece_model_is_nothing_without_its_checksum"),
        (DAMAGED, "test_a_training_names_the_damaged_file_that_it_reads"),
    ),
    "shard truncated or with a flipped bit": ((DAMAGED, "test_a_training_names_the_damaged_file_that_it_reads"),),
    "download cut at half": ((FETCH, "test_a_download_left_by_a_killed_run_is_gone_on_with_by_the_next"),),
    "server answering 500": ((DOWNLOADS, "test_a_server_that_answers_500_for_ever_is_named_in_one_sentence"),),
    "download of a wrong length": (),
    "download with a wrong checksum": ((FETCH, "test_a_recorded_checksum_must_match_ever_after"),),
    "archive with ../, absolute members or links": (),
    "loss turning NaN": (
        (KILLED, "test_a_loss_that_is_no_number_stops_the_training_within_three_updates"),
        (WAITING, "test_a_loss_that_is_no_number_is_found_before_anything_is_kept_and_names_its_update"),
    ),
    "two snakemakes at once in one folder": (
        (WORKFLOW, "test_a_second_snakemake_in_the_same_folder_is_refused_and_the_first_is_not_disturbed"),
    ),
    "odd clock": (
        (KILLED, "test_a_training_whose_clock_goes_backwards_saves_its_state_all_the_same_and_ends_with_the_same_bits"),
        (WORKFLOW, "test_files_of_1971_and_an_odd_time_zone_change_no_bit_and_nothing_is_done_twice"),
        (WORKFLOW, "test_files_from_the_future_are_told_in_one_sentence"),
    ),
    "odd locale": ((FILES, "test_every_file_is_written_and_read_as_utf_8_where_the_locale_knows_ascii_alone"),),
    "path with blanks and non-ASCII letters": (
        (WORKFLOW, "test_the_whole_of_snakemake_killed_with_9_and_started_again_goes_on_to_the_same_bits"),
        (SECURITY, "test_names_and_values_full_of_shell_come_through_a_run_as_they_are"),
    ),
    "lambda of 0, of 1e9": (),
    "negative lambda": (
        (ODD, "test_the_command_takes_the_same_lambdas_as_the_paths_of_the_workflow"),
        (ODD, "test_a_lambda_in_the_settings_is_refused_before_the_first_job_unless_it_can_be_meant"),
    ),
    "budget of 0": ((ODD, "test_a_model_without_any_head_is_pruned_and_translates"),),
    "budget of more than all heads": (),
    "file of a corpus that is not there": (
        (ABSENT, "test_every_file_of_a_corpus_is_named_by_its_key"),
        (ABSENT, "test_a_file_that_is_called_nearly_so_is_named_unless_another_key_names_it"),
        (ABSENT, "test_snakemake_says_it_before_the_first_job_and_of_what_is_asked_for_alone"),
        (ABSENT, "test_text_may_be_what_a_rule_makes_of_another_corpus"),
        (
            MODULE,
            "test_a_rule_of_the_other_workflow_may_make_the_text_and_without_it_a_sentence_says_what_is_not_there",
        ),
    ),
    "empty corpus": (),
    "corpus of one sentence": (),
    "line of 10,000 tokens": ((ODD, "test_a_line_of_ten_thousand_tokens_is_translated_in_parts"),),
    "vocabulary larger than the corpus allows": (),
    "YAML that makes objects": (),
    "pickle in the place of a file": (
        (SECURITY, "test_a_pickle_in_the_place_of_any_file_is_refused_and_runs_nothing"),
        (SECURITY, "test_a_pickle_in_the_place_of_a_model_of_stanza_is_refused_and_runs_nothing"),
        (SECURITY, "test_what_is_dangerous_is_found_by_whatever_name_it_goes"),
    ),
    "names and values that a shell could run": (
        (SECURITY, "test_names_and_values_full_of_shell_come_through_a_run_as_they_are"),
        (SECURITY, "test_every_value_in_a_command_of_a_rule_is_quoted_or_one_of_a_closed_list"),
        (SECURITY, "test_a_name_that_a_shell_or_a_page_could_read_is_refused"),
    ),
    "markup in what the report shows": (),
}
"""By fault, the tests that inject it, besides those that tests/mutations/faults.toml names for it."""
TAKEN_AWAY = tomllib.loads((TESTS / "mutations/faults.toml").read_text(encoding="utf-8"))["mutation"]


def injecting(fault: str) -> set[tuple[str, ...]]:
    """File and name of every test that injects a fault."""
    entries = [entry for entry in TAKEN_AWAY if entry["name"].startswith(f"{fault}: ")]
    assert entries, f"say in tests/mutations/faults.toml what survives {fault!r}"
    named = {tuple(test.removeprefix("tests/").split("::")) for entry in entries for test in entry["tests"]}
    return named | {*ALSO[fault]}


def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize("fault", ALSO)
def test_each_fault_has_tests_that_assert_something_and_a_way_to_make_one_of_them_fail(fault: str) -> None:
    for file, test in injecting(fault):
        body = ast.unparse(functions_of(file)[test])
        assert "assert " in body or "pytest.raises" in body, f"{test} asserts nothing"
        assert "mark.skip(" not in body and "xfail" not in body, f"{test} is left out"


def test_nothing_is_taken_away_for_a_fault_that_is_not_counted() -> None:
    assert {entry["name"].partition(": ")[0] for entry in TAKEN_AWAY} == set(ALSO)


def test_no_test_of_a_fault_is_left_out_of_the_count() -> None:
    counted = set[tuple[str, ...]]().union(*map(injecting, ALSO))
    files = (KILLED, DAMAGED, ODD, WORKFLOW, SECURITY, DOWNLOADS, ABSENT)
    assert {(file, test) for file in files for test in functions_of(file)} <= counted
